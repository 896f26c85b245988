import { readdir } from 'node:fs/promises';
import { undefinedIfAbsent } from '../../../base/errors.ts';
import { tryParseJson } from '../../../base/json.ts';
import { pathLiteral } from '../../../base/sql.ts';
import { canWiden } from '../../../cells/types/column-types.ts';
import { zoneOf } from '../../../cells/types/zone.ts';
import type { Engine } from '../../../engine/session/engine.ts';
import { isEngineFailure } from '../../../engine/session/engine-errors.ts';
import type { DiskStorage } from '../../../storage/disk.ts';
import type { PlaceState, TableState } from '../../../table/place-state.ts';
import {
  countStoredRows,
  findRemovedDays,
  receiptsOf,
  type StoredReceipt,
  withPrunedDays,
} from '../../../table/receipts.ts';
import { EVENTS, typedColumns, USER_PROFILES } from '../../../table/tables.ts';
import { columnTypeOf, fileProgramColumns } from '../file-layout.ts';
import { countRowsOfFile, hashFile, METADATA_KEYS, readFileColumns } from '../parquet-file.ts';
import { parseReceipt, parseTableState } from '../stored-state.ts';
import {
  DATA_FILE,
  type DamagedFolderFile,
  dayOfPath,
  EMPTY_FOLDER,
  FOLDER_LAYOUT,
  type FolderFile,
  type FolderPlace,
  type FolderVersion,
  filePath,
  PROFILES_FILE,
  parseStateText,
  type RecordedFile,
  readStateText,
  STATE_FILE,
  sizeAndTime,
} from './folder-state.ts';

/**
 * Reads a folder: compares each file with what `_dfinery.json` says of it, then corrects the state. A run stores new
 * columns before it writes files with them.
 */
export async function readFolder(place: FolderPlace): Promise<FolderVersion> {
  const { engine, storage } = place;
  const stateText = await readStateText(storage);
  if (stateText === undefined) return EMPTY_FOLDER;
  const { state, recordedFiles } = parseStateText(stateText, storage.fullPath(STATE_FILE));
  const comparisons = [];
  for (const path of [...(await eventPathsIn(storage)), PROFILES_FILE]) {
    comparisons.push(await compareFile(place, state, path, recordedFiles.get(path)));
  }
  const files = comparisons.flatMap(({ file }) => file ?? []);
  const adoptedMetadata = comparisons.flatMap(({ metadata }) => metadata ?? []);
  const damagedFiles = comparisons.flatMap(({ damaged }) => damaged ?? []);
  const correction = correctedState(state, adoptedMetadata, { files, damagedFiles }, engine.clock.now());
  return { ...correction, isLoaded: true, files, damagedFiles, stateText };
}

/**
 * What a file is beside its record and its receipt in the state. A file of the recorded size and time has the recorded
 * hash. The first row counts that is true.
 *
 *   the file                                             is
 *   is not there                                         missing: its day counts as removed
 *   has its hash, and its receipt does not say "no row"  unchanged: it was copied at most
 *   has its hash                                         adopted: a killed run was to remove it
 *   is later, with columns that its table has            adopted: a killed run wrote it last
 *   has profiles, and the state has no table of them     of another program
 *   is any other                                         damaged, older, or newer than a state put back
 *
 * The receipt of an unchanged file is in the state, that of an adopted file in its own metadata.
 */
async function compareFile(
  { engine, storage }: FolderPlace,
  state: PlaceState,
  path: string,
  recordedFile: RecordedFile | undefined,
): Promise<{ readonly file?: FolderFile; readonly metadata?: FileMetadata; readonly damaged?: DamagedFolderFile }> {
  const localPath = storage.fullPath(path);
  const onDisk = sizeAndTime(localPath);
  if (onDisk === undefined) return {}; // missing
  const table = path === PROFILES_FILE ? USER_PROFILES.name : EVENTS.name;
  // Of profiles it is that of their one receipt; undefined if the state has no table of them.
  const day = dayOfPath(path) ?? state.user_profiles?.receipts.keys().next().value;
  const storedReceipt = day === undefined ? undefined : state[table]?.receipts.get(day);
  const hasSameSizeAndTime = recordedFile?.bytes === onDisk.bytes && recordedFile.modified === onDisk.modified;
  const sha256 = hasSameSizeAndTime ? recordedFile.sha256 : await hashFile(localPath);
  const hasSameHash = recordedFile?.sha256 === sha256;
  if (hasSameHash && storedReceipt?.rows_stored !== 0) {
    const columns = recordedFile.columns ?? (await readFileColumns(engine, localPath));
    return { file: { ...recordedFile, ...onDisk, columns } }; // unchanged
  }
  const metadata = await readMetadata(engine, localPath, path);
  if (metadata !== undefined) {
    const { receipt, writtenAt, columns } = metadata;
    // The receipt of a file that only got new columns is the same. Receipts are in order also if the clock was set back.
    const isLater =
      receipt.changed_at > (storedReceipt?.changed_at ?? '') ||
      (recordedFile !== undefined && writtenAt > recordedFile.writtenAt);
    if (hasSameHash || (isLater && hasKnownColumns(metadata, state))) {
      const file = { table, day: receipt.day, path, ...onDisk, sha256, writtenAt, columns };
      return { file, metadata }; // adopted
    }
  }
  if (day === undefined) return {}; // of another program
  return { damaged: { table, day, path, recordedFile, tableState: state[table] } }; // damaged
}

/** The paths of the files of all days that have a folder, whether or not the file is there. */
async function eventPathsIn(storage: DiskStorage): Promise<string[]> {
  const names = (await readdir(storage.fullPath(EVENTS.name)).catch(undefinedIfAbsent)) ?? [];
  const paths = names.sort().map((name) => `${EVENTS.name}/${name}/${DATA_FILE}`);
  return paths.filter((path) => dayOfPath(path) !== undefined);
}

/** What a file says of itself. */
interface FileMetadata extends Pick<FolderFile, 'writtenAt' | 'columns'> {
  readonly receipt: StoredReceipt;
  /** Of the profiles: the state of their table. */
  readonly profilesState: TableState | undefined;
}

/** True if the table of a file has all of its columns, each in its type or in one that it widens to. */
function hasKnownColumns({ columns, profilesState }: FileMetadata, { events }: PlaceState): boolean {
  const table = profilesState ?? events;
  const zone = zoneOf(table.timezone);
  const tableColumns = new Map(typedColumns(table.columns).map((column) => [column.name, column]));
  const programTypes = new Map(fileProgramColumns(FOLDER_LAYOUT, table.timezone).map(({ name, type }) => [name, type]));
  return [...columns].every(([name, fileType]) => {
    const column = tableColumns.get(name);
    if (column === undefined) return programTypes.get(name) === fileType;
    const typeInFile = columnTypeOf(fileType, zone);
    return typeInFile !== undefined && canWiden(typeInFile, column.type, column.forms, zone);
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
    const writtenAt = texts.get(METADATA_KEYS.writtenAt) ?? '';
    return { receipt, profilesState, writtenAt, columns: await readFileColumns(engine, localPath) };
  } catch (error) {
    engine.throwIfAborted();
    if (isEngineFailure(error, 'outOfMemory')) throw error;
    return undefined;
  }
}

/** The state with what adopted files say of themselves. Days without a file are pruned. */
function correctedState(
  before: PlaceState,
  adoptedMetadata: readonly FileMetadata[],
  { files, damagedFiles }: Pick<FolderVersion, 'files' | 'damagedFiles'>,
  now: number,
) {
  const newReceipts = adoptedMetadata.flatMap(({ receipt, profilesState }) =>
    profilesState === undefined ? receipt : [],
  );
  const receipts = receiptsOf([...before.events.receipts.values(), ...newReceipts]);
  const eventFiles = [...files, ...damagedFiles].filter(({ table }) => table === EVENTS.name);
  const removedDays = findRemovedDays(receipts, new Set(eventFiles.map(({ day }) => day)));
  const events = { ...before.events, receipts: withPrunedDays(receipts, removedDays, now) };
  const [profiles = before.user_profiles] = adoptedMetadata.flatMap(({ profilesState }) => profilesState ?? []);
  // Profiles are no table without their file, unless they have no row.
  const hasProfiles =
    files.some(({ table }) => table === USER_PROFILES.name) || countStoredRows(profiles?.receipts.values() ?? []) === 0;
  return { state: { ...before, events, user_profiles: hasProfiles ? profiles : undefined }, removedDays };
}
