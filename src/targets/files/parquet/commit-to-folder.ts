import { lstat, rmdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { hasCode } from '../../../base/errors.ts';
import type { ExportState } from '../../../extract/export-state.ts';
import type { DiskStorage } from '../../../storage/disk.ts';
import type { PlaceState, TableState } from '../../../table/place-state.ts';
import { type Receipts, withReceipts } from '../../../table/receipts.ts';
import { EVENTS, type TableName, USER_PROFILES } from '../../../table/tables.ts';
import { type FileChange, newFilesIn, type PlaceChange } from '../place-version.ts';
import { rewriteOutdated } from '../rewrite-files.ts';
import {
  type FolderPlace,
  type FolderVersion,
  filePath,
  STATE_FILE,
  stateTextOf,
  storedProfilesOf,
} from './folder-state.ts';

/** Codes of a folder that is gone already, or that holds files. */
const FOLDER_STAYS_CODES: ReadonlySet<string> = new Set(['ENOENT', 'ENOTEMPTY', 'EEXIST']);

/**
 * Makes a change of a folder whose lock is held, in four steps. Each is on the disk before the next. `readFolder` reads
 * what a kill leaves, and the same command, run again, does the rest:
 *
 *   killed in   leaves
 *   step 2      files of which some lack a column, or have it in its earlier type
 *   step 3      days of which some are as before. A row that two of them share may be in neither
 *               people in some days after a purge: they are on the suppression list
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

/**
 * The interim state of a commit: as after it, but for what a kill would make untrue.
 *
 *   receipt of a new file            as before: `readFolder` adopts the new one with the file
 *   receipt of a day without a file  as after: the day would else count as removed by a user
 */
function interimState(versionBefore: FolderVersion, { state: after, fileChanges }: PlaceChange): PlaceState {
  const { events: eventsBefore } = versionBefore.state;
  const receiptsOf = (tableName: TableName, tableBefore: TableState | undefined, tableAfter: TableState): Receipts => {
    const newFiles = newFilesIn(fileChanges).filter((file) => file.tableName === tableName);
    if (newFiles.length === 0) return tableAfter.receipts;
    const newDays = new Set(newFiles.map(({ day }) => day));
    const otherReceipts = [...tableAfter.receipts.values()].filter(({ day }) => !newDays.has(day));
    return withReceipts(tableBefore?.receipts ?? new Map(), otherReceipts);
  };
  const { events, user_profiles: profiles } = after;
  return {
    ...after,
    events: {
      ...events,
      receipts: receiptsOf(EVENTS.name, eventsBefore, events),
      exportState: events.exportState && interimCursor(eventsBefore.exportState, events.exportState),
    },
    user_profiles: profiles && {
      ...profiles,
      receipts: receiptsOf(USER_PROFILES.name, storedProfilesOf(versionBefore), profiles),
    },
  };
}

/**
 * The cursor and its companions in an interim state: as before, at first at the start, so that the next run loads the
 * days that have no file yet. By filters and hashed columns people are found in the new files: these are as after.
 */
function interimCursor(before: ExportState | undefined, after: ExportState): ExportState {
  const { start_date, filters, hashed } = after;
  const cursor = before ?? { ...after, ...(start_date && { from_date: start_date }) };
  return { ...cursor, ...(filters && { filters }), ...(hashed && { hashed }) };
}
