// This folder: a table of Parquet files, once for all targets that keep one: writing a batch, superseded rows, derived
// tables, compaction, verification, people, purge, report. A target adds a log (which files are live, and how a change
// becomes visible) and a storage (where bytes are). docs/targets.md is the contract.

import { UserError } from '../../base/errors.ts';
import type { TableName } from '../../table/columns.ts';
import type { Difference } from '../../table/differences.ts';
import type { PlannedColumn } from '../../table/plan.ts';
import type { TableState } from '../../table/state.ts';
import type { DescribedColumn } from '../sql/columns.ts';
import type { Engine } from '../sql/engine/engine.ts';
import type { Storage } from '../storage/storage.ts';
import type { PlaceOptions } from '../target.ts';

/** What readers of a table expect of its files. */
export interface Layout {
  /** `APPEND` for a log that names the files. */
  readonly writeMode: WriteMode;
  /** The name that a column gets by its name in the export, before it is told apart from others. */
  columnName?(source: string): string;
  /** True if files hold the date of their rows as a column, too. */
  readonly hasDateColumn?: boolean;
  /** The option of COPY that gives the columns of a file their field ids. */
  fieldIds?(table: TableName, columns: readonly DescribedColumn[]): string;
}

/** What DuckDB says of a column of a file that it wrote. Of a list the numbers are those of its elements. */
export interface ColumnStatistics {
  readonly isList: boolean;
  readonly bytes: number;
  readonly values: number;
  readonly nulls: number;
  readonly least: string | null;
  readonly greatest: string | null;
}

/** A file that was written, with what its footer says. */
export interface WrittenFile {
  readonly local: string;
  readonly rows: number;
  readonly bytes: number;
  /** Of the whole file, in hex. */
  readonly sha256: string;
  readonly footerBytes: number;
  /** By column. */
  readonly statistics: ReadonlyMap<string, ColumnStatistics>;
}

/** A Parquet file of a table. */
export interface DataFile {
  readonly table: TableName;
  /** From the root of the storage, with `/`. */
  readonly path: string;
  /** Identifies the content: every new file has another one. */
  readonly id: string;
  /** The date of its rows as text (the partition); null for rows without one. */
  readonly date: string | null;
  readonly rows: number;
  readonly bytes: number;
  /** Of the whole file, in hex; undefined if the log does not say. */
  readonly sha256: string | undefined;
  /** Names of the columns in the file, in no order; the others are NULL in all of its rows. */
  readonly columns: ReadonlySet<string>;
  /** Rows without a value by column; undefined if the log does not count them. */
  readonly nulls?: ReadonlyMap<string, number>;
  /** Of `events`: rows by the number of the window that last wrote them. Else empty. */
  readonly windows: ReadonlyMap<number, number>;
  /** Of a derived table: the id of the file of `events` that its rows come from. */
  readonly source?: string;
  /** True if `compact` wrote it, in the order that lets filters skip. */
  readonly isSorted: boolean;
  /** Where it lies in the folder of this run; undefined for one that the storage has. */
  readonly local?: string;
}

/** A file that is written, whole, and not part of a table yet. */
export interface NewFile extends DataFile, WrittenFile {
  readonly local: string;
  readonly sha256: string;
}

/** A file that can be read. */
export interface ReadableFile extends DataFile {
  /** The path of the file itself or of a copy, which may only have the columns that are wanted. */
  readonly copy: string;
}

/** Rows of a batch of one date, in a file that is part of no table yet. */
export interface IncomingFile extends WrittenFile {
  /** Null for rows without one. */
  readonly date: string | null;
  /** Rows by the number of their window. */
  readonly windows: ReadonlyMap<number, number>;
}

/** A stored file, and how many of its rows stay. */
interface KeptRows {
  readonly file: ReadableFile;
  readonly rows: number;
}

/** A file of `events` to be written: the rows of a stored file that stay, and rows of a batch. */
export interface FileAfter {
  readonly date: string | null;
  readonly kept: KeptRows | undefined;
  readonly incoming: readonly IncomingFile[];
}

/** Which files of `events` a batch adds and removes, and which columns files have. Pure. */
export interface WriteMode {
  /** The name of a new file in the folder of its date. `id`: of the file. */
  fileName(id: string): string;
  /** Of the planned columns those that the files of the batch have. */
  newColumns(plan: readonly PlannedColumn[]): readonly PlannedColumn[];
  /** Of the planned columns those that a stored file has once it is written anew. `names`: of its columns. */
  keptColumns(plan: readonly PlannedColumn[], names: ReadonlySet<string>): readonly PlannedColumn[];
  /** The files that a batch removes and those that are written. `stored`: all of them. */
  eventsAfter(
    plan: readonly PlannedColumn[],
    stored: readonly KeptRows[],
    incoming: readonly IncomingFile[],
  ): { readonly removed: readonly DataFile[]; readonly written: readonly FileAfter[] };
  /**
   * True if a file may have these columns, each as NAME TYPE. `expected`: of `events` those that the state says, of another
   * table those of its first file.
   */
  fits(table: TableName, actual: readonly string[], expected: readonly string[]): boolean;
}

/** The tables at one moment. */
export interface Snapshot {
  readonly state: TableState;
  /** Of all tables, in the order of their paths. */
  readonly files: readonly DataFile[];
  /** Derived tables that do not follow from these `events`, since a run died or lost a race between its commits. */
  readonly stale: ReadonlySet<TableName>;
}

/** What a batch, a rewrite or a purge makes of a snapshot. The added files wait; nothing live was touched. */
export interface FileChange {
  readonly kind: 'load' | 'rewrite' | 'purge';
  readonly removed: readonly DataFile[];
  readonly added: readonly NewFile[];
  readonly state: TableState;
}

/** Another writer was first: nothing of the change is left. */
export class LostRace extends UserError {
  override readonly name = 'LostRace';

  constructor(place: string) {
    super('transient', `${place}: another writer was first. Nothing of this was kept: run again.`);
  }
}

/** Which files are live, and how a change becomes visible in one step. All methods throw UserError. */
export interface TableLog {
  readonly layout: Layout;
  /** The latest version that this process has read or committed; undefined before the first commit. */
  readonly snapshot: Snapshot | undefined;
  /**
   * Makes the change visible. Done, whatever happens to this process afterwards; or a transient failure if another writer
   * was first, and then nothing of it is left anywhere.
   */
  commit(change: FileChange): Promise<void>;
  /** Reads the latest version; of a change that the disk stopped half-way the rest is done first. */
  refresh(): Promise<void>;
  /** False if the files that a reader looked at may have changed or gone meanwhile; absent if none ever does. */
  isUnchanged?(): Promise<boolean>;
  /** What the log itself says that does not fit the state or the files, for `verify`. Read-only. */
  check(): Promise<Difference[]>;
  /** What lies among the tables and is none of theirs, so that a purge leaves it: names or paths. */
  foreign?(): Promise<readonly string[]>;
  /**
   * Paths of files that no reader needs any more, and of what dead runs left (S45, S46); absent if there never are any. May
   * remove older versions from the log first.
   */
  expired?(): Promise<readonly string[]>;
  /** Throws unless `erase` can do its work on these files of the snapshot. */
  checkErase(removed: readonly DataFile[]): Promise<void>;
  /**
   * After a purge was committed: removes the files that left, older versions of objects, and entries of the log that name
   * values of theirs (S37, S44).
   */
  erase(): Promise<void>;
}

/** What opening a place needs. */
export interface OpenFilesOptions extends PlaceOptions {
  /** A folder, a file, or an address, as the target takes it. */
  readonly place: string;
  /** Stands for the storage of the place; by default the place's own. */
  readonly storage?: Storage | undefined;
  /** Where the data go of a catalog that is to be made; undefined: beside it. */
  readonly data?: string | undefined;
  /** How long files that left the table stay for its readers, ms; undefined: as its last load said. */
  readonly retentionMs?: number | undefined;
  /** True: a change that a dead writer left half-way is finished before the place is read. */
  readonly finishesChange?: boolean | undefined;
  /** True: no rows are to be read. */
  readonly isStateEnough?: boolean | undefined;
}

/** An open place: a target's own storage, log and engine. */
export interface OpenPlace {
  readonly storage: Storage;
  readonly log: TableLog;
  readonly engine: Engine;
  /** An empty folder for files that wait. */
  readonly folder: string;
  /** Releases everything; may be called after any failure. */
  close(): Promise<void>;
}

/** A kind of place: one for each target that keeps Parquet files. */
export interface FilesFormat {
  /** One place of it, as messages call it: `folder`. */
  readonly noun: string;
  /** True if a lock keeps other writers out while a place is open for writing. */
  readonly hasOneWriter: boolean;
  /** Opens a place: to read, to change what is there, or to load, for which it is made if missing. */
  open(options: OpenFilesOptions, mode: 'read' | 'rewrite' | 'load'): Promise<OpenPlace>;
}

/** Rows by window over several files. */
export function windowsOf(files: readonly { readonly windows: ReadonlyMap<number, number> }[]): Map<number, number> {
  const all = new Map<number, number>();
  for (const { windows } of files) {
    for (const [window, rows] of windows) all.set(window, (all.get(window) ?? 0) + rows);
  }
  return all;
}

/** Rows of each window, over all files of `events`. */
export const liveRows = (files: readonly DataFile[]): Map<number, number> =>
  windowsOf(files.filter(({ table }) => table === 'events'));

/** The files of the tables after a change. */
export function filesAfter(
  files: readonly DataFile[],
  { removed, added }: Pick<FileChange, 'removed' | 'added'>,
): readonly DataFile[] {
  const leaving = new Set(removed.map(({ id }) => id));
  const stored = added.map(({ local: _local, footerBytes: _bytes, statistics: _statistics, ...file }) => file);
  return [...files.filter(({ id }) => !leaving.has(id)), ...stored].sort((a, b) => (a.path < b.path ? -1 : 1));
}
