import { lstat, rmdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { hasCode } from '../../../base/errors.ts';
import type { DiskStorage } from '../../../storage/disk.ts';
import type { FileChange, PlaceChange } from '../place-version.ts';
import { rewriteOutdated } from '../rewrite-files.ts';
import { type FolderPlace, type FolderVersion, filePath, STATE_FILE, stateTextOf } from './folder-state.ts';
import { interimState } from './read-folder.ts';

/** Codes of a folder that is gone already, or that holds files. */
const FOLDER_STAYS_CODES: ReadonlySet<string> = new Set(['ENOENT', 'ENOTEMPTY', 'EEXIST']);

/**
 * Makes a change of a folder whose lock is held, in four steps. Each is on the disk before the next. `judgeFile` says
 * what a kill leaves of each file. The same command, run again, does the rest: until then a row that two days share may
 * be in neither, and some days may hold people of a purge: they are on the suppression list.
 *
 * A change without files finishes what a killed run left half-way.
 */
export async function commitToFolder(
  place: FolderPlace,
  before: FolderVersion,
  change: PlaceChange,
  checkHeld: () => void,
): Promise<FolderVersion> {
  const { storage } = place;
  let storedText = before.stateFile?.text;
  const storeState = async (version: FolderVersion) => {
    const text = stateTextOf(version);
    if (text === storedText) return;
    checkHeld();
    await storage.write(STATE_FILE, text);
    storedText = text;
  };
  const files = new Map(before.files.map((file) => [file.path, file]));
  const damagedFiles = new Map(before.damagedFiles.map((file) => [file.path, file]));
  const applyChange = async ({ day, tableName, newFile }: FileChange) => {
    const path = filePath(day, tableName);
    files.delete(path);
    damagedFiles.delete(path);
    checkHeld();
    if (newFile === undefined) return removeFile(storage, path);
    const { localPath, bytes, sha256, columns } = newFile;
    await storage.moveIn(localPath, path);
    const { mtimeMs: modified } = await lstat(storage.fullPath(path));
    files.set(path, { tableName, day, path, bytes, modified, sha256, columns });
  };

  // 1. The state has the new columns before a file has them, and the length of the suppression list before rows leave.
  await storeState({ ...before, state: interimState(before, change) });
  // 2. The other files get the new columns.
  for await (const rewritten of rewriteOutdated(place.localFiles, before.files, change)) await applyChange(rewritten);
  // 3. The files of the change replace the others, in their order. Days without rows lose theirs.
  for (const fileChange of change.fileChanges) await applyChange(fileChange);
  // 4. The state says what is there now.
  const lists = { files: [...files.values()], damagedFiles: [...damagedFiles.values()] };
  const version = { ...before, ...lists, isLoaded: true, state: change.state };
  await storeState(version);
  return version;
}

/** Removes a file, and its folder unless that holds files of others. */
async function removeFile(storage: DiskStorage, path: string): Promise<void> {
  await storage.remove([path]);
  await rmdir(dirname(storage.fullPath(path))).catch((error) => {
    if (!hasCode(error, FOLDER_STAYS_CODES)) throw error;
  });
}
