import { lstatSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Day } from '../../../base/days.ts';
import { codeOf } from '../../../base/errors.ts';
import { jsonOf } from '../../../base/json.ts';
import type { Engine } from '../../../engine/session/engine.ts';
import { isOutOfMemory } from '../../../engine/session/faults.ts';
import type { TableState } from '../../../table/place-state.ts';
import { damagedWarning } from '../../../table/place-warnings.ts';
import { nextChangedAt, receiptsOf, removedDays, type StoredReceipt, withPruned } from '../../../table/receipts.ts';
import { EVENTS, USER_PROFILES } from '../../../table/tables.ts';
import type { LocalFiles } from '../local-files.ts';
import {
  columnTypes,
  dayOfFolder,
  describeFile,
  fingerprint,
  parquetColumns,
  readMetadata,
  rowsOfFile,
} from '../parquet-file.ts';
import type { ColumnTypes, PlaceVersion } from '../place-version.ts';
import { receiptOf, tableStateOf } from '../stored-state.ts';
import {
  dayOfPath,
  type FolderFile,
  filePath,
  PROFILES_FILE,
  parseStateFile,
  type RecordedFile,
  STATE_FILE,
  schemaOf,
} from './folder-state.ts';

/** A folder as it is on the disk: its state, corrected by what its files say. */
export interface FolderVersion extends PlaceVersion {
  readonly files: readonly FolderFile[];
  /** By path: files that are neither recorded nor written later. The recorded file may come back from a copy. */
  readonly damaged: ReadonlyMap<string, RecordedFile | undefined>;
  /** What is recorded of profiles: it stays while their file is damaged. */
  readonly recordedProfiles: TableState | undefined;
  /** Days whose file somebody removed since. */
  readonly removedDays: readonly Day[];
  /** The text of `_dfinery.json`; undefined before the first commit. */
  readonly text: string | undefined;
}

export function damageIn(damaged: FolderVersion['damaged']): string[] {
  const days = [...damaged.keys()].flatMap((path) => dayOfPath(path) ?? []);
  const profilesWarning =
    'the file of user_profiles is damaged, or older than its receipt, and stays as it is. Replace it: sync with ' +
    'user_profiles set to true.';
  return [
    ...(days.length === 0 ? [] : [damagedWarning(days)]),
    ...(damaged.has(PROFILES_FILE) ? [profilesWarning] : []),
  ];
}

/** Reads a folder. `text`: that of its `_dfinery.json`. */
export async function readFolder(
  { engine, storage: { address: root } }: LocalFiles,
  text: string,
): Promise<FolderVersion> {
  const { state, files: recorded } = parseStateFile(text, join(root, STATE_FILE));
  const files: FolderFile[] = [];
  const damaged = new Map<string, RecordedFile | undefined>();
  const adoptedReceipts: StoredReceipt[] = [];
  let adoptedProfiles: TableState | undefined;
  const tables = [state.events, state.user_profiles].filter((table) => table !== undefined);
  const [profilesReceipt] = state.user_profiles?.receipts.values() ?? [];
  const columnsOfTables = tables.map((table) => columnTypes(parquetColumns(table)));
  // A file with other columns is looked into.
  const columnsBySchema = new Map(columnsOfTables.map((columns) => [schemaOf(columns), columns]));
  const filesOnDisk = await listFiles(root);
  for (const { path, day, ...onDisk } of filesOnDisk) {
    const receipt = day === undefined ? profilesReceipt : state.events.receipts.get(day);
    const stored = { path, file: recorded.get(path), receipt, columnsBySchema };
    const compared = await compareFile(engine, join(root, path), onDisk, stored);
    if (compared !== undefined) {
      const { file, contents } = compared;
      files.push(file);
      if (contents?.snapshot !== undefined) adoptedProfiles = contents.snapshot;
      else if (contents !== undefined) adoptedReceipts.push(contents.receipt);
    } else if (receipt !== undefined || day !== undefined) {
      damaged.set(path, recorded.get(path));
    }
  }
  // Without a row there is no file.
  const hasProfiles = files.some(({ path }) => path === PROFILES_FILE) || profilesReceipt?.rows_stored === 0;
  const user_profiles = hasProfiles ? (adoptedProfiles ?? state.user_profiles) : undefined;
  const receipts = receiptsOf([...state.events.receipts.values(), ...adoptedReceipts]);
  const goneDays = removedDays(receipts, new Set(filesOnDisk.map(({ day }) => day)));
  const changedAt = nextChangedAt(receipts, engine.clock.now());
  const events = { ...state.events, receipts: withPruned(receipts, goneDays, changedAt) };
  return {
    state: { ...state, events, user_profiles },
    files,
    damaged,
    damage: damageIn(damaged),
    recordedProfiles: state.user_profiles,
    removedDays: goneDays,
    text,
  };
}

type OnDisk = Pick<FolderFile, 'bytes' | 'modified'>;

/** The size and the time of a file on the disk; undefined if there is none. */
export function sizeAndTime(path: string): OnDisk | undefined {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  return stat && { bytes: stat.size, modified: stat.mtimeMs };
}

/** The files of days, and that of profiles without a day. An awaited call for each file would take 20 times as long. */
async function listFiles(root: string) {
  const names = await readdir(join(root, EVENTS.name)).catch(ifNoFolder);
  const days = names.sort().flatMap((name) => dayOfFolder(`${EVENTS.name}/${name}`) ?? []);
  const paths = [
    ...days.map((day) => ({ day, path: filePath(day, EVENTS.name) })),
    { day: undefined, path: PROFILES_FILE },
  ];
  return paths.flatMap(({ day, path }) => {
    const onDisk = sizeAndTime(join(root, path));
    return onDisk === undefined ? [] : [{ day, path, ...onDisk }];
  });
}

/** Nothing, for a folder that is not there. */
export function ifNoFolder(error: unknown): [] {
  if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return [];
  throw error;
}

/**
 * Compares a file with what the state says of it. One of the same size and time is unchanged. Any other is hashed:
 *
 *   the hash     written      the file
 *   is the same               was copied: the state's receipt holds
 *   is another   later        was left by a killed run: the receipt of its own contents holds
 *   is another   before       is damaged or older: undefined
 *
 * A killed run may also have left a file that it was to remove: the state has its receipt without rows. Then, too, the
 * receipt of its own contents holds. `columnsBySchema`: the columns of the tables by their hash.
 */
async function compareFile(
  engine: Engine,
  local: string,
  onDisk: OnDisk,
  stored: {
    readonly path: string;
    readonly file: RecordedFile | undefined;
    readonly receipt: StoredReceipt | undefined;
    readonly columnsBySchema: ReadonlyMap<string, ColumnTypes>;
  },
): Promise<{ readonly file: FolderFile; readonly contents?: FileContents } | undefined> {
  const { path, file, receipt, columnsBySchema } = stored;
  const isUnchanged = file?.bytes === onDisk.bytes && file.modified === onDisk.modified;
  const sha256 = isUnchanged ? file.sha256 : await fingerprint(local);
  const isRecorded = file?.sha256 === sha256;
  if (isRecorded && receipt?.rows_stored !== 0) {
    const columns = columnsBySchema.get(file.schema) ?? (await describeFile(engine, local));
    return { file: { ...file, ...onDisk, columns } };
  }
  const contents = await readContents(engine, local);
  if (contents === undefined) return undefined;
  const changedBefore = receipt?.changed_at ?? '';
  // After the clock was set back, the receipt alone is later.
  const isLater =
    contents.writtenAt > (file?.writtenAt ?? changedBefore) || contents.receipt.changed_at > changedBefore;
  if (!isRecorded && !isLater) return undefined;
  const { day, rows_stored: rows } = contents.receipt;
  const { name: table } = contents.snapshot === undefined ? EVENTS : USER_PROFILES;
  if (path !== filePath(day, table)) return undefined;
  const { writtenAt, columns } = contents;
  const schema = schemaOf(columns);
  return { file: { table, day, path, rows, sha256, writtenAt, ...onDisk, columns, schema }, contents };
}

type FileContents = NonNullable<Awaited<ReturnType<typeof readContents>>>;

/** What a file says of itself; undefined if it cannot be read, or this program did not write it. */
async function readContents(engine: Engine, path: string) {
  try {
    const { receipt: text = '', table, writtenAt = '' } = await readMetadata(engine, path);
    const receipt = receiptOf(jsonOf(text), path);
    if ((await rowsOfFile(engine, path)) !== receipt.rows_stored) return undefined;
    const columns = await describeFile(engine, path);
    const snapshot = table === undefined ? undefined : tableStateOf(jsonOf(table), path);
    return { receipt, snapshot, writtenAt, columns };
  } catch (error) {
    engine.throwIfAborted();
    if (isOutOfMemory(error)) throw error;
    return undefined;
  }
}
