import { lstatSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Day } from '../../../base/days.ts';
import { codeOf } from '../../../base/errors.ts';
import { tryParseJson } from '../../../base/json.ts';
import type { Engine } from '../../../engine/session/engine.ts';
import { isOutOfMemory } from '../../../engine/session/engine-errors.ts';
import type { Storage } from '../../../storage/storage.ts';
import { countStoredRows, nextChangedAt, receiptsOf, removedDays, withPruned } from '../../../table/receipts.ts';
import { EVENTS, USER_PROFILES } from '../../../table/tables.ts';
import type { LocalFiles } from '../local-files.ts';
import type { PlaceVersion } from '../place-version.ts';
import { countRowsOfFile, hashFile, readColumnTypes, readMetadata } from '../read-parquet.ts';
import { receiptOf, tableStateOf } from '../stored-state.ts';
import {
  DATA_FILE,
  dayOfPath,
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
  /** Paths of files that are neither recorded nor written later. The recorded file may come back from a copy. */
  readonly damagedPaths: ReadonlySet<string>;
  /** Days whose file somebody removed since. */
  readonly missingDays: readonly Day[];
  /** What `_dfinery.json` holds, and its text. */
  readonly recorded: FolderState & { readonly text: string };
}

/** The text of `_dfinery.json`; undefined before the first commit. */
export const readStateText = async (storage: Storage): Promise<string | undefined> =>
  (await storage.read(STATE_FILE))?.toString('utf8');

/** Reads a folder; undefined before its first commit. */
export async function readFolder({ engine, storage }: LocalFiles): Promise<FolderVersion | undefined> {
  const text = await readStateText(storage);
  if (text === undefined) return undefined;
  const recorded = { text, ...parseFolderState(text, join(storage.address, STATE_FILE)) };
  const { events, user_profiles } = recorded.state;
  const files: FolderFile[] = [];
  const damagedPaths = new Set<string>();
  const receiptByDay = new Map(events.receipts);
  // Without a row there is no file.
  let profiles = user_profiles && countStoredRows(user_profiles.receipts.values()) === 0 ? user_profiles : undefined;
  const filesOnDisk = await listFiles(storage.address);
  for (const fileOnDisk of filesOnDisk) {
    const { path, day } = fileOnDisk;
    const compared = await compareFile(engine, storage.address, fileOnDisk, recorded);
    if (compared !== undefined) {
      const { file, metadata } = compared;
      files.push(file);
      if (day === undefined) profiles = metadata?.snapshot ?? user_profiles;
      else if (metadata !== undefined) receiptByDay.set(day, metadata.receipt);
    } else if (day !== undefined || user_profiles !== undefined) {
      damagedPaths.add(path);
    }
  }
  const receipts = receiptsOf(receiptByDay.values());
  const missingDays = removedDays(receipts, new Set(filesOnDisk.map(({ day }) => day)));
  const changedAt = nextChangedAt(receipts, engine.clock.now());
  const eventsNow = { ...events, receipts: withPruned(receipts, missingDays, changedAt) };
  const state = { ...recorded.state, events: eventsNow, user_profiles: profiles };
  return { state, files, damagedPaths, missingDays, recorded };
}

type SizeAndTime = Pick<FolderFile, 'bytes' | 'modified'>;

/** The size and the time of a file on the disk; undefined if there is none. */
export function sizeAndTime(path: string): SizeAndTime | undefined {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  return stat && { bytes: stat.size, modified: stat.mtimeMs };
}

interface FileOnDisk extends SizeAndTime {
  readonly path: string;
  /** Undefined for the file of profiles. */
  readonly day: Day | undefined;
}

/** Lists the files of days, then that of profiles. An awaited call for each file would take 20 times as long. */
async function listFiles(root: string): Promise<FileOnDisk[]> {
  const names = await readdir(join(root, EVENTS.name)).catch((error) => {
    if (codeOf(error) === 'ENOENT') return [];
    throw error;
  });
  const days = names.sort().flatMap((name) => dayOfPath(`${EVENTS.name}/${name}/${DATA_FILE}`) ?? []);
  return [...days, undefined].flatMap((day) => {
    const path = day === undefined ? PROFILES_FILE : filePath(day, EVENTS.name);
    const onDisk = sizeAndTime(join(root, path));
    return onDisk === undefined ? [] : [{ day, path, ...onDisk }];
  });
}

/**
 * Compares a file with what the state says of it. One of the same size and time is unchanged. Any other is hashed:
 *
 *   the hash     written      the file
 *   is the same               was copied: the state's receipt holds
 *   is another   later        was left by a killed run: the receipt in its own metadata holds
 *   is another   before       is damaged or older: undefined
 *
 * A killed run may also have left a file that it was to remove: the state has its receipt without rows. Then, too, the
 * receipt in its own metadata holds.
 */
async function compareFile(
  engine: Engine,
  root: string,
  { path, day, ...onDisk }: FileOnDisk,
  { state, files }: FolderState,
): Promise<{ readonly file: FolderFile; readonly metadata?: FileMetadata } | undefined> {
  const local = join(root, path);
  const recorded = files.get(path);
  const [profilesReceipt] = state.user_profiles?.receipts.values() ?? [];
  const receipt = day === undefined ? profilesReceipt : state.events.receipts.get(day);
  const isUnchanged = recorded?.bytes === onDisk.bytes && recorded.modified === onDisk.modified;
  const sha256 = isUnchanged ? recorded.sha256 : await hashFile(local);
  const isRecorded = recorded?.sha256 === sha256;
  if (isRecorded && receipt?.rows_stored !== 0) {
    return { file: { ...recorded, ...onDisk, columns: recorded.columns ?? (await readColumnTypes(engine, local)) } };
  }
  const metadata = await readFileMetadata(engine, local);
  if (metadata === undefined) return undefined;
  const changedBefore = receipt?.changed_at ?? '';
  // After the clock was set back, the receipt alone is later.
  const isLater =
    metadata.writtenAt > (recorded?.writtenAt ?? changedBefore) || metadata.receipt.changed_at > changedBefore;
  if (!isRecorded && !isLater) return undefined;
  const { writtenAt, columns, snapshot } = metadata;
  const { day: fileDay, rows_stored: rows } = metadata.receipt;
  const { name: table } = snapshot === undefined ? EVENTS : USER_PROFILES;
  if (path !== filePath(fileDay, table)) return undefined;
  return { file: { table, day: fileDay, path, rows, sha256, writtenAt, ...onDisk, columns }, metadata };
}

type FileMetadata = NonNullable<Awaited<ReturnType<typeof readFileMetadata>>>;

/** What a file says of itself; undefined if it cannot be read, or this program did not write it. */
async function readFileMetadata(engine: Engine, path: string) {
  try {
    const { receipt: text = '', table, writtenAt = '' } = await readMetadata(engine, path);
    const receipt = receiptOf(tryParseJson(text), path);
    if ((await countRowsOfFile(engine, path)) !== receipt.rows_stored) return undefined;
    const columns = await readColumnTypes(engine, path);
    const snapshot = table === undefined ? undefined : tableStateOf(tryParseJson(table), path);
    return { receipt, snapshot, writtenAt, columns };
  } catch (error) {
    engine.throwIfAborted();
    if (isOutOfMemory(error)) throw error;
    return undefined;
  }
}
