import { lstatSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Day } from '../../../base/days.ts';
import { undefinedIfAbsent } from '../../../base/errors.ts';
import { tryParseJson } from '../../../base/json.ts';
import { pathLiteral } from '../../../base/sql.ts';
import type { Engine } from '../../../engine/session/engine.ts';
import { isOutOfMemory } from '../../../engine/session/engine-errors.ts';
import type { Storage } from '../../../storage/storage.ts';
import { newPlaceState, type PlaceState, type TableState } from '../../../table/place-state.ts';
import { countStoredRows, findRemovedDays, nextChangedAt, receiptsOf, withPruned } from '../../../table/receipts.ts';
import { EVENTS, USER_PROFILES } from '../../../table/tables.ts';
import type { FilesPlace } from '../format.ts';
import type { DamagedFile, PlaceVersion } from '../place-version.ts';
import { countRowsOfFile, hashFile, METADATA_KEYS, readColumnTypes } from '../read-parquet.ts';
import { receiptOf, tableStateOf } from '../stored-state.ts';
import {
  DATA_FILE,
  dayOfPath,
  type FileEntry,
  type FolderFile,
  type FolderState,
  filePath,
  PROFILES_FILE,
  parseFolderState,
  STATE_FILE,
} from './folder-state.ts';

/** A folder as it is on the disk: its state, corrected by what its files say. */
export interface FolderVersion extends PlaceVersion {
  readonly files: readonly FolderFile[];
  /** Files that differ from the state file without being newer. Their right files may come back from a copy. */
  readonly damagedFiles: readonly DamagedFolderFile[];
  /** The table of profiles by the state file, if their file is damaged. */
  readonly damagedProfiles?: TableState | undefined;
  /** The text of `_dfinery.json`. */
  readonly stateText: string;
}

interface DamagedFolderFile extends DamagedFile {
  /** What the state file says of the right file, if anything. */
  readonly entry: FileEntry | undefined;
}

/** A folder before its first commit. */
const EMPTY_FOLDER: FolderVersion = {
  isLoaded: false,
  state: newPlaceState(null),
  files: [],
  damagedFiles: [],
  removedDays: [],
  stateText: '',
};

/** The text of `_dfinery.json`; undefined before the first commit. */
export const readStateText = async (storage: Storage): Promise<string | undefined> =>
  (await storage.read(STATE_FILE))?.toString('utf8');

/** Reads a folder. */
export async function readFolder({ engine, storage }: FilesPlace): Promise<FolderVersion> {
  const stateText = await readStateText(storage);
  if (stateText === undefined) return EMPTY_FOLDER;
  const stateFile = parseFolderState(stateText, join(storage.address, STATE_FILE));
  const { events, user_profiles } = stateFile.state;
  const files: FolderFile[] = [];
  const damagedFiles: DamagedFolderFile[] = [];
  const receiptByDay = new Map(events.receipts);
  let profiles = user_profiles;
  const filesOnDisk = await listFiles(storage.address, stateFile.state);
  for (const fileOnDisk of filesOnDisk) {
    const { table, day, path } = fileOnDisk;
    const comparison = await compareFile(engine, storage.address, fileOnDisk, stateFile);
    if (comparison.kind === 'damaged') {
      const entry = stateFile.entries.get(path);
      if (stateFile.state[table] === undefined) continue;
      damagedFiles.push({ table, day, path, entry: entry && { ...entry, modified: null } });
      continue;
    }
    files.push(comparison.file);
    if (comparison.kind === 'unchanged') continue;
    const { receipt, snapshot } = comparison.metadata;
    if (snapshot !== undefined) profiles = snapshot;
    else receiptByDay.set(receipt.day, receipt);
  }
  const receipts = receiptsOf(receiptByDay.values());
  const removedDays = findRemovedDays(receipts, new Set(filesOnDisk.map(({ path }) => dayOfPath(path))));
  const changedAt = nextChangedAt(receipts, engine.clock.now());
  const eventsNow = { ...events, receipts: withPruned(receipts, removedDays, changedAt) };
  // A snapshot is no table without its file, unless it has no row.
  const hasNoRow = countStoredRows(profiles?.receipts.values() ?? []) === 0;
  const isProfiles = ({ table }: DamagedFile) => table === USER_PROFILES.name;
  const profilesNow = hasNoRow || files.some(isProfiles) ? profiles : undefined;
  const state = { ...stateFile.state, events: eventsNow, user_profiles: profilesNow };
  const damagedProfiles = damagedFiles.some(isProfiles) ? user_profiles : undefined;
  return { isLoaded: true, state, files, damagedFiles, damagedProfiles, removedDays, stateText };
}

/** The size and the time of a file on the disk; undefined if there is none. */
export function sizeAndTime(path: string): Pick<FolderFile, 'bytes' | 'modified'> | undefined {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  return stat && { bytes: stat.size, modified: stat.mtimeMs };
}

/** Lists the files of days, then that of profiles. An awaited call for each file would take 20 times as long. */
async function listFiles(root: string, state: PlaceState) {
  const names = (await readdir(join(root, EVENTS.name)).catch(undefinedIfAbsent)) ?? [];
  const days = names.sort().flatMap((name) => dayOfPath(`${EVENTS.name}/${name}/${DATA_FILE}`) ?? []);
  // Undefined without a receipt.
  const [profilesDay]: Iterable<Day | undefined> = state.user_profiles?.receipts.keys() ?? [];
  const places = [
    ...days.map((day) => ({ table: EVENTS.name, day, path: filePath(day, EVENTS.name) })),
    { table: USER_PROFILES.name, day: profilesDay, path: PROFILES_FILE },
  ];
  return places.flatMap((place) => {
    const onDisk = sizeAndTime(join(root, place.path));
    return onDisk === undefined ? [] : [{ ...place, ...onDisk }];
  });
}

type Comparison =
  | { readonly kind: 'unchanged'; readonly file: FolderFile }
  | { readonly kind: 'leftover'; readonly file: FolderFile; readonly metadata: FileMetadata }
  | { readonly kind: 'damaged' };

/**
 * Compares a file with what the state says of it. One of the same size and time is unchanged. Any other is hashed:
 *
 *   the hash     written      the file
 *   is the same               `unchanged`: it was copied, and the state's receipt holds
 *   is another   later        `leftover` of a killed run: the receipt in its own metadata holds
 *   is another   before       `damaged`, or older
 *
 * A killed run may also have left a file that it was to remove: the state has its receipt without rows. Then, too, the
 * receipt in its own metadata holds.
 */
async function compareFile(
  engine: Engine,
  root: string,
  { table, day, path, ...onDisk }: Awaited<ReturnType<typeof listFiles>>[number],
  { state, columns: tableColumns, entries }: FolderState,
): Promise<Comparison> {
  const local = join(root, path);
  const entry = entries.get(path);
  const receipt = day === undefined ? undefined : state[table]?.receipts.get(day);
  const isUnchanged = entry?.bytes === onDisk.bytes && entry.modified === onDisk.modified;
  const sha256 = isUnchanged ? entry.sha256 : await hashFile(local);
  const hasSameHash = entry?.sha256 === sha256;
  if (hasSameHash && receipt?.rows_stored !== 0) {
    const columns = isUnchanged ? tableColumns[table] : await readColumnTypes(engine, local);
    return { kind: 'unchanged', file: { ...entry, ...onDisk, columns } };
  }
  const metadata = await readMetadata(engine, local);
  if (metadata === undefined) return { kind: 'damaged' };
  const { writtenAt, columns, snapshot } = metadata;
  const { day: dayFile, rows_stored: rows, changed_at: changedAt } = metadata.receipt;
  const changedBefore = receipt?.changed_at ?? '';
  // After the clock was set back, the receipt alone is later.
  const isLater = writtenAt > (entry?.writtenAt ?? changedBefore) || changedAt > changedBefore;
  // From another day, or from the other table.
  const isMoved = path !== filePath(dayFile, table) || (snapshot !== undefined) !== (table === USER_PROFILES.name);
  if (isMoved || (!hasSameHash && !isLater)) return { kind: 'damaged' };
  const file = { table, day: dayFile, path, rows, sha256, writtenAt, ...onDisk, columns };
  return { kind: 'leftover', file, metadata };
}

type FileMetadata = NonNullable<Awaited<ReturnType<typeof readMetadata>>>;

/** What a file says of itself; undefined if it cannot be read, or this program did not write it. */
async function readMetadata(engine: Engine, path: string) {
  try {
    const rows = await engine.rows(
      `SELECT decode(key) AS key, decode(value) AS text FROM parquet_kv_metadata(${pathLiteral(path)})`,
    );
    const texts = new Map(rows.map(({ key, text }) => [key, String(text)]));
    const receipt = receiptOf(tryParseJson(texts.get(METADATA_KEYS.receipt) ?? ''), path);
    if ((await countRowsOfFile(engine, path)) !== receipt.rows_stored) return undefined;
    const table = texts.get(METADATA_KEYS.table);
    const snapshot = table === undefined ? undefined : tableStateOf(tryParseJson(table), path);
    const writtenAt = texts.get(METADATA_KEYS.writtenAt) ?? '';
    return { receipt, snapshot, writtenAt, columns: await readColumnTypes(engine, path) };
  } catch (error) {
    engine.throwIfAborted();
    if (isOutOfMemory(error)) throw error;
    return undefined;
  }
}
