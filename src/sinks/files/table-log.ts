// This folder: a table of Parquet files, once for all targets that keep one: writing a batch, superseded rows, derived
// tables, compaction, verification, people, purge, report. A target adds a log (which files are live, and how a change
// becomes visible) and a storage (where bytes are). docs/targets.md is the contract.

import { UserError } from '../../base/errors.ts';
import type { TableName } from '../../table/columns.ts';
import type { Difference } from '../../table/differences.ts';
import type { TableState } from '../../table/state.ts';
import type { DescribedColumn } from '../sql/conversions.ts';
import type { Engine } from '../sql/engine/engine.ts';
import type { Storage } from '../storage/storage.ts';
import type { PlaceOptions, PurgeOptions, TargetOptions } from '../target.ts';

export interface Layout {
  /**
   * True for readers that find files by a glob pattern: one file a date, under a name that never changes, and the same
   * columns in the same order in all (S29, S30), so that a batch rewrites the dates of its rows. Else it adds files,
   * and a file lacks columns without a value: these can change their type without a new file (S43).
   */
  readonly hasOneFilePerDate?: boolean;
  /** Derives the name of a column from its name in the export, before equal names are numbered. */
  columnName?(source: string): string;
  /** True if files also hold the date of their rows as a column. */
  readonly hasDateColumn?: boolean;
  /** The option of COPY that writes the field ids of a file's columns. */
  fieldIds?(table: TableName, columns: readonly DescribedColumn[]): string;
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
   * Number of rows of a file of `events` by the window that wrote them last: `3 → 90, 7 → 10` where window 7 has read 10
   * of the rows of window 3 again. Empty for other tables.
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

export interface ReadableFile extends DataFile {
  /** Path of the file itself, or of a copy that may have only the requested columns. */
  readonly copy: string;
}

export interface Snapshot {
  readonly state: TableState;
  /** Files of all tables, in the order of their paths. */
  readonly files: readonly DataFile[];
  /** Derived tables that do not follow from these `events`, because a run died or lost a race between its commits. */
  readonly outdated: ReadonlySet<TableName>;
}

export interface ChangedFiles {
  readonly removed: readonly DataFile[];
  readonly added: readonly NewFile[];
}

/** What a batch, a rewrite or a purge makes of a snapshot. Added files are local; no live file was touched. */
export interface FileChange extends ChangedFiles {
  readonly kind: 'load' | 'rewrite' | 'purge';
  readonly state: TableState;
}

/** Thrown if another writer committed first; nothing of the change is left. */
export class LostRace extends UserError {
  override readonly name = 'LostRace';

  constructor(place: string) {
    super('transient', `${place}: another writer was first. Nothing of this was kept: run again.`);
  }
}

/**
 * Which files of a place are live, and how a change becomes visible in one step: four methods, and four more that only
 * some logs need. All methods throw UserError.
 */
export interface TableLog {
  readonly layout: Layout;
  /** The version that was read or committed last; undefined before the first commit. */
  readonly snapshot: Snapshot | undefined;
  /** Makes the latest version the snapshot, after it finished a change of this process that the disk stopped half-way. */
  read(): Promise<void>;
  /**
   * Makes a change of the snapshot visible; once it returns, the change survives any crash, and the next version is the
   * snapshot. If another writer committed first it throws LostRace, and nothing of the change is left anywhere.
   */
  commit(change: FileChange): Promise<void>;
  /** Throws unless `erase` can remove these files of the snapshot. */
  tryErase(removed: readonly DataFile[]): Promise<void>;
  /**
   * After the commit of a purge: removes files that left, older versions, entries that name values (S37, S44). Returns
   * a sentence about each thing that may still hold the people.
   */
  erase(): Promise<readonly string[]>;
  /** False if files that were read may have been changed or removed since; absent if that cannot happen. */
  isUnchanged?(): Promise<boolean>;
  /** Paths of files that no reader needs any more, or that dead runs left (S45, S46); may first remove old versions. */
  expired?(): Promise<readonly string[]>;
  /** Differences between the log and the state or the files, for `verify`. Read-only. */
  check?(): Promise<Difference[]>;
  /**
   * Names or paths that lie among the tables but are not part of them, and what quotes one of the `names` of people, so
   * that a purge leaves them.
   */
  foreign?(names: readonly string[]): Promise<readonly string[]>;
}

export interface OpenFilesOptions extends PlaceOptions, TargetOptions, Pick<PurgeOptions, 'forgetCopies'> {
  /** The place as the target takes it: a folder, a file, or an address. */
  readonly place: string;
  /** A storage to be used instead of the place's own. */
  readonly storage?: Storage | undefined;
  /** Time that files which left the table stay for its readers (ms); undefined if that of the last load applies. */
  readonly retentionMs?: number | undefined;
  /** True if only the state is read, and no rows. */
  readonly isStateEnough?: boolean | undefined;
}

export interface OpenPlace {
  readonly storage: Storage;
  /** It has read the latest version. */
  readonly log: TableLog;
  readonly engine: Engine;
  /** An empty folder for files that are not stored yet. */
  readonly folder: string;
  /**
   * Throws a transient failure if another run took this one for dead, and removed the folder; absent where a lock keeps
   * it out.
   */
  checkHeld?(): void;
  /** Closes engine, log and storage; may be called after any failure. */
  close(): Promise<void>;
}

export interface FilesFormat {
  /** One place of it, as messages call it, without an article: `folder`. */
  readonly noun: string;
  /** Opens a place for reading, for rewriting what is there, or for loading; only loading makes a missing place. */
  open(options: OpenFilesOptions, mode: 'read' | 'rewrite' | 'load'): Promise<OpenPlace>;
  /** Finishes a change that a dead writer left half-way; absent if none can be left. Throws UserError. */
  finishChange?(options: OpenFilesOptions): Promise<void>;
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

export function filesAfter(files: readonly DataFile[], { removed, added }: ChangedFiles): readonly DataFile[] {
  const stored = added.map(({ local: _local, footerBytes: _bytes, statistics: _statistics, ...file }) => file);
  return [...without(files, removed), ...stored].sort(byPath);
}
