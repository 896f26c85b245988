// This folder: the target `parquet`: a folder with one Parquet file a day, which readers find by a glob pattern.
//
//   `folder-state.ts`       the paths, and `_dfinery.json`, which says what the folder holds
//   `commit-to-folder.ts`   replaces the files, then `_dfinery.json`
//   `read-folder.ts`        reads both, and judges what a kill left half-way (`judgeFile`); the next commit finishes it
//
// Each file carries its own receipt. A journal would instead need all new files beside all old ones at one time.

import { configError } from '../../../base/errors.ts';
import { removeTemporaries } from '../../../fs/atomic-file.ts';
import { makeFolders } from '../../../fs/folders.ts';
import { withLockFile } from '../../../fs/lock.ts';
import { DiskStorage } from '../../../storage/disk.ts';
import { listAll, OWN_FOLDER } from '../../../storage/storage.ts';
import { EVENTS, TABLES } from '../../../table/tables.ts';
import { type FilesFormat, foreignFilesError } from '../format.ts';
import type { PlaceChange } from '../place-version.ts';
import { commitToFolder } from './commit-to-folder.ts';
import {
  dayOfPath,
  FOLDER_LAYOUT,
  type FolderPlace,
  type FolderVersion,
  LOCK_FILE,
  PROFILES_FILE,
  readStateFile,
  STATE_FILE,
  sizeAndTime,
  stateTextOf,
  storedProfilesOf,
} from './folder-state.ts';
import { readFolder } from './read-folder.ts';

export const PARQUET: FilesFormat<FolderVersion, DiskStorage> = {
  layout: FOLDER_LAYOUT,
  openStorage: async ({ address }) => new DiskStorage(address),
  mayBeLoaded: async (storage) => (await readStateFile(storage)) !== undefined,
  async refuseForeignFiles(storage, tableName) {
    const objects = await listAll(storage, tableName);
    if (objects.length === 0) return;
    // Read last: another process may have made the first commit meanwhile.
    const stateFile = await readStateFile(storage);
    if (stateFile?.state[tableName] !== undefined) return;
    const isStateLost = stateFile === undefined && objects.some(({ path }) => dayOfPath(path) !== undefined);
    if (!isStateLost) throw foreignFilesError(storage.address, tableName);
    throw configError(
      `${storage.address} holds files of this program, but its ${STATE_FILE} is gone: restore it from a copy, or move ` +
        'the files away.',
    );
  },

  // Commits exclude each other by a lock.
  async refuseUnsafeCommits() {},

  read: readFolder,
  async isLatest(place, version) {
    const stateFile = await readStateFile(place.storage);
    return stateFile?.text === version.stateFile?.text && !hasReplacedFiles(place, version);
  },

  // A file with a column that a writer has just added looks damaged beside the state before.
  couldMixVersions: (place, version) => version.damagedFiles.length > 0 || hasReplacedFiles(place, version),
  commit: (place, _before, prepare) =>
    withFolderLock(place, async (version, checkHeld) => {
      const { change, result } = await prepare(version);
      place.runFolder.checkHeld();
      if (change === undefined && !version.isLoaded) return { version, result };
      // Without a change of its own, what a killed run left is committed.
      const folderChange: PlaceChange = change ?? { kind: 'load', state: version.state, fileChanges: [] };
      return { version: await commitToFolder(place, version, folderChange, checkHeld), result };
    }),

  // What a killed run left waits for the next commit: a run that was stopped ends within seconds.
  recordRun: (place, _before, lastRun) =>
    withFolderLock(place, async (version, checkHeld) => {
      checkHeld();
      const text = stateTextOf({ ...version, state: { ...version.state, lastRun } });
      if (version.isLoaded) await place.storage.write(STATE_FILE, text);
    }),

  async findForeignFiles({ storage }, version) {
    const foreignFiles: { path: string; isSeenByReaders: boolean }[] = [];
    for (const { name } of TABLES) {
      const isOwnTable = name === EVENTS.name || storedProfilesOf(version) !== undefined;
      for (const { path } of await listAll(storage, name)) {
        if (isOwnTable && (dayOfPath(path) !== undefined || path === PROFILES_FILE)) continue;
        foreignFiles.push({ path, isSeenByReaders: isOwnTable && path.endsWith('.parquet') });
      }
    }
    return foreignFiles;
  },

  // A commit leaves nothing of the files that it replaces.
  async eraseHistory() {},
  async removeExpired() {},
};

/** True if a file was replaced, or removed, since it was read. */
function hasReplacedFiles({ storage }: FolderPlace, { files }: FolderVersion): boolean {
  return files.some(({ path, bytes, modified }) => {
    const onDisk = sizeAndTime(storage.fullPath(path));
    return onDisk?.bytes !== bytes || onDisk.modified !== modified;
  });
}

/** Reads the folder under its lock, and works on it. */
async function withFolderLock<T>(
  place: FolderPlace,
  work: (version: FolderVersion, checkHeld: () => void) => Promise<T>,
) {
  const { storage, options } = place;
  const { address, clock, lockWaitMs: waitMs, signal } = options;
  const lock = { subject: `the folder ${address}`, clock, waitMs, signal };
  await makeFolders(storage.fullPath(OWN_FOLDER));
  return withLockFile(storage.fullPath(LOCK_FILE), lock, async (checkHeld) => {
    await removeTemporaries(storage.fullPath(STATE_FILE)).catch(() => undefined);
    return work(await readFolder(place), checkHeld);
  });
}
