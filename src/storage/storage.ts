// This folder: where tables of files are stored. This file is the contract. `open.ts` opens the storage of an address:
// `disk.ts` is a folder of a disk, `s3.ts` a bucket. `s3-client.ts` makes its client, and `s3-failures.ts` says what an
// error of it means. `s3-erase.ts` removes objects with their earlier versions. `concurrently.ts` bounds the requests
// that are under way.

import { randomUUID } from 'node:crypto';
import { configError } from '../base/errors.ts';

/** What a listing says of an object. */
export interface StoredObject {
  readonly path: string;
  /** Time at which it was written, by the store's own clock (ms since 1970). */
  readonly modified: number;
}

/** True for an object that `erase` removes with all its versions. */
export type ErasePredicate = (object: StoredObject) => boolean;

/**
 * Where the files of tables are. Paths are relative to the root and use `/`. An object is whole or not there. A kill
 * leaves at most a temporary file in the folder of the object, which `list` shows. What is stored when a method returns
 * survives any crash. A failure of the store is a UserError that names the address. Its kind is `config`
 * if the user must act, `transient` if a retry may succeed, else `system`.
 */
export interface Storage {
  /** The address, for messages: an absolute path, or `s3://BUCKET/PREFIX`. */
  readonly address: string;
  /** A folder on the disk of the root, for files that `moveIn` will take; undefined in a bucket. */
  readonly workFolder: string | undefined;
  /** Reads a whole object into memory; undefined if there is none. */
  read(path: string): Promise<Buffer | undefined>;
  /** Lists everything below a folder whose path comes after `after`, in order of the paths' bytes. */
  list(folder: string, after?: string): AsyncGenerator<StoredObject, void, undefined>;
  /**
   * Creates an object; false if one exists, which then stays as it was. This is the one step that decides between two
   * writers: each text is its writer's own. So a bucket can tell its own object from another if an answer was lost.
   */
  create(path: string, text: string): Promise<boolean>;
  /** Creates or replaces an object, also once the run was stopped: readers see the old or the new one. */
  write(path: string, text: string): Promise<void>;
  /** Moves a local file, on a disk one of `workFolder`, to a path. Readers see the old object or the new one. */
  moveIn(localPath: string, path: string): Promise<void>;
  /**
   * Gives a local file with an object, only to be read. On a disk it is the object itself, else at `copyPath`.
   * If the object is gone, a bucket throws a transient failure: another run has removed it.
   */
  localFile(path: string, copyPath: string): Promise<string>;
  /** Removes objects; missing objects are no failure. */
  remove(paths: readonly string[]): Promise<void>;
  /** Removes these objects below a folder with all their versions, and the earlier versions of all others there. */
  erase(folder: string, shouldErase: ErasePredicate): Promise<void>;
  /**
   * Throws a configuration failure unless `erase` would remove the last byte of these objects. In a bucket it
   * erases an object of its own in the `PROBE_FOLDER`. On a disk it looks whether the folders can be written.
   */
  checkErasable(paths: readonly string[]): Promise<void>;
  close(): void;
}

/** The folder of locks, notes and temporary files. On a disk they are for their owner alone. */
export const OWN_FOLDER = '_dfinery';
/** Folder of objects that a run makes to see what the store does, and removes at once. */
export const PROBE_FOLDER = `${OWN_FOLDER}/probe`;

export async function listAll(storage: Storage, folder: string, after?: string): Promise<StoredObject[]> {
  const objects: StoredObject[] = [];
  for await (const object of storage.list(folder, after)) objects.push(object);
  return objects;
}

export async function hasObjects(storage: Storage, folder: string): Promise<boolean> {
  for await (const _ of storage.list(folder)) return true;
  return false;
}

/** Throws UserError for a store that creates an object which exists: commits would overwrite each other. */
export async function checkConditionalWrites(storage: Storage): Promise<void> {
  const path = `${PROBE_FOLDER}/${randomUUID()}`;
  const isCreated = await storage.create(path, 'first');
  const isCreatedAgain = await storage.create(path, 'second').finally(() => storage.remove([path]));
  if (isCreated && !isCreatedAgain) return;
  throw configError(
    `${storage.address} does not honour "create only if absent" (of a bucket: If-None-Match: *): commits of two ` +
      'writers would overwrite each other. Use a store that does, or a folder on a disk.',
  );
}
