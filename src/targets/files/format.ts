// This folder: the targets `parquet` and `delta`, over a storage: a table `events` of one Parquet file a day, and a
// file of `user_profiles`. A format says how a version of a place is read, and how a change becomes the next version:
//
//   commit(place, before, prepare)   the format reads the latest version, under a lock or on condition that it stays so
//     prepare(version)               the caller writes new files on this machine, and gives the change that they make
//   the next version                 the format stores files and state: now readers see the change
//
//   what a user does           `files-sink.ts` loads, `people-in-files.ts` erases, `maintenance.ts` does the rest
//   the place                  `open-place.ts`, `place-version.ts` is what it holds, `stored-state.ts` checks its JSON
//   its files                  `local-files.ts` has them on this machine, `file-layout.ts` says which columns they have
//   stored files               `read-files.ts`
//   new files                  `write-batch.ts` of days, `rewrite-files.ts` of stored files
//   one Parquet file           `parquet-file.ts`

import { configError, type UserError } from '../../base/errors.ts';
import type { Engine } from '../../engine/session/engine.ts';
import type { RunFolder } from '../../fs/run-folder.ts';
import type { Storage } from '../../storage/storage.ts';
import type { RunRecord } from '../../table/place-state.ts';
import type { TableName } from '../../table/tables.ts';
import type { PlaceOptions } from '../contract.ts';
import type { FileLayout } from './file-layout.ts';
import type { LocalFiles } from './local-files.ts';
import type { PlaceVersion, PreparedChange } from './place-version.ts';

/**
 * One kind of place with Parquet files. Its methods throw UserError, or what `withUserErrors` turns into one. They take
 * versions and storages that the same format has made: TypeScript does not check that.
 */
export interface FilesFormat<V extends PlaceVersion = PlaceVersion, S extends Storage = Storage> {
  readonly layout: FileLayout;

  // To open a place. All that refuses it throws a configuration failure.

  openStorage(options: PlaceOptions): Promise<S>;
  /** False if the place was surely never loaded. */
  mayBeLoaded(storage: S): Promise<boolean>;
  /** Refuses files of others where those of a table without rows would lie. */
  refuseForeignFiles(storage: S, tableName: TableName): Promise<void>;
  /** Refuses, before a first load, a storage in which commits of two writers would overwrite each other. */
  refuseUnsafeCommits(storage: S): Promise<void>;

  // To read it.

  /** Reads the latest version. */
  read(place: OpenPlace<S>): Promise<V>;
  /** True if nobody has changed the place since a version was read. */
  isLatest(place: OpenPlace<S>, version: V): Promise<boolean>;
  /** True if what was read of `version` may be of two versions, since files were replaced under their names. */
  couldMixVersions(place: OpenPlace<S>, version: V): boolean;
  /** The files among those of the tables that this program did not write, and whether readers see them. They stay. */
  findForeignFiles(
    place: OpenPlace<S>,
    version: V,
  ): Promise<{ readonly path: string; readonly isSeenByReaders: boolean }[]>;

  // To change it.

  /**
   * Reads the latest version, has a change of it prepared, and makes that visible, together with the state. It also
   * finishes what a killed run left half-way. Gives the version after it, and the result.
   *
   * Once it returns, no crash undoes it. A change after which all is as before leaves no trace, unless it is a purge,
   * or the first by a new version of this program. If another writer commits to a table first, it removes the new files
   * that are in no table yet, and throws a transient failure. A change of the table before stays.
   */
  commit<T>(
    place: OpenPlace<S>,
    before: V,
    prepare: (version: PlaceVersion) => Promise<PreparedChange<T>>,
  ): Promise<{ readonly version: V; readonly result: T }>;
  /** Stores how a run ended, if something was loaded before. */
  recordRun(place: OpenPlace<S>, version: V, run: RunRecord): Promise<void>;
  /** Removes, after the commit of a purge, all bytes that are no longer part of the tables. */
  eraseHistory(place: OpenPlace<S>, version: V): Promise<void>;
  /** Removes, at the end of a load, what no reader needs any more. */
  removeExpired(place: OpenPlace<S>, version: V): Promise<void>;
}

/** A place that is open: its storage, and what this run has on this machine. */
export interface OpenPlace<S extends Storage = Storage> {
  readonly format: FilesFormat;
  readonly options: PlaceOptions;
  readonly storage: S;
  readonly runFolder: RunFolder;
  readonly engine: Engine;
  readonly localFiles: LocalFiles;
  /** Time that files which left a Delta table stay for its readers (ms). Only a load lets it end: else Infinity. */
  readonly retentionMs: number;
  /** True if a table of profiles by another program is refused, as by a load of profiles; else it is passed over. */
  readonly refusesForeignProfiles: boolean;
}

export const foreignFilesError = (address: string, tableName: TableName): UserError =>
  configError(
    `${address}/${tableName} holds files that this program did not write: give another place, or move them away` +
      `${tableName === 'events' ? '' : ', or set user_profiles to false'}.`,
  );
