// This folder: the target `parquet`: a folder with one Parquet file a day, which readers find by a glob pattern.
// `_dfinery.json` says what it holds; a commit replaces it last. Each file carries its own receipt, so no journal is
// needed. `read-folder.ts` finds what a kill left half-way, and `commit-to-folder.ts` mends it.

import { join } from 'node:path';
import { doublingPauses, retry } from '../../../base/retry.ts';
import { makeFolders } from '../../../fs/folders.ts';
import { checkLocalPath } from '../../../fs/local-path.ts';
import { LOCK_PAUSES, ownerState, withLockFile } from '../../../fs/lock.ts';
import { DiskStorage } from '../../../storage/disk.ts';
import { hasObjects, listAll, OWN_FOLDER } from '../../../storage/storage.ts';
import { EVENTS, TABLES, USER_PROFILES } from '../../../table/tables.ts';
import { type FilesFormat, type FilesPlace, foreignFilesError } from '../format.ts';
import type { PlaceChange, PlaceVersion, PlannedCommit } from '../place-version.ts';
import { commitToFolder } from './commit-to-folder.ts';
import { dayOfPath, FOLDER_LAYOUT, LOCK_FILE, PROFILES_FILE } from './folder-state.ts';
import { type FolderVersion, readFolder, readStateText, sizeAndTime } from './read-folder.ts';

export const PARQUET: FilesFormat<FolderVersion> = {
  layout: FOLDER_LAYOUT,
  async openStorage({ address }) {
    checkLocalPath(address);
    return new DiskStorage(address);
  },
  mayBeLoaded: async (storage) => (await readStateText(storage)) !== undefined,
  async refuseForeignFiles(storage) {
    if (!(await hasObjects(storage, EVENTS.name))) return;
    // Read last: another process may have made the first commit meanwhile.
    if ((await readStateText(storage)) === undefined) throw foreignFilesError(storage.address);
  },

  async read(place, before) {
    const { storage, mode, options } = place;
    // A folder is read again because a writer may have changed it meanwhile.
    if (before !== undefined) await awaitWriter(place);
    const version = await readFolder(place);
    if (mode === 'load' && options.loadsProfiles === true && !hasProfiles(version)) {
      if (await hasObjects(storage, USER_PROFILES.name)) throw foreignFilesError(storage.address, USER_PROFILES.name);
    }
    const isLatest = before?.stateFile.text === version.stateFile.text && !hasReplacedFiles(place, before);
    return isLatest ? before : version;
  },

  hasReplacedFiles,
  commit: (place, _before, plan) => commitUnderLock(place, plan),

  async recordRun(place, _before, lastRun) {
    await commitUnderLock(place, async (version) => {
      const change = mendingChange({ ...version, state: { ...version.state, lastRun } });
      return { change, report: undefined };
    });
  },

  // A commit leaves nothing that is no longer part of the tables.
  erase: async () => {},
  tidy: async () => {},

  async foreignFiles({ storage }, version) {
    const isInTable = (path: string) => path.startsWith(`${EVENTS.name}/`) || hasProfiles(version);
    const isOwn = (path: string) => dayOfPath(path) !== undefined || (path === PROFILES_FILE && isInTable(path));
    const objects = await Promise.all(TABLES.map(({ name }) => listAll(storage, name)));
    const foreignObjects = objects.flat().filter(({ path }) => !isOwn(path));
    return foreignObjects.map(({ path }) => ({ path, isSeenByReaders: isInTable(path) && path.endsWith('.parquet') }));
  },
};

/** Waits, within bounds, for a writer that is at work. */
async function awaitWriter({ storage, options }: FilesPlace): Promise<void> {
  const { clock, lockWaitMs: waitMs, signal } = options;
  const isFree = () => {
    try {
      return ownerState(join(storage.address, LOCK_FILE)) !== 'alive' || undefined;
    } catch {
      // Who may only read the days cannot look at the lock.
      return true;
    }
  };
  await retry({ pauses: doublingPauses(waitMs, LOCK_PAUSES), clock, signal }, isFree);
}

function hasReplacedFiles({ storage }: FilesPlace, { files }: FolderVersion): boolean {
  return files.some(({ path, bytes, modified }) => {
    const onDisk = sizeAndTime(join(storage.address, path));
    return onDisk?.bytes !== bytes || onDisk.modified !== modified;
  });
}

/** Plans under the lock, on a folder that is read anew. Without a change it stores what a killed run left half-way. */
async function commitUnderLock<T>(place: FilesPlace, plan: (version: PlaceVersion) => Promise<PlannedCommit<T>>) {
  const { storage, runFolder, options } = place;
  const { clock, lockWaitMs: waitMs, signal, address } = options;
  await makeFolders(join(storage.address, OWN_FOLDER));
  const lock = { what: `the folder ${address}`, clock, waitMs, signal };
  return withLockFile(join(storage.address, LOCK_FILE), lock, async (checkHeld) => {
    const version = await readFolder(place);
    const { change = mendingChange(version), report } = await plan(version);
    runFolder.checkHeld();
    if (change === undefined) return { version, report };
    return { version: await commitToFolder(place, version, change, checkHeld), report };
  });
}

/** A change without files: its commit finishes what a killed run left half-way. */
const mendingChange = ({ isLoaded, state }: PlaceVersion): PlaceChange | undefined =>
  isLoaded ? { kind: 'load', state, files: [] } : undefined;

/** True if the file of profiles is one of this program, also if it is damaged. */
const hasProfiles = ({ state, damagedFiles }: FolderVersion): boolean =>
  state.user_profiles !== undefined || damagedFiles.some(({ table }) => table === USER_PROFILES.name);
