import { lstatSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Day } from '../../../base/days.ts';
import { codeOf } from '../../../base/errors.ts';
import { jsonOf } from '../../../base/json.ts';
import type { Engine } from '../../../engine/session/engine.ts';
import { isOutOfMemory } from '../../../engine/session/faults.ts';
import { type PlaceState, profilesAsTable, type StoredProfiles } from '../../../table/place-state.ts';
import { damagedWarning } from '../../../table/place-warnings.ts';
import { nextChangedAt, receiptsOf, removedDays, type StoredReceipt, withPruned } from '../../../table/receipts.ts';
import { EVENTS, USER_PROFILES } from '../../../table/tables.ts';
import { type PlaceVersion, STATE_FILE } from '../format.ts';
import type { DayFile } from '../local-files.ts';
import {
  type ColumnTypes,
  columnTypes,
  dayOfFolder,
  describeFile,
  fingerprint,
  parquetColumns,
  readMetadata,
  rowsOfFile,
} from '../parquet-file.ts';
import { receiptOf, storedProfilesOf } from '../stored-state.ts';
import {
  dayOfPath,
  type FolderFile,
  filePath,
  PROFILES_FILE,
  parseStateFile,
  type RecordedFile,
  schemaOf,
} from './folder-state.ts';

/** A file of the folder. One is damaged if it is neither the file of the state nor one that was written later. */
export type FolderEntry =
  | { readonly isDamaged: false; readonly file: FolderFile }
  | {
      readonly isDamaged: true;
      /** The right file, as far as the state knows it: it may come back from a copy. */
      readonly file: RecordedFile | undefined;
      /** Of the file of profiles: what the place held of them. */
      readonly profiles?: StoredProfiles | undefined;
    };

/** The files of a folder by their paths. */
export type FolderEntries = ReadonlyMap<string, FolderEntry>;

/** A folder as it is on the disk: its state, corrected by what its files say. */
export interface FolderVersion extends PlaceVersion {
  /** The text of `_dfinery.json`; undefined before the first commit. */
  readonly text: string | undefined;
  readonly entries: FolderEntries;
}

export function folderVersion(text: string | undefined, state: PlaceState, entries: FolderEntries): FolderVersion {
  const files = { events: new Map<Day, DayFile>(), user_profiles: new Map<Day, DayFile>() };
  for (const { isDamaged, file } of entries.values()) {
    if (!isDamaged) files[file.table].set(file.day, file);
  }
  return { text, state, entries, files, damage: damageIn(entries) };
}

function damageIn(entries: FolderEntries): string[] {
  const paths = [...entries].filter(([, { isDamaged }]) => isDamaged).map(([path]) => path);
  const days = paths.flatMap((path) => dayOfPath(path) ?? []);
  const profilesWarning =
    'the file of user_profiles is damaged, or older than its receipt, and stays as it is. Replace it: sync with ' +
    'user_profiles set to true.';
  return [
    ...(days.length === 0 ? [] : [damagedWarning(days)]),
    ...(paths.includes(PROFILES_FILE) ? [profilesWarning] : []),
  ];
}

/** Reads a folder. `text`: that of its `_dfinery.json`. `daysRemoved`: those whose file somebody removed since. */
export async function readFolder(
  engine: Engine,
  root: string,
  text: string,
): Promise<{ readonly version: FolderVersion; readonly daysRemoved: readonly Day[] }> {
  const { state, files } = parseStateFile(text, join(root, STATE_FILE));
  const entries = new Map<string, FolderEntry>();
  const adoptedReceipts: StoredReceipt[] = [];
  const tables = [state, profilesAsTable(state)].filter((table) => table !== undefined);
  const columnsOfTables = tables.map((table) => columnTypes(parquetColumns(table)));
  // A file with other columns is looked into.
  const columnsBySchema = new Map(columnsOfTables.map((columns) => [schemaOf(columns), columns]));
  // Without a row there is no file.
  let profiles = state.profiles?.receipt.rows_stored === 0 ? state.profiles : undefined;
  for (const [path, onDisk] of await listFiles(root)) {
    const day = dayOfPath(path);
    const receipt = day === undefined ? state.profiles?.receipt : state.receipts.get(day);
    const stored = { path, file: files.get(path), receipt, columnsBySchema };
    const compared = await compareFile(engine, join(root, path), onDisk, stored);
    if (compared !== undefined) {
      entries.set(path, { isDamaged: false, file: compared.file });
      if (day === undefined) profiles = compared.contents?.profiles ?? state.profiles;
      else if (compared.contents !== undefined) adoptedReceipts.push(compared.contents.receipt);
    } else if (receipt !== undefined || day !== undefined) {
      entries.set(path, { isDamaged: true, file: files.get(path), profiles: state.profiles });
    }
  }
  const receipts = receiptsOf([...state.receipts.values(), ...adoptedReceipts]);
  const daysRemoved = removedDays(receipts, new Map([...entries.keys()].map((path) => [dayOfPath(path) ?? '', path])));
  const changedAt = nextChangedAt(receipts, engine.options.clock.now());
  const stateNow = { ...state, receipts: withPruned(receipts, daysRemoved, changedAt), profiles };
  return { version: folderVersion(text, stateNow, entries), daysRemoved };
}

type OnDisk = Pick<FolderFile, 'bytes' | 'modified'>;

/** The size and the time of a file on the disk; undefined if there is none. */
export function sizeAndTime(path: string): OnDisk | undefined {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  return stat && { bytes: stat.size, modified: stat.mtimeMs };
}

/** The files of days and of profiles, by path. An awaited call for each file would take 20 times as long. */
async function listFiles(root: string): Promise<Map<string, OnDisk>> {
  const names = await readdir(join(root, EVENTS.name)).catch((error) => {
    if (codeOf(error) === 'ENOENT') return [];
    throw error;
  });
  const days = names.sort().flatMap((name) => dayOfFolder(`${EVENTS.name}/${name}`) ?? []);
  const files = new Map<string, OnDisk>();
  for (const path of [...days.map((day) => filePath(day, EVENTS.name)), PROFILES_FILE]) {
    const onDisk = sizeAndTime(join(root, path));
    if (onDisk !== undefined) files.set(path, onDisk);
  }
  return files;
}

/** What the state says of the file at a path, and the columns of its tables by their hash. */
interface StoredFile {
  readonly path: string;
  readonly file: RecordedFile | undefined;
  readonly receipt: StoredReceipt | undefined;
  readonly columnsBySchema: ReadonlyMap<string, ColumnTypes>;
}

/**
 * Compares a file with what the state says of it. One of the same size and time is unchanged. Any other is hashed:
 *
 *   the hash     written      the file
 *   is the same               was copied: the state's receipt holds
 *   is another   later        was left by a killed run: the receipt of its own contents holds
 *   is another   before       is damaged or older: undefined
 */
async function compareFile(engine: Engine, local: string, onDisk: OnDisk, stored: StoredFile) {
  const { path, file, receipt, columnsBySchema } = stored;
  const isUnchanged = file?.bytes === onDisk.bytes && file.modified === onDisk.modified;
  const sha256 = isUnchanged ? file.sha256 : await fingerprint(local);
  if (file?.sha256 === sha256) {
    const columns = columnsBySchema.get(file.schema) ?? (await describeFile(engine, local));
    return { file: { ...file, ...onDisk, columns } };
  }
  const contents = await readContents(engine, local);
  const writtenBefore = file?.writtenAt ?? receipt?.changed_at ?? '';
  if (contents === undefined || contents.writtenAt <= writtenBefore) return undefined;
  const { day, rows_stored: rows } = contents.receipt;
  const { name: table } = contents.profiles === undefined ? EVENTS : USER_PROFILES;
  if (path !== filePath(day, table)) return undefined;
  const { writtenAt, columns } = contents;
  const schema = schemaOf(columns);
  return { file: { table, day, path, rows, sha256, writtenAt, ...onDisk, columns, schema }, contents };
}

/** What a file says of itself; undefined if it cannot be read, or this program did not write it. */
async function readContents(engine: Engine, path: string) {
  try {
    const { receipt: text = '', profiles = '', writtenAt = '' } = await readMetadata(engine, path);
    const receipt = receiptOf(jsonOf(text), path);
    if ((await rowsOfFile(engine, path)) !== receipt.rows_stored) return undefined;
    const columns = await describeFile(engine, path);
    return { receipt, profiles: storedProfilesOf(jsonOf(profiles), path), writtenAt, columns };
  } catch (error) {
    engine.options.signal?.throwIfAborted();
    if (isOutOfMemory(error)) throw error;
    return undefined;
  }
}
