import { readdir } from 'node:fs/promises';
import { undefinedIfAbsent } from '../../../base/errors.ts';
import { tryParseJson } from '../../../base/json.ts';
import { pathLiteral } from '../../../base/sql.ts';
import { isEngineFailure } from '../../../engine/session/engine-errors.ts';
import { withDiskErrors } from '../../../fs/disk-failure.ts';
import type { DiskStorage } from '../../../storage/disk.ts';
import { newPlaceState, type TableState } from '../../../table/place-state.ts';
import { findRemovedDays, type StoredReceipt, withPrunedDays, withReceipts } from '../../../table/receipts.ts';
import { EVENTS, type TableName, USER_PROFILES } from '../../../table/tables.ts';
import { type FileColumns, fileColumns, hasCurrentColumns } from '../file-layout.ts';
import { countRowsOfFile, hashFile, METADATA_KEYS, readFileColumns } from '../parquet-file.ts';
import type { DamagedFile } from '../place-version.ts';
import { parseReceipt } from '../stored-state.ts';
import {
  DATA_FILE,
  dayOfPath,
  FOLDER_LAYOUT,
  type FolderFile,
  type FolderPlace,
  type FolderVersion,
  filePath,
  type ListedFile,
  PROFILES_FILE,
  readStateFile,
  type StateFile,
  sizeAndTime,
} from './folder-state.ts';

const EMPTY_FOLDER: FolderVersion = {
  isLoaded: false,
  state: newPlaceState(null),
  files: [],
  damagedFiles: [],
  removedDays: [],
  stateFile: undefined,
};

/** Reads a folder: compares each file with what `_dfinery.json` says of it, then corrects the state. */
export async function readFolder(place: FolderPlace): Promise<FolderVersion> {
  const { engine, storage } = place;
  const stateFile = await readStateFile(storage);
  if (stateFile === undefined) return EMPTY_FOLDER;
  const compareAt = (path: string) =>
    withDiskErrors({ path: storage.fullPath(path), verb: 'used' }, compareFile(place, stateFile, path));
  const days: FileComparison[] = [];
  for (const path of await eventPathsIn(storage)) days.push(await compareAt(path));
  const profiles = await compareAt(PROFILES_FILE);
  const { events, removedDays } = eventsWith(stateFile.state.events, days, engine.clock.now());
  const user_profiles = profilesWith(stateFile.state.user_profiles, profiles);
  return {
    isLoaded: true,
    state: { ...stateFile.state, events, user_profiles },
    files: [...days, profiles].flatMap(({ file }) => file ?? []),
    damagedFiles: [...days, profiles].flatMap(({ damagedFile }) => damagedFile ?? []),
    removedDays,
    stateFile,
  };
}

/** The paths of the files of all days that have a folder, whether or not the file is there. */
async function eventPathsIn(storage: DiskStorage): Promise<string[]> {
  const names = (await readdir(storage.fullPath(EVENTS.name)).catch(undefinedIfAbsent)) ?? [];
  const paths = names.sort().map((name) => `${EVENTS.name}/${name}/${DATA_FILE}`);
  return paths.filter((path) => dayOfPath(path) !== undefined);
}

/** What is at a path of a table: `file`, if it is part of the table; else `damagedFile`; neither, if no file is ours. */
interface FileComparison {
  readonly file?: FolderFile;
  /** Of an adopted file: its own, in place of the stored one. */
  readonly receipt?: StoredReceipt;
  readonly damagedFile?: DamagedFile;
}

/**
 * Compares a file with what `_dfinery.json` says of it. The first row counts that is true. A file of the listed size and
 * time has the listed hash.
 *
 *   the file                                             is
 *   is not there, or its table is not in the state       no file of ours: its day counts as removed
 *   has its hash, and its receipt does not say "no row"  unchanged: it was copied at most
 *   has its hash                                         adopted: a killed run was to remove it
 *   has a later receipt, and the columns of its table    adopted: a killed run wrote it
 *   has the columns of its table, but had others,
 *   and its receipt                                      adopted: a killed run gave it these
 *   is of profiles without a receipt                     no file of ours: a killed first load has not stored it
 *   is any other                                         damaged, or older; or later than a state that was put back
 *
 * A killed run has stored the columns of its files before them. An adopted file brings its receipt.
 */
async function compareFile(place: FolderPlace, stateFile: StateFile, path: string): Promise<FileComparison> {
  const { engine, storage } = place;
  const localPath = storage.fullPath(path);
  const onDisk = sizeAndTime(localPath);
  const table = path === PROFILES_FILE ? USER_PROFILES.name : EVENTS.name;
  const tableState = stateFile.state[table];
  if (onDisk === undefined || tableState === undefined) return {};
  const listedFile = stateFile.listedFiles.get(path);
  // Of profiles it is that of their one receipt.
  const day = dayOfPath(path) ?? [...tableState.receipts.keys()].at(0);
  const storedReceipt = day === undefined ? undefined : tableState.receipts.get(day);
  const hasSameSizeAndTime = listedFile?.bytes === onDisk.bytes && listedFile.modified === onDisk.modified;
  const sha256 = hasSameSizeAndTime ? listedFile.sha256 : await hashFile(localPath);
  const hasSameHash = listedFile?.sha256 === sha256;
  if (hasSameHash && storedReceipt?.rows_stored !== 0) {
    const columns = listedFile.columns ?? (await readFileColumns(engine, localPath));
    return { file: { ...listedFile, ...onDisk, columns } };
  }
  const ownMetadata = await readMetadata(place, path, table);
  if (ownMetadata !== undefined && (hasSameHash || isOfKilledRun(ownMetadata, listedFile, storedReceipt, tableState))) {
    const { receipt, columns } = ownMetadata;
    return { file: { table, day: receipt.day, path, ...onDisk, sha256, columns }, receipt };
  }
  return day === undefined ? {} : { damagedFile: { table, day, path } };
}

/** True if a killed run wrote a file: later than the stored receipt, or since the file lacked columns of its table. */
function isOfKilledRun(
  { receipt, columns }: FileMetadata,
  listedFile: ListedFile | undefined,
  storedReceipt: StoredReceipt | undefined,
  tableState: TableState,
): boolean {
  if (!hasCurrentColumns(FOLDER_LAYOUT, columns, fileColumns(FOLDER_LAYOUT, tableState))) return false;
  const changedAt = storedReceipt?.changed_at ?? '';
  const hadOtherColumns = listedFile !== undefined && listedFile.columns === undefined;
  return receipt.changed_at > changedAt || (receipt.changed_at === changedAt && hadOtherColumns);
}

/** What a file says of itself. */
interface FileMetadata {
  readonly receipt: StoredReceipt;
  readonly columns: FileColumns;
}

/** Reads what a file says of itself; undefined if it is unreadable, or this program did not write it for this path. */
async function readMetadata(
  { engine, storage }: FolderPlace,
  path: string,
  table: TableName,
): Promise<FileMetadata | undefined> {
  const localPath = storage.fullPath(path);
  try {
    const rows = await engine.rows(
      `SELECT decode(key) AS key, decode(value) AS text FROM parquet_kv_metadata(${pathLiteral(localPath)})`,
    );
    const texts = new Map(rows.map(({ key, text }) => [key, String(text)]));
    const receipt = parseReceipt(tryParseJson(texts.get(METADATA_KEYS.receipt) ?? ''), localPath);
    if (texts.get(METADATA_KEYS.table) !== table || path !== filePath(receipt.day, table)) return undefined;
    if ((await countRowsOfFile(engine, localPath)) !== receipt.rows_stored) return undefined;
    return { receipt, columns: await readFileColumns(engine, localPath) };
  } catch (error) {
    engine.throwIfAborted();
    if (isEngineFailure(error, 'outOfMemory')) throw error;
    return undefined;
  }
}

/** The table of events with the receipts of adopted files. Days whose file is missing are pruned. */
function eventsWith(before: TableState, days: readonly FileComparison[], now: number) {
  const adoptedReceipts = days.flatMap(({ receipt }) => receipt ?? []);
  const receipts = withReceipts(before.receipts, adoptedReceipts);
  const daysWithFile = new Set(days.flatMap(({ file, damagedFile }) => (file ?? damagedFile)?.day ?? []));
  const removedDays = findRemovedDays(receipts, daysWithFile);
  return { events: { ...before, receipts: withPrunedDays(receipts, removedDays, now) }, removedDays };
}

/** The table of profiles with the receipt of an adopted file. Without its file there is none, unless it has no row. */
function profilesWith(before: TableState | undefined, { file, receipt }: FileComparison): TableState | undefined {
  if (before !== undefined && receipt !== undefined) return { ...before, receipts: new Map([[receipt.day, receipt]]) };
  // A killed first load leaves a table without a receipt, and perhaps without a file.
  const [storedReceipt] = before?.receipts.values() ?? [];
  return file !== undefined || storedReceipt?.rows_stored === 0 ? before : undefined;
}
