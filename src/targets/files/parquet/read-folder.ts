import { readdir } from 'node:fs/promises';
import { undefinedIfAbsent } from '../../../base/errors.ts';
import { tryParseJson } from '../../../base/json.ts';
import { pathLiteral } from '../../../base/sql.ts';
import { canWiden } from '../../../cells/types/column-types.ts';
import { zoneOf } from '../../../cells/types/zone.ts';
import type { Engine } from '../../../engine/session/engine.ts';
import { isEngineFailure } from '../../../engine/session/engine-errors.ts';
import { withDiskErrors } from '../../../fs/disk-failure.ts';
import type { DiskStorage } from '../../../storage/disk.ts';
import { newPlaceState, type TableState } from '../../../table/place-state.ts';
import {
  countStoredRows,
  findRemovedDays,
  receiptsOf,
  type StoredReceipt,
  withPrunedDays,
} from '../../../table/receipts.ts';
import { EVENTS, typedColumns, USER_PROFILES } from '../../../table/tables.ts';
import { columnTypeOf, type FileColumns, fileColumns, hasCurrentColumns } from '../file-layout.ts';
import { countRowsOfFile, hashFile, METADATA_KEYS, readFileColumns } from '../parquet-file.ts';
import type { DamagedFile } from '../place-version.ts';
import { parseReceipt, parseTableState } from '../stored-state.ts';
import {
  DATA_FILE,
  dayOfPath,
  FOLDER_LAYOUT,
  type FolderFile,
  type FolderPlace,
  type FolderRecord,
  type FolderVersion,
  filePath,
  PROFILES_FILE,
  type RecordedFile,
  readRecord,
  sizeAndTime,
} from './folder-state.ts';

const EMPTY_FOLDER: FolderVersion = {
  isLoaded: false,
  state: newPlaceState(null),
  files: [],
  damagedFiles: [],
  removedDays: [],
  record: undefined,
};

/**
 * Reads a folder: compares each file with what `_dfinery.json` says of it, then corrects the state. A run stores new
 * columns before it writes files with them.
 */
export async function readFolder(place: FolderPlace): Promise<FolderVersion> {
  const { engine, storage } = place;
  const record = await readRecord(storage);
  if (record === undefined) return EMPTY_FOLDER;
  const compareAt = (path: string) =>
    withDiskErrors({ path: storage.fullPath(path), verb: 'used' }, compareFile(place, record, path));
  const days: FileComparison[] = [];
  for (const path of await eventPathsIn(storage)) days.push(await compareAt(path));
  const profiles = await compareAt(PROFILES_FILE);
  const { events, removedDays } = eventsWith(record.state.events, days, engine.clock.now());
  return {
    isLoaded: true,
    state: { ...record.state, events, user_profiles: profilesWith(record.state.user_profiles, profiles) },
    files: [...days, profiles].flatMap(fileOf),
    damagedFiles: [...days, profiles].flatMap(damagedFileOf),
    removedDays,
    record,
  };
}

/** What is at a path. `metadata`: what an adopted file says of itself. */
type FileComparison =
  | { readonly kind: 'missing' | 'foreign' }
  | { readonly kind: 'unchanged'; readonly file: FolderFile }
  | { readonly kind: 'adopted'; readonly file: FolderFile; readonly metadata: FileMetadata }
  | { readonly kind: 'damaged'; readonly damagedFile: DamagedFile };

const fileOf = (comparison: FileComparison) => ('file' in comparison ? comparison.file : []);
const damagedFileOf = (comparison: FileComparison) => (comparison.kind === 'damaged' ? comparison.damagedFile : []);

/**
 * Reads a file beside its record and its receipt in the state. A file of the recorded size and time has the recorded
 * hash. The first row counts that is true.
 *
 *   the file                                             is
 *   is not there                                         missing: its day counts as removed
 *   has its hash, and its receipt does not say "no row"  unchanged: it was copied at most
 *   has its hash                                         adopted: a killed run was to remove it
 *   is later, with columns that its table has            adopted: a killed run wrote it last
 *   has profiles, and the state has no table of them     foreign: another program wrote it
 *   is any other                                         damaged, or older; or newer, with columns that a state put
 *                                                        back does not know
 *
 * The receipt of an unchanged file is in the state, that of an adopted file in its own metadata.
 */
async function compareFile(
  { engine, storage }: FolderPlace,
  record: FolderRecord,
  path: string,
): Promise<FileComparison> {
  const localPath = storage.fullPath(path);
  const onDisk = sizeAndTime(localPath);
  if (onDisk === undefined) return { kind: 'missing' };
  const recordedFile = record.filesByPath.get(path);
  const table = path === PROFILES_FILE ? USER_PROFILES.name : EVENTS.name;
  const tableState = record.state[table];
  // Of profiles it is that of their one receipt; undefined if the state has no table of them.
  const day = dayOfPath(path) ?? tableState?.receipts.keys().next().value;
  const storedReceipt = day === undefined ? undefined : tableState?.receipts.get(day);
  const hasSameSizeAndTime = recordedFile?.bytes === onDisk.bytes && recordedFile.modified === onDisk.modified;
  const sha256 = hasSameSizeAndTime ? recordedFile.sha256 : await hashFile(localPath);
  const hasSameHash = recordedFile?.sha256 === sha256;
  if (hasSameHash && storedReceipt?.rows_stored !== 0) {
    const columns = recordedFile.columns ?? (await readFileColumns(engine, localPath));
    return { kind: 'unchanged', file: { ...recordedFile, ...onDisk, columns } };
  }
  const metadata = await readMetadata(engine, localPath, path);
  if (metadata !== undefined && (hasSameHash || isLater(metadata, storedReceipt, recordedFile, record))) {
    const { receipt, columns } = metadata;
    return { kind: 'adopted', file: { table, day: receipt.day, path, ...onDisk, sha256, columns }, metadata };
  }
  return day === undefined ? { kind: 'foreign' } : { kind: 'damaged', damagedFile: { table, day, path } };
}

/** The paths of the files of all days that have a folder, whether or not the file is there. */
async function eventPathsIn(storage: DiskStorage): Promise<string[]> {
  const names = (await readdir(storage.fullPath(EVENTS.name)).catch(undefinedIfAbsent)) ?? [];
  const paths = names.sort().map((name) => `${EVENTS.name}/${name}/${DATA_FILE}`);
  return paths.filter((path) => dayOfPath(path) !== undefined);
}

/** What a file says of itself. */
interface FileMetadata extends Pick<FolderFile, 'columns'> {
  readonly receipt: StoredReceipt;
  /** Of the profiles: the state of their table. */
  readonly profilesState: TableState | undefined;
}

/**
 * True for a file that was written after the recorded one. If a run only gave it the new columns of its table, it has
 * the same receipt.
 */
function isLater(
  metadata: FileMetadata,
  storedReceipt: StoredReceipt | undefined,
  recordedFile: RecordedFile | undefined,
  { state }: FolderRecord,
): boolean {
  const { receipt, columns } = metadata;
  const table = metadata.profilesState ?? state.events;
  if (receipt.changed_at !== storedReceipt?.changed_at)
    return receipt.changed_at > (storedReceipt?.changed_at ?? '') && hasKnownColumns(columns, table);
  const hadOtherColumns = recordedFile !== undefined && recordedFile.columns === undefined;
  return hadOtherColumns && hasCurrentColumns(FOLDER_LAYOUT, columns, fileColumns(FOLDER_LAYOUT, table));
}

/** True if a table has all columns of a file, each in its type or in one that it widens to. */
function hasKnownColumns(columns: FileColumns, table: TableState): boolean {
  const zone = zoneOf(table.timezone);
  const tableColumns = fileColumns(FOLDER_LAYOUT, table);
  return [...columns].every(([name, fileType]) => {
    if (tableColumns.get(name) === fileType) return true;
    const typeInFile = columnTypeOf(fileType, zone);
    const column = typedColumns(table.columns).find((column) => column.name === name);
    return typeInFile && column && canWiden(typeInFile, column.type, column.forms, zone);
  });
}

/** Reads what a file says of itself; undefined if it is unreadable, or this program did not write it to this path. */
async function readMetadata(engine: Engine, localPath: string, path: string): Promise<FileMetadata | undefined> {
  try {
    const rows = await engine.rows(
      `SELECT decode(key) AS key, decode(value) AS text FROM parquet_kv_metadata(${pathLiteral(localPath)})`,
    );
    const texts = new Map(rows.map(({ key, text }) => [key, String(text)]));
    const receipt = parseReceipt(tryParseJson(texts.get(METADATA_KEYS.receipt) ?? ''), localPath);
    const tableText = texts.get(METADATA_KEYS.table);
    const profilesState = tableText === undefined ? undefined : parseTableState(tryParseJson(tableText), localPath);
    const table = profilesState === undefined ? EVENTS.name : USER_PROFILES.name;
    // Somebody may have moved it here from another day, or from the other table.
    if (path !== filePath(receipt.day, table) || (await countRowsOfFile(engine, localPath)) !== receipt.rows_stored)
      return undefined;
    return { receipt, profilesState, columns: await readFileColumns(engine, localPath) };
  } catch (error) {
    engine.throwIfAborted();
    if (isEngineFailure(error, 'outOfMemory')) throw error;
    return undefined;
  }
}

/** The table of events with the receipts of adopted files. Days whose file is missing are pruned. */
function eventsWith(before: TableState, days: readonly FileComparison[], now: number) {
  const adoptedReceipts = days.flatMap((comparison) =>
    comparison.kind === 'adopted' ? comparison.metadata.receipt : [],
  );
  const receipts = receiptsOf([...before.receipts.values(), ...adoptedReceipts]);
  const filesOfDays = [...days.flatMap(fileOf), ...days.flatMap(damagedFileOf)];
  const daysWithFile = new Set(filesOfDays.map(({ day }) => day));
  const removedDays = findRemovedDays(receipts, daysWithFile);
  return { events: { ...before, receipts: withPrunedDays(receipts, removedDays, now) }, removedDays };
}

/** The table of profiles, as an adopted file says. Without its file there is none, unless it has no row. */
function profilesWith(before: TableState | undefined, comparison: FileComparison): TableState | undefined {
  if (comparison.kind === 'adopted') return comparison.metadata.profilesState;
  const hasFileOrNoRow = comparison.kind === 'unchanged' || countStoredRows(before?.receipts.values() ?? []) === 0;
  return hasFileOrNoRow ? before : undefined;
}
