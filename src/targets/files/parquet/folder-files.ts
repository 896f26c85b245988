import { lstatSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type Day, isDay } from '../../../base/days.ts';
import { codeOf } from '../../../base/errors.ts';
import { jsonOf } from '../../../base/json.ts';
import { literal, pathLiteral } from '../../../cells/types/sql.ts';
import type { Engine } from '../../../engine/session/engine.ts';
import type { StoredProfiles } from '../../../table/place-state.ts';
import type { StoredReceipt } from '../../../table/receipts.ts';
import { fingerprint, PROFILES_KEY, RECEIPT_KEY, rowsOfFile, WRITTEN_KEY } from '../parquet-file.ts';
import { describeFile, PARTITION_COLUMN } from '../rows.ts';
import { profilesOf, receiptOf } from '../stored.ts';
import {
  type FolderFile,
  type FolderState,
  filePath,
  PROFILES_PATH,
  type ProfilesFile,
  profilesFile,
  schemaOf,
} from './state-file.ts';

export const FILE = 'data.parquet';
export const DAY_FOLDER = new RegExp(`^${PARTITION_COLUMN}=(\\d{4}-\\d{2}-\\d{2})$`);

/** The size and the time of a file on the disk. */
type FileFacts = Pick<FolderFile, 'bytes' | 'modified'>;

/** The files of a folder beside its state. */
export interface FolderFiles {
  /** The files that are as the state says, copies of them, and those that a killed run left. */
  readonly files: ReadonlyMap<Day, FolderFile>;
  /** Receipts of the files that a killed run left. */
  readonly receipts: readonly StoredReceipt[];
  /** Days whose file is damaged or older, with what the state says of the file. */
  readonly damaged: ReadonlyMap<Day, FolderFile | undefined>;
}

/**
 * Compares the files of a folder with its state. A file of the known size and time is believed, any other is hashed:
 *
 *   the hash     written      the file
 *   is known                  was copied: the state's receipt holds
 *   is another   later        was left by a killed run: its own receipt holds
 *   is another   before       is damaged or older
 */
export async function compareFiles(
  engine: Engine,
  root: string,
  { state, files: stored }: FolderState,
): Promise<FolderFiles> {
  const files = new Map<Day, FolderFile>();
  const receipts: StoredReceipt[] = [];
  const damaged = new Map<Day, FolderFile | undefined>();
  for (const [day, facts] of await listFiles(root)) {
    const known = stored.get(day);
    if (known !== undefined && known.bytes === facts.bytes && known.modified === facts.modified) {
      files.set(day, known);
      continue;
    }
    const path = join(root, filePath(day));
    const sha256 = await fingerprint(path);
    if (known?.sha256 === sha256) {
      files.set(day, { ...known, ...facts });
      continue;
    }
    const own = await readOwnFacts(engine, day, path);
    if (own !== undefined && own.writtenAt > (known?.writtenAt ?? state.receipts.get(day)?.changed_at ?? '')) {
      const { receipt, ...file } = own;
      files.set(day, { ...file, ...facts, day, path: filePath(day), rows: receipt.rows_stored, sha256 });
      receipts.push(receipt);
    } else damaged.set(day, known);
  }
  return { files, receipts, damaged };
}

/**
 * The table of profiles as its file has it. A file that is not the known one says itself what it holds; undefined for one
 * that does not.
 */
export async function readProfiles(
  engine: Engine,
  root: string,
  { state, profiles: known }: FolderState,
): Promise<{ readonly profiles: StoredProfiles; readonly file: ProfilesFile | undefined } | undefined> {
  const path = join(root, PROFILES_PATH);
  const facts = sizeOf(path);
  if (facts === undefined)
    return state.profiles?.receipt.rows_stored === 0 ? { profiles: state.profiles, file: undefined } : undefined;
  if (state.profiles !== undefined && known?.bytes === facts.bytes && known.modified === facts.modified) {
    return { profiles: state.profiles, file: known };
  }
  const sha256 = await fingerprint(path);
  if (state.profiles !== undefined && known?.sha256 === sha256) {
    return { profiles: state.profiles, file: { ...known, ...facts } };
  }
  try {
    const { text } = await engine.row(`
      SELECT any_value(decode(value)) FILTER (WHERE decode(key) = ${literal(PROFILES_KEY)}) AS text
      FROM parquet_kv_metadata(${pathLiteral(path)})`);
    const profiles = profilesOf(jsonOf(String(text)), path);
    const rows = await rowsOfFile(engine, path);
    if (profiles === undefined || rows !== profiles.receipt.rows_stored) return undefined;
    return { profiles, file: profilesFile(profiles, state.timezone, { ...facts, rows, sha256 }) };
  } catch (error) {
    engine.options.signal?.throwIfAborted();
    if (codeOf(error) === 'EACCES') throw error;
    return undefined;
  }
}

/** The files of days, by day. Sizes and times of 1,000 files take 5 ms at once, and 100 one after the other. */
async function listFiles(root: string): Promise<Map<Day, FileFacts>> {
  const files = new Map<Day, FileFacts>();
  const names = await readdir(join(root, 'events')).catch((error) => {
    if (codeOf(error) === 'ENOENT') return [];
    throw error;
  });
  for (const name of names.sort()) {
    const day = DAY_FOLDER.exec(name)?.[1];
    if (day === undefined || !isDay(day)) continue;
    const facts = factsOf(root, day);
    if (facts !== undefined) files.set(day, facts);
  }
  return files;
}

/** The size and the time of the file of a day; undefined if there is none. */
export function factsOf(root: string, day: Day): FileFacts | undefined {
  return sizeOf(join(root, filePath(day)));
}

export function sizeOf(path: string): FileFacts | undefined {
  const found = lstatSync(path, { throwIfNoEntry: false });
  return found && { bytes: found.size, modified: found.mtimeMs };
}

/** What a file says of itself; undefined if it cannot be read, or this program did not write it as a file of the day. */
async function readOwnFacts(engine: Engine, day: Day, path: string) {
  try {
    const { receipt: text, written } = await engine.row(`
      SELECT
        any_value(decode(value)) FILTER (WHERE decode(key) = ${literal(RECEIPT_KEY)}) AS receipt,
        any_value(decode(value)) FILTER (WHERE decode(key) = ${literal(WRITTEN_KEY)}) AS written
      FROM parquet_kv_metadata(${pathLiteral(path)})`);
    const receipt = receiptOf(jsonOf(String(text)), path);
    if (receipt.day !== day || (await rowsOfFile(engine, path)) !== receipt.rows_stored) return undefined;
    const columns = await describeFile(engine, path);
    const names = new Set(columns.map(({ name }) => name));
    return { receipt, writtenAt: String(written), schema: schemaOf(columns), columns: names };
  } catch (error) {
    engine.options.signal?.throwIfAborted();
    if (codeOf(error) === 'EACCES') throw error;
    return undefined;
  }
}
