import { lstatSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Day } from '../../../base/days.ts';
import { codeOf } from '../../../base/errors.ts';
import { jsonOf } from '../../../base/json.ts';
import type { Engine } from '../../../engine/session/engine.ts';
import { isOutOfMemory } from '../../../engine/session/faults.ts';
import type { PlaceState, StoredProfiles } from '../../../table/place-state.ts';
import { nextChangedAt, receiptsOf, removedDays, type StoredReceipt, withPruned } from '../../../table/receipts.ts';
import { EVENTS } from '../../../table/tables.ts';
import { type PlaceVersion, STATE_FILE } from '../format.ts';
import { dayOfFolder, describeFile, fingerprint, parquetColumns, readMetadata, rowsOfFile } from '../parquet-file.ts';
import { receiptOf, storedProfilesOf } from '../stored-state.ts';
import {
  columnsInFile,
  dayPath,
  type FolderFile,
  PROFILES_FILE,
  parseStateFile,
  type StateFile,
  schemaOf,
} from './folder-state.ts';

/** A folder as it is on the disk: its state, corrected by what its files say. */
export interface FolderVersion extends StateFile, PlaceVersion {
  /** The text of `_dfinery.json`; undefined before the first commit. */
  readonly text: string | undefined;
  readonly files: ReadonlyMap<Day, FolderFile>;
  readonly profiles?: FolderFile | undefined;
  readonly damagedDays: ReadonlyMap<Day, FolderFile | undefined>;
  readonly damagedProfiles?: { readonly stored: StoredProfiles; readonly file: FolderFile | undefined } | undefined;
}

/** Reads a folder. `text`: that of its `_dfinery.json`. `removed`: days whose file somebody removed since. */
export async function readFolder(
  engine: Engine,
  root: string,
  text: string,
): Promise<{ readonly version: FolderVersion; readonly removed: readonly Day[] }> {
  const stored = parseStateFile(text, join(root, STATE_FILE));
  const { state } = stored;
  const files = new Map<Day, FolderFile>();
  const damagedDays = new Map<Day, FolderFile | undefined>();
  const adopted: StoredReceipt[] = [];
  for (const [day, onDisk] of await listDays(root)) {
    const inState = stored.files.get(day);
    const writtenAt = inState?.writtenAt ?? state.receipts.get(day)?.changed_at;
    const compared = await compareFile(engine, root, dayPath(day), { inState, writtenAt, onDisk });
    if (compared === undefined || compared.file.day !== day) damagedDays.set(day, inState);
    else {
      files.set(day, compared.file);
      if (compared.receipt !== undefined) adopted.push(compared.receipt);
    }
  }
  const receipts = receiptsOf([...state.receipts.values(), ...adopted]);
  const removed = removedDays(receipts, new Map([...files, ...damagedDays]));
  const changedAt = nextChangedAt(receipts, engine.options.clock.now());
  const version = {
    ...{ text, files, damagedDays },
    ...(await readProfiles(engine, root, stored, { ...state, receipts: withPruned(receipts, removed, changedAt) })),
  };
  const unfinishedDays = new Set(outdatedFiles(version).map(({ day }) => day));
  return { version: { ...version, unfinishedDays }, removed };
}

/** The files that have other columns, or columns of other types, than the state. */
export function outdatedFiles({ state, files }: StateFile): FolderFile[] {
  const schema = schemaOf(parquetColumns(state));
  return [...files.values()].filter((file) => file.schema !== schema);
}

/** The size and the time of a file on the disk; undefined if there is none. */
export function sizeAndTime(path: string): Pick<FolderFile, 'bytes' | 'modified'> | undefined {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  return stat && { bytes: stat.size, modified: stat.mtimeMs };
}

type OnDisk = NonNullable<ReturnType<typeof sizeAndTime>>;

/** The files of days, by day. An awaited call for each file would take 20 times as long. */
async function listDays(root: string): Promise<Map<Day, OnDisk>> {
  const days = new Map<Day, OnDisk>();
  const names = await readdir(join(root, EVENTS.name)).catch((error) => {
    if (codeOf(error) === 'ENOENT') return [];
    throw error;
  });
  for (const name of names.sort()) {
    const day = dayOfFolder(`${EVENTS.name}/${name}`);
    if (day === undefined) continue;
    const onDisk = sizeAndTime(join(root, dayPath(day)));
    if (onDisk !== undefined) days.set(day, onDisk);
  }
  return days;
}

/** The profiles as their file has them: a file that a killed run left says itself what it holds. */
async function readProfiles(engine: Engine, root: string, { profiles: inState }: StateFile, state: PlaceState) {
  const onDisk = sizeAndTime(join(root, PROFILES_FILE));
  const receipt = state.profiles?.receipt;
  if (onDisk === undefined) {
    // Without a row there is no file.
    const profiles = receipt?.rows_stored === 0 ? state.profiles : undefined;
    return { state: { ...state, profiles } };
  }
  const writtenAt = inState?.writtenAt ?? receipt?.changed_at;
  const compared = await compareFile(engine, root, PROFILES_FILE, { inState, writtenAt, onDisk });
  const profiles = compared?.receipt === undefined ? state.profiles : compared.profiles;
  if (compared === undefined || profiles === undefined) {
    const damagedProfiles = state.profiles && { stored: state.profiles, file: inState };
    return { state: { ...state, profiles: undefined }, damagedProfiles };
  }
  return { state: { ...state, profiles }, profiles: compared.file };
}

/** A file of the folder, and what the state says of it. `writtenAt` may be known although the file is not. */
interface StoredFacts {
  readonly inState: FolderFile | undefined;
  readonly writtenAt: string | undefined;
  readonly onDisk: OnDisk;
}

interface FileOnDisk {
  readonly file: FolderFile;
  /** Of a file that a killed run left: what it says of itself. */
  readonly receipt?: StoredReceipt;
  readonly profiles?: StoredProfiles | undefined;
}

/**
 * Compares a file with what the state says of it. One of the same size and time is unchanged. Any other is hashed:
 *
 *   the hash     written      the file
 *   is the same               was copied: the state's receipt holds
 *   is another   later        was left by a killed run: its own receipt holds
 *   is another   before       is damaged or older: undefined
 */
async function compareFile(
  engine: Engine,
  root: string,
  path: string,
  { inState, writtenAt: before = '', onDisk }: StoredFacts,
): Promise<FileOnDisk | undefined> {
  if (inState?.bytes === onDisk.bytes && inState.modified === onDisk.modified) return { file: inState };
  const local = join(root, path);
  const sha256 = await fingerprint(local);
  if (inState?.sha256 === sha256) return { file: { ...inState, ...onDisk } };
  const inFile = await receiptInFile(engine, local);
  if (inFile === undefined || inFile.writtenAt <= before) return undefined;
  const { receipt, profiles, writtenAt, columns } = inFile;
  const { day, rows_stored: rows } = receipt;
  return { file: { ...onDisk, ...columnsInFile(columns), day, path, rows, sha256, writtenAt }, receipt, profiles };
}

/** What a file says of itself; undefined if it cannot be read, or this program did not write it. */
async function receiptInFile(engine: Engine, path: string) {
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
