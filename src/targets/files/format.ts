// This folder: the targets `parquet` and `delta`, over a storage: a table `events` of one Parquet file a day, and a file
// of `user_profiles`. A format adds how a storage is opened, and a manifest, which says what is live and commits.
// `files-place.ts` is an open place. `files-sink.ts`, `people-in-files.ts` and `maintenance.ts` work with it.

import { configError, type UserError } from '../../base/errors.ts';
import type { Difference } from '../../engine/rows/check-rows.ts';
import type { Storage } from '../../storage/storage.ts';
import type { RunRecord } from '../../table/place-state.ts';
import type { Table } from '../../table/tables.ts';
import type { OpenOptions, PlaceOptions } from '../contract.ts';
import type { FileLayout } from './file-layout.ts';
import type { LocalFiles } from './local-files.ts';
import type { PlaceVersion, PlannedCommit } from './place-version.ts';

/** Which files are live, and how a change becomes visible. All methods throw UserError. */
export interface Manifest {
  /** The version that was read or committed last; undefined before the first commit. */
  readonly version: PlaceVersion | undefined;
  /** Of the version: a sentence about each table with files that are damaged, or older than their receipts. */
  readonly damageWarnings: readonly string[];
  /**
   * Reads the latest version; false if it is the one that was known. For a load of profiles it throws a configuration
   * failure if others' files lie where their table would.
   */
  read(): Promise<boolean>;
  /**
   * True if a file of `version` was replaced under its name. Then what was read may be of two versions. Absent if a
   * commit replaces none.
   */
  hasReplacedFiles?(): boolean;
  /**
   * Reads the latest version, has a change of it planned, and makes that visible, together with the state. It also
   * finishes what a killed run left half-way. A change after which all is as before leaves no trace, unless it is a
   * purge, or the first by a new version of this program. Once it returns, no crash undoes it. If another writer
   * commits to a table first, it removes the new files of that table, and throws a transient failure. A change of the
   * table before stays.
   */
  commit<T>(plan: () => Promise<PlannedCommit<T>>): Promise<T>;
  /** Called after the commit of a purge: removes every byte that is no longer part of the tables. */
  erase?(): Promise<void>;
  /** Called at the end of a load: removes what no reader needs any more. Both are absent if a commit leaves nothing. */
  tidy?(): Promise<void>;
  /** Stores how a run ended, if something was loaded before. */
  recordRun(run: RunRecord): Promise<void>;
  /** Files among those of the tables that this program did not write: they stay. */
  foreignFiles(): Promise<string[]>;
  /** Differences beside the live files; absent if readers see these alone. */
  check?(): Promise<Difference[]>;
}

/** One kind of place with Parquet files. */
export interface FilesFormat extends FileLayout {
  openStorage(options: FilesOptions): Promise<Storage>;
  /** True if the place may have been loaded. */
  isLoaded(storage: Storage): Promise<boolean>;
  /** Throws a configuration failure if others' files lie where those of the table would. */
  refuseForeign(storage: Storage): Promise<void>;
  manifestOf(localFiles: LocalFiles, options: FilesOptions, mode: OpenMode): Manifest;
  /** Derives the name of a column from that in the export. */
  columnName(source: string): string;
}

export type FilesOptions = PlaceOptions & Partial<Pick<OpenOptions, 'loadsProfiles' | 'retentionMs'>>;

/** `read` changes nothing; `rewrite` needs a place that was loaded; `load` makes one that is missing. */
export type OpenMode = 'read' | 'rewrite' | 'load';

export const foreignError = (address: string, table: Table['name'] = 'events'): UserError =>
  configError(
    `${address}/${table} holds files that this program did not write: give another place, or move them away` +
      `${table === 'events' ? '' : ', or set user_profiles to false'}.`,
    { where: { file: address } },
  );
