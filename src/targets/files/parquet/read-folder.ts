import { lstatSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import type { Day } from '../../../base/days.ts';
import { undefinedIfAbsent } from '../../../base/errors.ts';
import { tryParseJson } from '../../../base/json.ts';
import { pathLiteral } from '../../../base/sql.ts';
import { canWiden } from '../../../cells/types/column-types.ts';
import { zoneOf } from '../../../cells/types/zone.ts';
import type { Engine } from '../../../engine/session/engine.ts';
import { isOutOfMemory } from '../../../engine/session/engine-errors.ts';
import type { DiskStorage } from '../../../storage/disk.ts';
import type { PlaceState, TableState } from '../../../table/place-state.ts';
import {
  countStoredRows,
  findRemovedDays,
  nextChangedAt,
  receiptsOf,
  type StoredReceipt,
  withPruned,
} from '../../../table/receipts.ts';
import { EVENTS, type TableName, typedColumns, USER_PROFILES } from '../../../table/tables.ts';
import { columnTypeOf, fileProgramColumns } from '../file-layout.ts';
import type { OpenPlace } from '../format.ts';
import { countRowsOfFile, hashFile, METADATA_KEYS, readFileColumns } from '../parquet-file.ts';
import { parseReceipt, parseTableState } from '../stored-state.ts';
import {
  DATA_FILE,
  type DamagedFolderFile,
  damageWarningsOf,
  dayOfPath,
  EMPTY_FOLDER,
  FOLDER_LAYOUT,
  type FolderFile,
  type FolderVersion,
  filePath,
  PROFILES_FILE,
  parseStateText,
  STATE_FILE,
} from './folder-state.ts';

export type FolderPlace = OpenPlace<DiskStorage>;

/** The text of `_dfinery.json`; undefined before the first commit. */
export const readStateText = async (storage: DiskStorage): Promise<string | undefined> =>
  (await storage.read(STATE_FILE))?.toString('utf8');

/**
 * Reads a folder: compares each file with what the state says of it, then corrects the state. A file of the same size
 * and time has the same hash. The first row counts that is true.
 *
 *   the file                                                 is
 *   has its hash, and its receipt does not say "no row"      unchanged: it was copied at most
 *   has its hash                                             adopted: a killed run was to remove it
 *   was written later, with columns that its table has       adopted: a killed run wrote it last
 *   has profiles, and the state has no table of them         of another program
 *   is any other                                             damaged, older, or newer than a state put back
 *
 * The receipt of an unchanged file is in the state, that of an adopted file in its own metadata. A run stores new columns
 * before it writes files with them.
 */
export async function readFolder({ engine, storage }: FolderPlace): Promise<FolderVersion> {
  const stateText = await readStateText(storage);
  if (stateText === undefined) return EMPTY_FOLDER;
  const { state, listedFiles } = parseStateText(stateText, storage.fullPath(STATE_FILE));
  const files: FolderFile[] = [];
  const adoptedFiles: FileMetadata[] = [];
  const damagedFiles: DamagedFolderFile[] = [];
  for (const { table, day, path } of await expectedFiles(storage, state)) {
    const localPath = storage.fullPath(path);
    const onDisk = sizeAndTime(localPath);
    if (onDisk === undefined) continue;
    const listedFile = listedFiles.get(path);
    const storedReceipt = day === undefined ? undefined : state[table]?.receipts.get(day);
    const hasSameSizeAndTime = listedFile?.bytes === onDisk.bytes && listedFile.modified === onDisk.modified;
    const sha256 = hasSameSizeAndTime ? listedFile.sha256 : await hashFile(localPath);
    const hasSameHash = listedFile?.sha256 === sha256;
    if (hasSameHash && storedReceipt?.rows_stored !== 0) {
      const columns = listedFile.columns ?? (await readFileColumns(engine, localPath));
      files.push({ ...listedFile, ...onDisk, columns });
      continue;
    }
    const metadata = await readMetadata(engine, localPath, table, path);
    const writtenBefore = listedFile?.writtenAt ?? storedReceipt?.changed_at ?? '';
    const isLeftover =
      metadata !== undefined &&
      (hasSameHash || (metadata.writtenAt > writtenBefore && hasKnownColumns(metadata, state)));
    if (isLeftover) {
      const { receipt, writtenAt, columns } = metadata;
      adoptedFiles.push(metadata);
      files.push({ table, day: receipt.day, path, rows: receipt.rows_stored, ...onDisk, sha256, writtenAt, columns });
    }
    // Profiles without a day are of another program.
    else if (day !== undefined) damagedFiles.push({ table, day, path, listedFile, tableState: state[table] });
  }
  const correction = correctedState(state, adoptedFiles, { files, damagedFiles }, engine.clock.now());
  const damageWarnings = damageWarningsOf(damagedFiles);
  return { ...correction, isLoaded: true, files, damagedFiles, damageWarnings, stateText };
}

/** The size and the time of a file on the disk; undefined if there is none. */
export function sizeAndTime(path: string): { readonly bytes: number; readonly modified: number } | undefined {
  // An awaited call for each file would take 20 times as long.
  const stat = lstatSync(path, { throwIfNoEntry: false });
  return stat && { bytes: stat.size, modified: stat.mtimeMs };
}

/** Where files of the tables are expected. Profiles have the day of their receipt; undefined if the state has none. */
async function expectedFiles(storage: DiskStorage, state: PlaceState) {
  const names = (await readdir(storage.fullPath(EVENTS.name)).catch(undefinedIfAbsent)) ?? [];
  const days = names.sort().flatMap((name) => dayOfPath(`${EVENTS.name}/${name}/${DATA_FILE}`) ?? []);
  const [profilesDay]: Iterable<Day | undefined> = state.user_profiles?.receipts.keys() ?? [];
  return [
    ...days.map((day) => ({ table: EVENTS.name, day, path: filePath(day, EVENTS.name) })),
    { table: USER_PROFILES.name, day: profilesDay, path: PROFILES_FILE },
  ];
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
async function readMetadata(
  engine: Engine,
  localPath: string,
  table: TableName,
  path: string,
): Promise<FileMetadata | undefined> {
  try {
    const rows = await engine.rows(
      `SELECT decode(key) AS key, decode(value) AS text FROM parquet_kv_metadata(${pathLiteral(localPath)})`,
    );
    const texts = new Map(rows.map(({ key, text }) => [key, String(text)]));
    const receipt = parseReceipt(tryParseJson(texts.get(METADATA_KEYS.receipt) ?? ''), localPath);
    const tableText = texts.get(METADATA_KEYS.table);
    const profilesState = tableText === undefined ? undefined : parseTableState(tryParseJson(tableText), localPath);
    // From another day, or from the other table.
    const isMoved =
      path !== filePath(receipt.day, table) || (profilesState !== undefined) !== (table === USER_PROFILES.name);
    if (isMoved || (await countRowsOfFile(engine, localPath)) !== receipt.rows_stored) return undefined;
    const writtenAt = texts.get(METADATA_KEYS.writtenAt) ?? '';
    return { receipt, profilesState, writtenAt, columns: await readFileColumns(engine, localPath) };
  } catch (error) {
    engine.throwIfAborted();
    if (isOutOfMemory(error)) throw error;
    return undefined;
  }
}

/** The state with the receipts of adopted files. Days without a file are pruned. */
function correctedState(
  before: PlaceState,
  adoptedFiles: readonly FileMetadata[],
  { files, damagedFiles }: Pick<FolderVersion, 'files' | 'damagedFiles'>,
  now: number,
) {
  const newReceipts = adoptedFiles.flatMap(({ receipt, profilesState }) =>
    profilesState === undefined ? receipt : [],
  );
  const receipts = receiptsOf([...before.events.receipts.values(), ...newReceipts]);
  const eventFiles = [...files, ...damagedFiles].filter(({ table }) => table === EVENTS.name);
  const removedDays = findRemovedDays(receipts, new Set(eventFiles.map(({ day }) => day)));
  const events = { ...before.events, receipts: withPruned(receipts, removedDays, nextChangedAt(receipts, now)) };
  const [profiles = before.user_profiles] = adoptedFiles.flatMap(({ profilesState }) => profilesState ?? []);
  // Profiles are no table without their file, unless they have no row.
  const hasProfiles =
    files.some(({ table }) => table === USER_PROFILES.name) || countStoredRows(profiles?.receipts.values() ?? []) === 0;
  return { state: { ...before, events, user_profiles: hasProfiles ? profiles : undefined }, removedDays };
}
