import { lstatSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import type { Day } from '../../../base/days.ts';
import { undefinedIfAbsent } from '../../../base/errors.ts';
import { tryParseJson } from '../../../base/json.ts';
import { pathLiteral } from '../../../base/sql.ts';
import type { Engine } from '../../../engine/session/engine.ts';
import { isOutOfMemory } from '../../../engine/session/engine-errors.ts';
import type { DiskStorage } from '../../../storage/disk.ts';
import { newPlaceState, type PlaceState, type TableState } from '../../../table/place-state.ts';
import {
  countStoredRows,
  findRemovedDays,
  nextChangedAt,
  receiptsOf,
  type StoredReceipt,
  withPruned,
} from '../../../table/receipts.ts';
import { EVENTS, USER_PROFILES } from '../../../table/tables.ts';
import { fitsTable } from '../file-layout.ts';
import type { OpenPlace } from '../format.ts';
import type { DamagedFile, PlaceVersion } from '../place-version.ts';
import { countRowsOfFile, hashFile, METADATA_KEYS, readFileColumns } from '../read-parquet.ts';
import { parseReceipt, parseTableState } from '../stored-state.ts';
import {
  DATA_FILE,
  dayOfPath,
  FOLDER_LAYOUT,
  type FolderFile,
  filePath,
  type ListedFile,
  PROFILES_FILE,
  parseStateFile,
  STATE_FILE,
  type StateFile,
} from './folder-state.ts';

export type FolderPlace = OpenPlace<DiskStorage>;

/** A folder as it is on the disk: its state, corrected by what its files say. */
export interface FolderVersion extends PlaceVersion {
  readonly files: readonly FolderFile[];
  readonly stateFile: StateFile;
}

const EMPTY_FOLDER: FolderVersion = {
  isLoaded: false,
  state: newPlaceState(null),
  files: [],
  damagedFiles: [],
  removedDays: [],
  stateFile: { text: '', state: newPlaceState(null), fileByPath: new Map() },
};

/** The text of `_dfinery.json`; undefined before the first commit. */
export const readStateText = async (storage: DiskStorage): Promise<string | undefined> =>
  (await storage.read(STATE_FILE))?.toString('utf8');

/** Reads a folder: compares all files with the state file, then corrects the state. */
export async function readFolder({ engine, storage }: FolderPlace): Promise<FolderVersion> {
  const stateText = await readStateText(storage);
  if (stateText === undefined) return EMPTY_FOLDER;
  const stateFile = parseStateFile(stateText, storage.fullPath(STATE_FILE));
  const files: FolderFile[] = [];
  const leftovers: FileMetadata[] = [];
  const damagedFiles: DamagedFile[] = [];
  for (const fileOnDisk of await findFiles(storage, stateFile.state)) {
    const comparison = await compareFile(engine, storage.fullPath(fileOnDisk.path), fileOnDisk, stateFile);
    if (comparison.kind === 'foreign') continue;
    if (comparison.kind === 'damaged') damagedFiles.push(comparison.file);
    else files.push(comparison.file);
    if (comparison.kind === 'leftover') leftovers.push(comparison.metadata);
  }
  const correction = correctedState(stateFile.state, leftovers, { files, damagedFiles }, engine.clock.now());
  return { ...correction, isLoaded: true, files, damagedFiles, stateFile };
}

/** The size and the time of a file on the disk; undefined if there is none. */
export function sizeAndTime(path: string): { readonly bytes: number; readonly modified: number } | undefined {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  return stat && { bytes: stat.size, modified: stat.mtimeMs };
}

/** A file where one of a table is expected. */
interface FileOnDisk extends Pick<FolderFile, 'table' | 'path' | 'bytes' | 'modified'> {
  /** Of the profiles: the day of their receipt in the state file; undefined if that has none. */
  readonly day: Day | undefined;
}

/** Finds the files of days, then that of profiles. An awaited call for each file would take 20 times as long. */
async function findFiles(storage: DiskStorage, state: PlaceState): Promise<FileOnDisk[]> {
  const names = (await readdir(storage.fullPath(EVENTS.name)).catch(undefinedIfAbsent)) ?? [];
  const days = names.sort().flatMap((name) => dayOfPath(`${EVENTS.name}/${name}/${DATA_FILE}`) ?? []);
  const [profilesDay]: Iterable<Day | undefined> = state.user_profiles?.receipts.keys() ?? [];
  const expectedFiles = [
    ...days.map((day) => ({ table: EVENTS.name, day, path: filePath(day, EVENTS.name) })),
    { table: USER_PROFILES.name, day: profilesDay, path: PROFILES_FILE },
  ];
  return expectedFiles.flatMap((expected) => {
    const onDisk = sizeAndTime(storage.fullPath(expected.path));
    return onDisk === undefined ? [] : [{ ...expected, ...onDisk }];
  });
}

type Comparison =
  | { readonly kind: 'unchanged'; readonly file: FolderFile }
  | { readonly kind: 'leftover'; readonly file: FolderFile; readonly metadata: FileMetadata }
  | { readonly kind: 'damaged'; readonly file: DamagedFile }
  | { readonly kind: 'foreign' };

/**
 * Compares a file with what the state says of it. One of the same size and time has the same hash. The first row counts
 * that is true.
 *
 *   the hash      and                                     the file
 *   is the same   its receipt does not say "no row"       `unchanged`: it was copied at most
 *   is the same   its receipt says so                     `leftover`: a killed run was to remove it
 *   is another    it is later, and its columns are known  `leftover`: a killed run wrote it
 *   is another    the state has no table of its rows      `foreign`: profiles of another program
 *   is another    its columns are new                     `damaged`: somebody put an older state back
 *   is another    it is older, or unusable                `damaged`
 *
 * The receipt of an unchanged file is in the state, that of a leftover in its own metadata. A run stores new columns
 * before it writes files with them.
 */
async function compareFile(
  engine: Engine,
  localPath: string,
  fileOnDisk: FileOnDisk,
  { state, fileByPath }: StateFile,
): Promise<Comparison> {
  const { table, day, path, bytes, modified } = fileOnDisk;
  const listedFile = fileByPath.get(path);
  const storedReceipt = day === undefined ? undefined : state[table]?.receipts.get(day);
  const hasSameSizeAndTime = listedFile?.bytes === bytes && listedFile.modified === modified;
  const sha256 = hasSameSizeAndTime ? listedFile.sha256 : await hashFile(localPath);
  const hasSameHash = listedFile?.sha256 === sha256;
  if (hasSameHash && storedReceipt?.rows_stored !== 0) {
    const columns = listedFile.columns ?? (await readFileColumns(engine, localPath));
    return { kind: 'unchanged', file: { ...listedFile, modified, columns } };
  }
  const metadata = await readMetadata(engine, localPath, fileOnDisk);
  if (metadata !== undefined && (hasSameHash || isOfLaterRun(metadata, listedFile, storedReceipt, state.events))) {
    const { writtenAt, columns, receipt } = metadata;
    const file = { ...fileOnDisk, day: receipt.day, rows: receipt.rows_stored, sha256, writtenAt, columns };
    return { kind: 'leftover', file, metadata };
  }
  return day === undefined ? { kind: 'foreign' } : { kind: 'damaged', file: { table, day, path } };
}

/**
 * True if a file was written after what the state has of it, with known columns. Once the clock was set back, its receipt
 * alone is later.
 */
function isOfLaterRun(
  { writtenAt, receipt, columns, profilesState }: FileMetadata,
  listedFile: ListedFile | undefined,
  storedReceipt: StoredReceipt | undefined,
  events: TableState,
): boolean {
  const changedBefore = storedReceipt?.changed_at ?? '';
  const isLater = writtenAt > (listedFile?.writtenAt ?? changedBefore) || receipt.changed_at > changedBefore;
  return isLater && fitsTable(FOLDER_LAYOUT, columns, profilesState ?? events);
}

/** What a file says of itself. */
interface FileMetadata extends Pick<FolderFile, 'writtenAt' | 'columns'> {
  readonly receipt: StoredReceipt;
  /** Of the profiles: the state of their table. */
  readonly profilesState: TableState | undefined;
}

/** Reads what a file says of itself; undefined if it is unreadable, or this program did not write it to this path. */
async function readMetadata(
  engine: Engine,
  localPath: string,
  { table, path }: FileOnDisk,
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

/** The state with the receipts of leftovers. Days without a file are pruned. */
function correctedState(
  before: PlaceState,
  leftovers: readonly FileMetadata[],
  { files, damagedFiles }: Pick<FolderVersion, 'files' | 'damagedFiles'>,
  now: number,
) {
  const newReceipts = leftovers.flatMap(({ receipt, profilesState }) => (profilesState === undefined ? receipt : []));
  const receipts = receiptsOf([...before.events.receipts.values(), ...newReceipts]);
  const eventFiles = [...files, ...damagedFiles].filter(({ table }) => table === EVENTS.name);
  const removedDays = findRemovedDays(receipts, new Set(eventFiles.map(({ day }) => day)));
  const events = { ...before.events, receipts: withPruned(receipts, removedDays, nextChangedAt(receipts, now)) };
  const [profiles = before.user_profiles] = leftovers.flatMap(({ profilesState }) => profilesState ?? []);
  // Profiles are no table without their file, unless they have no row.
  const hasProfiles =
    files.some(({ table }) => table === USER_PROFILES.name) || countStoredRows(profiles?.receipts.values() ?? []) === 0;
  return { state: { ...before, events, user_profiles: hasProfiles ? profiles : undefined }, removedDays };
}
