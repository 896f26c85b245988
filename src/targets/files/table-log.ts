// This folder: a table of Parquet files, once for all targets that keep one: writing a batch, superseded rows, derived
// tables, compaction, verification, people, purge, report. A target adds a format (how a place is opened), a log (which
// files are live, and how a change becomes visible) and, unless disk and bucket serve it, a storage (where bytes are).

import { UserError } from '../../base/errors.ts';
import type { DescribedColumn } from '../../engine/conversions.ts';
import type { TableName } from '../../table/columns.ts';
import type { Difference } from '../../table/differences.ts';
import type { TableState } from '../../table/state.ts';
import { byPath, type DataFile, type NewFile, without } from './data-file.ts';

/**
 * Which files of a place are live, and how a change becomes visible in one step: five methods, and three more that only
 * some logs need. All methods throw UserError. `test/support/targets/example-log.ts` is a whole one. In this order the
 * work calls them, of a place that is open:
 * - a read: what is wanted of `snapshot`; `isUnchanged`; where that is false `read`, and the work again.
 * - a load: `expired`; then one `commit` for each batch. After a failure `read`, before the next commit.
 * - `compact`: one `commit`, or several in a bucket, where the disk of this machine must hold the files of each.
 * - the trial of a purge: `tryErase`, `foreign`.
 * - a purge: `tryErase`, `commit`, `erase`. After a lost race `read`, and all again from the look-up.
 * - `verify`: a read, with `check`.
 */
export interface TableLog {
  /** How files are written; it is read once, before the first is. */
  readonly layout: Layout;
  /** The version that was read or committed last; undefined before the first commit. */
  readonly snapshot: Snapshot | undefined;
  /**
   * Makes the latest version the snapshot, and takes in what other programs have changed. If the disk stopped a change
   * of this process half-way, that change is finished first. Called when a place is opened, and after a failure.
   */
  read(): Promise<void>;
  /**
   * Stores the added files. Then it makes removed files, added files and the next state visible in one step; the next
   * version is then the snapshot. Once `commit` returns, the change survives any crash. If another writer committed
   * after this log was read, `commit` throws LostRace, and nothing of the change is left anywhere: the log has erased
   * what it stored. After any other failure, and after a kill, the change is not visible, unless only the answer to
   * that one step was lost. Therefore its files stay until `expired` names them.
   */
  commit(change: FileChange): Promise<void>;
  /**
   * Throws unless `erase` can remove these files of the snapshot, and all that is not live: `tryEraseFiles`. Changes
   * nothing that readers see. Called before anybody is deleted at the service, and again before the commit of a purge.
   */
  tryErase(removed: readonly DataFile[]): Promise<void>;
  /**
   * Called after the commit of a purge. Removes every file that is not live (`eraseFiles`) unless `commit` has removed
   * it, as where each date is one file that is replaced; also files of earlier versions and of dead runs; older
   * versions of the log (`eraseBefore`); and every entry of the log that names values. Files that another
   * writer stored after that commit stay, since it may still commit them. Returns a sentence about each thing that may
   * still hold the people. If it fails or is killed, the same purge is run again: it commits even if nobody is found,
   * and finishes the removal.
   */
  erase(): Promise<readonly string[]>;
  /** False if files of the snapshot may have been changed or removed since: a purge removes them at once. */
  isUnchanged(): Promise<boolean>;
  /**
   * Paths of files that no reader needs any more, and of files that dead runs left: `expiredFiles`. It may
   * remove old versions first; the caller removes the files. A failure is only logged. Absent if files leave with the
   * commit.
   */
  expired?(): Promise<readonly string[]>;
  /**
   * Differences in the log itself, for `verify`: a schema other than that of the state, or a file that readers see and
   * no table has. Read-only. Absent where nothing but the files can differ.
   */
  check?(): Promise<Difference[]>;
  /**
   * Names or paths that lie among the tables but are not part of them, and names of things that quote one of the
   * `names` of people. A purge leaves all of these. Absent where a purge leaves nothing of others.
   */
  foreign?(names: readonly string[]): Promise<readonly string[]>;
}

/** How files are written. All is absent for a log that names its files, and whose format sets no conditions. */
export interface Layout {
  /**
   * True for readers that find files by a glob pattern: one file a date, under a name that never changes, and the same
   * columns in the same order in all, so that a batch rewrites the dates of its rows. Else it adds files,
   * and a file lacks columns without a value: these can change their type without a new file.
   */
  readonly hasOneFilePerDate?: boolean;
  /**
   * Derives the name of a column from its name in the export, before equal names are numbered: for readers that refuse
   * some characters. Absent: names are those of the export.
   */
  columnName?(source: string): string;
  /** True if files also hold the date of their rows as a column; else it is in their path and in the log alone. */
  readonly hasDateColumn?: boolean;
  /** The option of COPY that writes the field ids of a file's columns: `FieldIds` gives these out. */
  fieldIds?(table: TableName, columns: readonly DescribedColumn[]): string;
}

/** A version of the place: the state, and the live files of all tables. */
export interface Snapshot {
  readonly state: TableState;
  /** Files of all tables, in the order of their paths. */
  readonly files: readonly DataFile[];
  /**
   * Derived tables that do not follow from these `events`, because a run died or lost a race between its commits. The
   * next commit derives them anew. There are none where one step commits all tables.
   */
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

/** The files of the next snapshot. */
export function filesAfter(files: readonly DataFile[], { removed, added }: ChangedFiles): readonly DataFile[] {
  const stored = added.map(({ local: _local, footerBytes: _bytes, statistics: _statistics, ...file }) => file);
  return [...without(files, removed), ...stored].sort(byPath);
}
