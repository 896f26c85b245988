import { readdir } from 'node:fs/promises';
import { undefinedIfAbsent } from '../../../base/errors.ts';
import { tryParseJson } from '../../../base/json.ts';
import { pathLiteral } from '../../../base/sql.ts';
import { isEngineFailure } from '../../../engine/session/engine-errors.ts';
import type { ExportState } from '../../../extract/export-state.ts';
import { withDiskErrors } from '../../../fs/disk-failure.ts';
import type { DiskStorage } from '../../../storage/disk.ts';
import { newPlaceState, type PlaceState, type TableState } from '../../../table/place-state.ts';
import {
  findRemovedDays,
  type Receipts,
  type StoredReceipt,
  withPrunedDays,
  withReceipts,
} from '../../../table/receipts.ts';
import { EVENTS, type TableName, USER_PROFILES } from '../../../table/tables.ts';
import { type FileColumns, hasCurrentColumns, tableColumnsOf } from '../file-layout.ts';
import { countRowsOfFile, hashFile, METADATA_KEYS, readFileColumns } from '../parquet-file.ts';
import { type DamagedFile, newFilesIn, type PlaceChange } from '../place-version.ts';
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
  storedProfilesOf,
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
  const judge = (path: string) =>
    withDiskErrors({ path: storage.fullPath(path), verb: 'used' }, judgeFile(place, stateFile, path));
  const days: Verdict[] = [];
  for (const path of await eventPathsIn(storage)) days.push(await judge(path));
  const profiles = await judge(PROFILES_FILE);
  const { events, removedDays } = eventsAfter(days, stateFile.state.events, engine.clock.now());
  const user_profiles = profilesAfter(profiles, stateFile.state.user_profiles);
  const verdicts = [...days, profiles];
  return {
    isLoaded: true,
    state: { ...stateFile.state, events, user_profiles },
    files: verdicts.flatMap((verdict) => (isPart(verdict) ? verdict.file : [])),
    damagedFiles: verdicts.flatMap((verdict) => (verdict.kind === 'damaged' ? verdict.file : [])),
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

/** What is at a path of a table. */
type Verdict =
  /** No file of ours: a day without one counts as removed. */
  | { readonly kind: 'absent' }
  /** Part of the table: the one that `_dfinery.json` lists. */
  | { readonly kind: 'listed'; readonly file: FolderFile }
  /** Part of the table: a killed run left it half-way. It has its own receipt in place of the stored one. */
  | { readonly kind: 'adopted'; readonly file: FolderFile; readonly receipt: StoredReceipt }
  /** No part of the table, and stays: damaged, or older, or later than a state that was put back. */
  | { readonly kind: 'damaged'; readonly file: DamagedFile };

const isPart = (verdict: Verdict) => verdict.kind === 'listed' || verdict.kind === 'adopted';

/**
 * The interim state, which a commit stores before it changes a file: as after it, but for what a kill would make untrue.
 * By it `judgeFile` knows each file that a kill leaves.
 *
 *   receipt of a new file            as before: the new one is adopted with the file
 *   receipt of a day without a file  as after: the day would else count as removed by a user
 */
export function interimState(versionBefore: FolderVersion, { state: after, fileChanges }: PlaceChange): PlaceState {
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

/**
 * Compares a file with what `_dfinery.json` says of it. The first row counts that is true. A file of the listed size and
 * time has the listed hash. The last column: the steps of `commitToFolder` after which a killed run leaves such a file.
 *
 *   the file                                              is        a kill after
 *   is not there, or its table is not in the state        absent    step 3 removed it, or step 1 of a first load
 *   has the listed hash, and its receipt has rows         listed    step 1, before step 2 or 3 comes to it
 *   has the listed hash                                   adopted   step 1, before step 3 removes it
 *   has a later receipt, and the columns of its table     adopted   step 3 replaced it
 *   has the columns of its table, but had others,
 *   and its receipt                                       adopted   step 2 gave it these
 *   is of profiles without a receipt                      absent    step 1 of their first load: it is not of that load
 *   is any other                                          damaged   none
 */
async function judgeFile(place: FolderPlace, stateFile: StateFile, path: string): Promise<Verdict> {
  const localPath = place.storage.fullPath(path);
  const onDisk = sizeAndTime(localPath);
  const tableName = path === PROFILES_FILE ? USER_PROFILES.name : EVENTS.name;
  const tableState = stateFile.state[tableName];
  if (onDisk === undefined || tableState === undefined) return { kind: 'absent' };
  const listedFile = stateFile.listedFiles.get(path);
  const hasSameSizeAndTime = listedFile?.bytes === onDisk.bytes && listedFile.modified === onDisk.modified;
  const sha256 = hasSameSizeAndTime ? listedFile.sha256 : await hashFile(localPath);
  const hasListedHash = listedFile?.sha256 === sha256;
  // Of profiles it is that of their one receipt.
  const day = dayOfPath(path) ?? [...tableState.receipts.keys()].at(0);
  const storedReceipt = day === undefined ? undefined : tableState.receipts.get(day);
  if (hasListedHash && storedReceipt?.rows_stored !== 0) {
    const { hasOtherColumns, ...file } = listedFile;
    const columns = hasOtherColumns ? await readFileColumns(place.engine, localPath) : file.columns;
    return { kind: 'listed', file: { ...file, ...onDisk, columns } };
  }
  const metadata = await readMetadata(place, path, tableName);
  if (metadata !== undefined && (hasListedHash || isOfKilledRun(metadata, listedFile, storedReceipt, tableState))) {
    const { receipt, columns } = metadata;
    return { kind: 'adopted', file: { tableName, day: receipt.day, path, ...onDisk, sha256, columns }, receipt };
  }
  return day === undefined ? { kind: 'absent' } : { kind: 'damaged', file: { tableName, day, path } };
}

/** True if a killed run wrote a file: later than the stored receipt, or since the file lacked columns of its table. */
function isOfKilledRun(
  { receipt, columns }: FileMetadata,
  listedFile: ListedFile | undefined,
  storedReceipt: StoredReceipt | undefined,
  tableState: TableState,
): boolean {
  // The interim state has the columns of its files already.
  if (!hasCurrentColumns(FOLDER_LAYOUT, columns, tableColumnsOf(FOLDER_LAYOUT, tableState))) return false;
  const changedAt = storedReceipt?.changed_at ?? '';
  const { hasOtherColumns = false } = listedFile ?? {};
  return receipt.changed_at > changedAt || (receipt.changed_at === changedAt && hasOtherColumns);
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
  tableName: TableName,
): Promise<FileMetadata | undefined> {
  const localPath = storage.fullPath(path);
  try {
    const rows = await engine.rows(
      `SELECT decode(key) AS key, decode(value) AS text FROM parquet_kv_metadata(${pathLiteral(localPath)})`,
    );
    const texts = new Map(rows.map(({ key, text }) => [key, String(text)]));
    const receipt = parseReceipt(tryParseJson(texts.get(METADATA_KEYS.receipt) ?? ''), localPath);
    if (texts.get(METADATA_KEYS.table) !== tableName || path !== filePath(receipt.day, tableName)) return undefined;
    if ((await countRowsOfFile(engine, localPath)) !== receipt.rows_stored) return undefined;
    return { receipt, columns: await readFileColumns(engine, localPath) };
  } catch (error) {
    engine.throwIfAborted();
    if (isEngineFailure(error, 'outOfMemory')) throw error;
    return undefined;
  }
}

/** The table of events with the receipts of adopted files. Days whose file is absent are pruned. */
function eventsAfter(days: readonly Verdict[], before: TableState, now: number) {
  const adoptedReceipts = days.flatMap((verdict) => (verdict.kind === 'adopted' ? verdict.receipt : []));
  const receipts = withReceipts(before.receipts, adoptedReceipts);
  const daysWithFile = new Set(days.flatMap((verdict) => (verdict.kind === 'absent' ? [] : verdict.file.day)));
  const removedDays = findRemovedDays(receipts, daysWithFile);
  return { events: { ...before, receipts: withPrunedDays(receipts, removedDays, now) }, removedDays };
}

/** The table of profiles with the receipt of an adopted file. Without its file there is none, unless it has no row. */
function profilesAfter(profiles: Verdict, before: TableState | undefined): TableState | undefined {
  if (profiles.kind === 'adopted' && before !== undefined) {
    return { ...before, receipts: new Map([[profiles.receipt.day, profiles.receipt]]) };
  }
  // A killed first load leaves a table without a receipt, and perhaps without a file.
  const [storedReceipt] = before?.receipts.values() ?? [];
  return isPart(profiles) || storedReceipt?.rows_stored === 0 ? before : undefined;
}
