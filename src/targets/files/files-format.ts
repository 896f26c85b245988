import type { Engine } from '../../engine/session/engine.ts';
import type { Storage } from '../../storage/storage.ts';
import type { PurgeOptions } from '../people.ts';
import type { PlaceOptions } from '../place-options.ts';
import type { TargetOptions } from '../target.ts';
import type { TableLog } from './table-log.ts';

/** How the places of one target that keeps Parquet files are opened, and what messages call them. */
export interface FilesFormat {
  /** One place of it, as messages call it, without an article: `folder`, `database`. */
  readonly noun: string;
  /**
   * Opens a place, once for each command or run, which closes it again:
   * - `read`: nothing in the place is changed. A place that is missing is opened all the same, and its log has no
   *   snapshot.
   * - `rewrite`: for `compact` and purges. Throws a configuration failure (`noTableError`) where nothing was loaded,
   *   and makes nothing there.
   * - `load`: makes a place that is missing. Throws a configuration failure for one of another program, and, before the
   *   first load, for others' files in the folders of the tables, which a purge would remove (`refuseForeignFiles`).
   *
   * The last two finish or remove first what a dead run left half-way, and take the lock of a place that has one. Where
   * the commit decides between two writers `openWithoutLock` does all but make the storage and the log.
   */
  open(options: OpenFilesOptions, mode: OpenMode): Promise<OpenPlace>;
  /**
   * Finishes a change that a dead writer left half-way. Called before people are looked up in a place that is opened to
   * read. A writer that is alive finishes its own change. Absent if a commit leaves no such change. Throws UserError.
   */
  finishChange?(options: OpenFilesOptions): Promise<void>;
}

export type OpenMode = 'read' | 'rewrite' | 'load';

export interface OpenFilesOptions extends PlaceOptions, TargetOptions, Pick<PurgeOptions, 'forgetCopies'> {
  /** The place as the target takes it: a folder, a file, or an address. */
  readonly place: string;
  /** A storage to be used instead of the place's own. */
  readonly storage?: Storage | undefined;
  /**
   * Time (ms) that files which left the table stay for its readers. If it is undefined, that of the last load applies,
   * which the log keeps; if there is none either, `DEFAULT_RETENTION_MS`.
   */
  readonly retentionMs?: number | undefined;
  /** True if only the state is read, and no rows. */
  readonly isStateEnough?: boolean | undefined;
}

export interface OpenPlace {
  readonly storage: Storage;
  /** It has read the latest version. */
  readonly log: TableLog;
  readonly engine: Engine;
  /** An empty folder of this run alone, for files that are not stored yet; `close` removes it. */
  readonly folder: string;
  /**
   * Throws a transient failure if another run took this one for dead, and removed the folder: called before each
   * commit. Absent where a lock keeps it out.
   */
  checkHeld?(): void;
  /** Closes engine, log and storage; may be called after any failure. */
  close(): Promise<void>;
}
