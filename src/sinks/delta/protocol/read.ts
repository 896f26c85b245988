import pLimit from 'p-limit';
import { compileSchema } from '../../../config/validate.ts';
import { type LogPlace, readCheckpoint } from './checkpoint.ts';
import { damaged, parseEntry } from './parse.ts';
import { beforeVersion, entryPath, LAST_CHECKPOINT, LOG_FOLDER, logFileOf } from './paths.ts';
import { Snapshot } from './snapshot.ts';

/** Entries fetched at once. */
const AT_ONCE = 16;
/** Entries held at once while they are taken in, in order. */
const BATCH = 256;

const validPointer = compileSchema<{ readonly version: number }>({
  type: 'object',
  required: ['version'],
  properties: { version: { type: 'integer', minimum: 0 } },
});

/** The latest version of a table; version −1 when there is none. Throws UserError for a log that is damaged. */
export async function readSnapshot(place: LogPlace): Promise<Snapshot> {
  let log = await findLog(place);
  for (;;) {
    try {
      return await snapshotOf(place, log);
    } catch (error) {
      const latest = await findLog(place);
      if (latest.from <= log.from) throw error;
      // A purge removed what was listed before it was read: its checkpoint has all of it.
      log = latest;
    }
  }
}

async function snapshotOf(place: LogPlace, { from, entries }: Log): Promise<Snapshot> {
  const snapshot = new Snapshot();
  if (from >= 0) snapshot.apply(from, await readCheckpoint(place, from));
  const versions = [...entries].filter((version) => version > from).sort((a, b) => a - b);
  checkWhole(place, from, versions);
  for (let at = 0; at < versions.length; at += BATCH)
    await applyEntries(place, snapshot, versions.slice(at, at + BATCH));
  return snapshot;
}

async function findLog(place: LogPlace): Promise<Log> {
  const pointer = await lastCheckpoint(place);
  const found = await listLog(place, pointer ?? 0);
  // A pointer to what is not there, as a copy made by hand may have: everything is looked at then.
  return pointer !== undefined && found.from < pointer ? await listLog(place, 0) : found;
}

/** The version that `_last_checkpoint` names: a hint, so whatever is wrong with it only costs a longer look. */
async function lastCheckpoint({ storage, folder }: LogPlace): Promise<number | undefined> {
  const bytes = await storage.read(`${folder}/${LAST_CHECKPOINT}`);
  if (bytes === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'));
    return validPointer(value) ? value.version : undefined;
  } catch {
    return undefined;
  }
}

/** What a log's folder has. */
interface Log {
  /** The version of the latest checkpoint; −1 if there is none. */
  readonly from: number;
  /** The versions of its entries. */
  readonly entries: ReadonlySet<number>;
}

async function listLog({ storage, folder }: LogPlace, since: number): Promise<Log> {
  const entries = new Set<number>();
  let from = -1;
  for await (const { path } of storage.list(`${folder}/${LOG_FOLDER}`, `${folder}/${beforeVersion(since)}`)) {
    const file = logFileOf(path.slice(folder.length + 1));
    if (file?.kind === 'entry') entries.add(file.version);
    else if (file?.kind === 'checkpoint') from = Math.max(from, file.version);
  }
  return { from, entries };
}

/** Every version from the checkpoint on is there once: a hole would be a hole in the data. */
function checkWhole({ storage, folder }: LogPlace, from: number, versions: readonly number[]): void {
  const missing = versions.findIndex((version, i) => version !== from + 1 + i);
  if (missing < 0) return;
  throw damaged(`${storage.address}/${folder}/${LOG_FOLDER}`, `version ${from + 1 + missing} is missing`);
}

async function applyEntries(
  { storage, folder }: LogPlace,
  snapshot: Snapshot,
  versions: readonly number[],
): Promise<void> {
  const limit = pLimit(AT_ONCE);
  const read = (version: number) => limit(() => storage.read(`${folder}/${entryPath(version)}`));
  const entries = await Promise.all(versions.map(read));
  for (const [i, version] of versions.entries()) {
    const where = `${storage.address}/${folder}/${entryPath(version)}`;
    const bytes = entries[i];
    if (bytes === undefined) throw damaged(where, 'it is gone');
    snapshot.apply(version, parseEntry(bytes.toString('utf8'), where));
  }
}
