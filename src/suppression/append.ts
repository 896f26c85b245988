import { closeSync, createReadStream, openSync, readSync, realpathSync, statSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Clock } from '../base/clock.ts';
import { configFailure } from '../base/errors.ts';
import { linesOf } from '../base/lines.ts';
import { isPlaceholder } from '../base/placeholder.ts';
import type { Secret } from '../base/secrets.ts';
import { syncFolder } from '../fs/atomic-file.ts';
import { diskFailure } from '../fs/disk-failure.ts';
import { withLockFile } from '../fs/lock.ts';
import { makeFolders } from '../fs/private-folder.ts';
import { checkSuppressionKey, isSuppressionHeader, suppressedIn, suppressionHeader, suppressionHmac } from './list.ts';

const LONGEST_HEADER = 1_024;
/** Another purge reads and writes the list in seconds. */
const LOCK_WAIT_MS = 60_000;
const NEWLINE = 0x0a;

export interface SuppressOptions {
  readonly clock: Clock;
  readonly signal?: AbortSignal | undefined;
}

/** A `df_unified_id`, or its hash as a target holds it, with the check value of the hash key (S47). */
interface Person {
  readonly text: string;
  readonly hashKey: string | undefined;
}

/**
 * Adds people to the list of those who stay forgotten: JSON Lines, a header and `{"hmac": …}` each (0600). Who is on it
 * already is not added again, a placeholder is nobody. Returns how many were added; on disk by then. Two runs at once write one
 * after the other; throws a transient failure when the other takes too long.
 */
export async function suppress(
  path: string,
  people: readonly Person[],
  key: Secret,
  { clock, signal }: SuppressOptions,
): Promise<number> {
  const what = `the suppression file ${path}`;
  const entries = new Map<string, string | undefined>();
  for (const { text, hashKey } of people) {
    if (!isPlaceholder(text)) entries.set(suppressionHmac(key, Buffer.from(text)), hashKey);
  }
  try {
    makeFolders(dirname(path), 0o700);
    const lock = { what, clock, waitMs: LOCK_WAIT_MS, signal };
    return await withLockFile(lockOf(path), lock, () => append(path, entries, key));
  } catch (error) {
    throw diskFailure(error, { what, path });
  }
}

/** One lock a file, by whichever link it is reached. */
function lockOf(path: string): string {
  const found = statSync(path, { throwIfNoEntry: false }) === undefined ? undefined : realpathSync(path);
  return `${found ?? join(realpathSync(dirname(path)), basename(path))}.lock`;
}

/** Throws a configuration failure for a key that is too short, a path where no list can be, and a file that is something else. */
export function checkSuppression(path: string, key: Secret): void {
  checkSuppressionKey(key);
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined || (found.isFile() && isList(path, found.size, key))) return;
  throw configFailure(`${path} is no suppression file: give another path, or one where there is nothing yet.`);
}

function isList(path: string, size: number, key: Secret): boolean {
  const line = firstLine(path);
  // An empty file, or what a cut of the power leaves of a list that was just begun.
  if (line.length === size && headerLine(key).startsWith(line)) return true;
  return isSuppressionHeader(line, path, key) || suppressedIn(line) !== undefined;
}

function firstLine(path: string): string {
  const file = openSync(path, 'r');
  try {
    const buffer = Buffer.alloc(LONGEST_HEADER);
    const text = buffer.toString('utf8', 0, readSync(file, buffer, 0, buffer.length, 0));
    return text.split('\n', 1)[0];
  } finally {
    closeSync(file);
  }
}

async function append(path: string, people: Map<string, string | undefined>, key: Secret): Promise<number> {
  checkSuppression(path, key);
  const file = await open(path, 'a+', 0o600);
  try {
    const found = await readList(path, people);
    if (people.size === 0 && found.whole > 0) return 0;
    if (found.whole < (await file.stat()).size) await file.truncate(found.whole);
    const entries = [...people].map(([hmac, hashKey]) => ({ hmac, hash_key: hashKey }));
    await addLines(file, found, entries, key);
    if (found.whole === 0) await syncFolder(dirname(realpathSync(path)));
    return people.size;
  } finally {
    await file.close();
  }
}

async function addLines(file: FileHandle, found: List, entries: readonly object[], key: Secret): Promise<void> {
  const { whole, isEnded } = found;
  const header = whole === 0 ? [headerLine(key)] : [];
  const lines = [...header, ...entries.map((entry) => JSON.stringify(entry))];
  try {
    await file.writeFile(`${isEnded ? '' : '\n'}${lines.join('\n')}\n`);
    await file.sync();
  } catch (error) {
    // Readers refuse a list with half a line, and rightly so.
    await file.truncate(whole);
    throw error;
  }
}

const headerLine = (key: Secret): string => JSON.stringify(suppressionHeader(key));

interface List {
  /** Bytes of its whole lines, without what a crash cut. */
  readonly whole: number;
  /** False when the last of them, as an editor may leave it, has no line end. */
  readonly isEnded: boolean;
}

/** Takes out those who are on the list already. */
async function readList(path: string, people: Map<string, unknown>): Promise<List> {
  let [seen, ended] = [0, 0];
  let last: string | undefined;
  const watched = (async function* () {
    for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
      const end = chunk.lastIndexOf(NEWLINE);
      if (end !== -1) ended = seen + end + 1;
      seen += chunk.length;
      yield chunk;
    }
  })();
  for await (const lines of linesOf(watched)) {
    for (const line of lines) {
      last = suppressedIn(line.toString());
      if (last !== undefined) people.delete(last);
    }
  }
  const isEnded = ended === seen || last === undefined;
  return { whole: isEnded ? ended : seen, isEnded };
}
