import type { TableName } from '../../table/columns.ts';

// A file of a table: as it is part of one, as it waits to become part of one, and as it can be read here.

export interface DataFile {
  readonly table: TableName;
  /** Path from the root of the storage, with `/`. */
  readonly path: string;
  /** Id of the content; every new file has another one. */
  readonly id: string;
  /** The date of its rows as text, which is its partition; null for rows without one. */
  readonly date: string | null;
  readonly rows: number;
  readonly bytes: number;
  /** SHA-256 of the whole file (hex); undefined if the log does not have it. */
  readonly sha256: string | undefined;
  /** Names of the columns in the file, in no order; other columns are NULL in all of its rows. */
  readonly columns: ReadonlySet<string>;
  /** Number of rows without a value by column; undefined if the log does not count them. */
  readonly nulls?: ReadonlyMap<string, number>;
  /**
   * Number of rows of a file of `events` by the window that wrote them last: `3 → 90, 7 → 10` where window 7 has read
   * 10 of the rows of window 3 again. Empty for other tables.
   */
  readonly windows: ReadonlyMap<number, number>;
  /** The id of the file of `events` from which the rows of a derived table come; absent for `events`. */
  readonly source?: string;
  /** True if `compact` wrote it, in the order that lets filters skip row groups. */
  readonly isSorted: boolean;
  /** Path in the folder of this run; undefined for a file that the storage has. */
  readonly local?: string;
}

/** A file that is completely written, and not part of a table yet. */
export interface NewFile extends DataFile {
  readonly local: string;
  readonly sha256: string;
  readonly footerBytes: number;
  readonly statistics: ReadonlyMap<string, ColumnStatistics>;
}

/** DuckDB's statistics of a column of a file that it wrote. For a list the numbers are those of its elements. */
export interface ColumnStatistics {
  readonly isList: boolean;
  readonly bytes: number;
  readonly values: number;
  readonly nulls: number;
  /** The least value as DuckDB writes it (`2026-01-01 00:00:00+00` of an instant); null without one. */
  readonly least: string | null;
  /** The greatest value, written alike. */
  readonly greatest: string | null;
}

export interface ReadableFile extends DataFile {
  /** Path of the file itself, or of a copy that may have only the requested columns. */
  readonly copy: string;
}

/** Sums the rows by window over several files. */
export function windowsOf(files: readonly { readonly windows: ReadonlyMap<number, number> }[]): Map<number, number> {
  const all = new Map<number, number>();
  for (const { windows } of files) {
    for (const [windowNumber, rows] of windows) all.set(windowNumber, (all.get(windowNumber) ?? 0) + rows);
  }
  return all;
}

/** Number of rows of each window, over all files of `events`. */
export const liveRows = (files: readonly DataFile[]): Map<number, number> =>
  windowsOf(files.filter(({ table }) => table === 'events'));

/** The files but for those that leave. */
export function without<F extends DataFile>(files: readonly F[], leaving: readonly DataFile[]): F[] {
  const ids = new Set(leaving.map(({ id }) => id));
  return files.filter(({ id }) => !ids.has(id));
}

/** The order of files in a snapshot. */
export const byPath = (a: DataFile, b: DataFile): number => (a.path === b.path ? 0 : a.path < b.path ? -1 : 1);
