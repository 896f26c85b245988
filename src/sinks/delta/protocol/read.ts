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
  const pointer = await lastCheckpoint(place);
  const found = await listLog(place, pointer ?? 0);
  // A pointer to what is not there, as a copy made by hand may have: everything is looked at then.
  const log = pointer !== undefined && !found.checkpoints.has(pointer) ? await listLog(place, 0) : found;
  const from = Math.max(-1, ...log.checkpoints);
  const snapshot = new Snapshot();
  if (from >= 0) snapshot.apply(from, await readCheckpoint(place, from));
  const versions = [...log.entries].filter((version) => version > from).sort((a, b) => a - b);
  checkWhole(place, from, versions);
  for (let at = 0; at < versions.length; at += BATCH)
    await applyEntries(place, snapshot, versions.slice(at, at + BATCH));
  return snapshot;
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

interface Log {
  readonly entries: ReadonlySet<number>;
  readonly checkpoints: ReadonlySet<number>;
}

async function listLog({ storage, folder }: LogPlace, from: number): Promise<Log> {
  const [entries, checkpoints] = [new Set<number>(), new Set<number>()];
  for await (const { path } of storage.list(`${folder}/${LOG_FOLDER}`, `${folder}/${beforeVersion(from)}`)) {
    const file = logFileOf(path.slice(folder.length + 1));
    if (file?.kind === 'entry') entries.add(file.version);
    else if (file?.kind === 'checkpoint') checkpoints.add(file.version);
  }
  return { entries, checkpoints };
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
