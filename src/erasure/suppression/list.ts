// This folder: the list of people who stay forgotten. Deletions write it, extractions read it.

import { createHash, createHmac } from 'node:crypto';
import { readFileSync, realpathSync, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { LF } from '../../base/ascii.ts';
import type { Clock } from '../../base/clock.ts';
import { configError, messageOf } from '../../base/errors.ts';
import { type JsonObject, objectIn } from '../../base/json.ts';
import { isPlaceholder } from '../../base/placeholder.ts';
import { MIN_KEY_LENGTH, type Secret } from '../../base/secrets.ts';
import type { HashKey } from '../../cells/columns/hash-key.ts';
import { OWNER_FILE, syncFolder } from '../../fs/atomic-file.ts';
import { diskError } from '../../fs/disk-failure.ts';
import { withLockFile } from '../../fs/lock.ts';
import { makeFolders } from '../../fs/private-folder.ts';

/** The people on the suppression list, whose rows are never written to a spool file. */
export interface Suppression {
  /** True for a `df_unified_id` whose rows are left out. */
  readonly isSuppressed: (bytes: Uint8Array, start: number, end: number) => boolean;
  /** Differs for any two lists or keys: spool files made with another list are not reused. */
  readonly digest: string;
}

const HEADER = { v: 1, kind: 'suppression' } as const;
/** Another purge reads and writes the list in seconds. */
const LOCK_WAIT_MS = 60_000;
/** Maximum number of cached answers; then the cache is cleared. */
const MAX_ANSWERS = 100_000;
const HMAC = /^[0-9a-f]{64}$/;

/** First line of a suppression file, which tells a wrong key; every other one is `{"hmac":"<64 hex>"}`. */
export const suppressionHeader = (key: Secret) => ({ ...HEADER, key_check: checkOf(key) });

const checkOf = (key: Secret): string =>
  suppressionHmac(key, Buffer.from('dfinery-elt suppression key check v1')).slice(0, 16);

/** HMAC-SHA256 (hex) of a `df_unified_id` under the suppression key. */
export const suppressionHmac = (key: Secret, unifiedId: Uint8Array): string =>
  createHmac('sha256', key.reveal()).update(unifiedId).digest('hex');

function checkKey(key: Secret): void {
  if (key.reveal().length >= MIN_KEY_LENGTH) return;
  throw configError(
    `suppression_key (DFINERY_SUPPRESSION_KEY) is shorter than ${MIN_KEY_LENGTH} characters: make a longer one, ` +
      'for instance with "openssl rand -hex 32", and begin a new suppression file.',
  );
}

/** Whether a line is a suppression file's first one; throws a configuration failure for one of another key. */
function isHeader(line: JsonObject, path: string, key: Secret): boolean {
  if (line.kind !== HEADER.kind || line.v !== HEADER.v) return false;
  if (line.key_check === undefined || line.key_check === checkOf(key)) return true;
  throw configError(
    `The suppression file ${path} was written under another key: give that one as suppression_key (or DFINERY_SUPPRESSION_KEY).`,
    { where: { file: path } },
  );
}

/** The HMAC in a line; undefined for a line that names nobody, such as a header or a part of a line. */
const hmacIn = ({ hmac }: JsonObject): string | undefined =>
  typeof hmac === 'string' && HMAC.test(hmac) ? hmac : undefined;

/**
 * The people who stay forgotten, from a file of JSON Lines. Throws UserError unless every line is understood: a list
 * that is not whole must not let anybody through. `hashKey`: that of `df_unified_id`; a person may be listed by the id
 * or its hash.
 */
export function loadSuppression(path: string, key: Secret, hashKey?: HashKey): Suppression {
  checkKey(key);
  const listed = new Set<string>();
  for (const [i, text] of readList(path).split(/\r?\n/).entries()) {
    const line = objectIn(text);
    if (text.trim() === '' || isHeader(line, path, key)) continue;
    const unusableError = (why: string) =>
      configError(`Line ${i + 1} of the suppression file ${path} ${why}`, { where: { file: path, row: i + 1 } });
    // A person who is known by a hash alone is not found under another key.
    if (line.hash_key !== undefined && line.hash_key !== hashKey?.check) throw unusableError(OTHER_HASH_KEY);
    const hmac = hmacIn(line);
    if (hmac === undefined) throw unusableError(NO_ENTRY);
    listed.add(hmac);
  }
  const digest = createHash('sha256').update(suppressionHmac(key, Buffer.from('digest')));
  for (const hmac of [...listed].sort()) digest.update(hmac);
  return { isSuppressed: lookup(listed, key, hashKey), digest: digest.digest('hex') };
}

const OTHER_HASH_KEY =
  'names a person by df_unified_id as hashed under another hash_key, or while it was hashed: the rows would come back. Keep ' +
  'df_unified_id in columns_hash and that key, or begin a new suppression file once the service exports no row of these ' +
  'people any more.';
const NO_ENTRY =
  'is not {"hmac":"<64 hex digits>"}: if a purge was broken off, run it again, which mends a last line that was cut; else ' +
  'restore the file, or use the version that wrote it.';

function readList(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw configError(
      `The suppression file ${path} cannot be read (${messageOf(error)}): make an empty file if nobody is to be suppressed yet.`,
      { cause: error, where: { file: path } },
    );
  }
}

function lookup(listed: ReadonlySet<string>, key: Secret, hashKey: HashKey | undefined): Suppression['isSuppressed'] {
  const has = (id: Uint8Array) => listed.has(suppressionHmac(key, id));
  if (listed.size === 0) return () => false;
  const answers = new Map<string, boolean>();
  return (bytes, start, end) => {
    const id = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start);
    const text = id.toString('latin1');
    const known = answers.get(text);
    if (known !== undefined) return known;
    if (answers.size >= MAX_ANSWERS) answers.clear();
    const answer = has(id) || (hashKey !== undefined && has(Buffer.from(hashKey.hashOf(id))));
    answers.set(text, answer);
    return answer;
  };
}

/** A `df_unified_id`, or its hash as a target holds it, with the check value of the hash key. */
interface Person {
  readonly text: string;
  readonly hashKey: string | undefined;
}

/**
 * Adds people who are not on the list yet; a placeholder is nobody. Returns how many, on disk by then. Throws
 * UserError, also when a run at the same time holds the list too long.
 */
export async function suppress(
  path: string,
  people: readonly Person[],
  key: Secret,
  { clock, signal }: { readonly clock: Clock; readonly signal?: AbortSignal | undefined },
): Promise<number> {
  const what = `the suppression file ${path}`;
  const entries = new Map<string, string | undefined>();
  for (const { text, hashKey } of people) {
    if (!isPlaceholder(text)) entries.set(suppressionHmac(key, Buffer.from(text)), hashKey);
  }
  try {
    makeFolders(dirname(path));
    const lock = { what, clock, waitMs: LOCK_WAIT_MS, signal };
    return await withLockFile(lockOf(path), lock, (checkHeld) => append(path, entries, key, checkHeld));
  } catch (error) {
    throw diskError(error, { what, path });
  }
}

/** The path of a list's lock, the same by whichever link the list is reached. */
function lockOf(path: string): string {
  const found = statSync(path, { throwIfNoEntry: false }) === undefined ? undefined : realpathSync(path);
  return `${found ?? join(realpathSync(dirname(path)), basename(path))}.lock`;
}

/**
 * Throws a configuration failure for a key that is too short, a path where no list can be, and a file that is something
 * else.
 */
export function checkSuppression(path: string, key: Secret): void {
  checkKey(key);
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined || (found.isFile() && isList(readFileSync(path, 'utf8'), path, key))) return;
  throw configError(`${path} is no suppression file: give another path, or one where there is nothing yet.`);
}

function isList(text: string, path: string, key: Secret): boolean {
  // The file is empty, or a power cut has left a part of a header that was just being written.
  if (headerLine(key).startsWith(text)) return true;
  const first = objectIn(text.split('\n', 1)[0]);
  return isHeader(first, path, key) || hmacIn(first) !== undefined;
}

const headerLine = (key: Secret): string => JSON.stringify(suppressionHeader(key));

/** Adds people to the list; removes from `people` those who are on it already. The caller holds the lock. */
async function append(
  path: string,
  people: Map<string, string | undefined>,
  key: Secret,
  checkHeld: () => void,
): Promise<number> {
  checkSuppression(path, key);
  const file = await open(path, 'a+', OWNER_FILE);
  try {
    const bytes = await file.readFile();
    const lines = bytes.toString().split('\n');
    for (const line of lines) people.delete(hmacIn(objectIn(line)) ?? '');
    // A last line without a line end is whole if an editor left it so; else a crash cut it.
    const isEnded = hmacIn(objectIn(lines[lines.length - 1])) === undefined;
    const whole = isEnded ? bytes.lastIndexOf(LF) + 1 : bytes.length;
    if (people.size === 0 && whole > 0) {
      // A run that wrote them and was killed may not have synced them.
      await file.sync();
      await syncFolder(dirname(realpathSync(path)));
      return 0;
    }
    checkHeld();
    if (whole < bytes.length) await file.truncate(whole);
    const entries = [...people].map(([hmac, hashKey]) => JSON.stringify({ hmac, hash_key: hashKey }));
    const added = [...(whole === 0 ? [headerLine(key)] : []), ...entries];
    try {
      await file.writeFile(`${isEnded ? '' : '\n'}${added.join('\n')}\n`);
      await file.sync();
    } catch (error) {
      // Readers refuse a list with half a line, so that it is removed again.
      await file.truncate(whole);
      throw error;
    }
    if (whole === 0) await syncFolder(dirname(realpathSync(path)));
    return people.size;
  } finally {
    await file.close();
  }
}
