import { createHash, createHmac } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import type { Clock } from '../base/clock.ts';
import { codeOf, configError, messageOf } from '../base/errors.ts';
import { objectIn } from '../base/json.ts';
import { isPlaceholder } from '../base/placeholder.ts';
import { MIN_KEY_LENGTH, type Secret } from '../base/secrets.ts';
import { UNIFIED_ID } from '../cells/columns/groups.ts';
import { HashKey } from '../cells/columns/hash-key.ts';
import type { Suppression, SuppressionVersion } from '../cells/columns/row-filter.ts';
import { OWNER_FILE, syncFolder } from '../fs/atomic-file.ts';
import { diskError } from '../fs/disk-failure.ts';
import { withLockFile } from '../fs/lock.ts';
import { makeFolders } from '../fs/permissions.ts';

// The suppression list: a file of JSON Lines. The first line is a header that tells a wrong key. Every other line is
// an HMAC of a person. Purges append to it, and never change a line. Downloads leave out the rows of these people.

/** A suppression list as it is configured. */
export interface SuppressionFile {
  readonly file: string;
  readonly key: Secret;
}

/** Somebody who stays forgotten: a `df_unified_id`, or an external id with its column where no row names one. */
export interface Forgotten {
  readonly text: string;
  /** The column that holds the external id; undefined for a `df_unified_id`. */
  readonly column?: string | undefined;
  /** Check value of the key under which `text` is a hash; undefined for a plain text. */
  readonly hashKey?: string | undefined;
}

interface Entry {
  readonly hmac: string;
  readonly column?: string | undefined;
  readonly hash_key?: string | undefined;
}

const HMAC = /^[0-9a-f]{64}$/;
/** Another purge appends to the list in seconds; a lock whose owner was killed is free after a minute. */
const LOCK_WAIT_MS = 75_000;
/** Maximum number of cached answers; then the cache is cleared. */
const MAX_ANSWERS = 100_000;

const hmacOf = (key: Secret, text: string | Uint8Array): string =>
  createHmac('sha256', key.reveal()).update(text).digest('hex');

const checkOf = (key: Secret): string => hmacOf(key, 'dfinery-elt suppression key check v1').slice(0, 16);
const headerOf = (key: Secret): string => JSON.stringify({ v: 1, kind: 'suppression', key_check: checkOf(key) });

/** What stands before an external id in its HMAC: the same text in two columns may be two people. */
const prefixOf = (column: string | undefined): Buffer =>
  Buffer.from(column === undefined || column === UNIFIED_ID ? '' : `${column}\0`);

function checkKey(key: Secret): void {
  if (key.reveal().length >= MIN_KEY_LENGTH) return;
  throw configError(
    `suppression_key is shorter than ${MIN_KEY_LENGTH} characters. Make a longer one, for instance with ` +
      '"openssl rand -hex 32", and begin a new suppression_file.',
  );
}

/** A suppression list that was read whole. */
export class SuppressionList {
  readonly path: string;
  readonly key: Secret;
  readonly entries: readonly Entry[];

  /** Throws UserError unless every line is understood: half a list would let people through. */
  constructor({ file, key }: SuppressionFile, text: string) {
    checkKey(key);
    this.path = file;
    this.key = key;
    this.entries = entriesIn(text, file, key);
  }

  /** The first `length` entries, by default all. */
  version(length = this.entries.length): SuppressionVersion {
    const head = createHash('sha256');
    for (const { hmac } of this.entries.slice(0, length)) head.update(hmac);
    return { head: head.digest('hex'), length };
  }

  extends({ head, length }: SuppressionVersion): boolean {
    return length <= this.entries.length && this.version(length).head === head;
  }
}

function entriesIn(text: string, path: string, key: Secret): Entry[] {
  return text.split(/\r?\n/).flatMap((line, i) => {
    if (line.trim() === '') return [];
    const refused = (why: string) =>
      configError(`Line ${i + 1} of the suppression file ${path} ${why}`, { where: { file: path, row: i + 1 } });
    const { kind, key_check, hmac, column, hash_key } = objectIn(line);
    if (i === 0 && kind === 'suppression') {
      if (key_check === checkOf(key)) return [];
      throw refused('was written under another key: give that one as suppression_key.');
    }
    if (typeof hmac !== 'string' || !HMAC.test(hmac)) {
      throw refused(
        'is not {"hmac":"<64 hex digits>"}. Restore the file; the next purge removes a last line that was cut.',
      );
    }
    return { hmac, column: textOf(column), hash_key: textOf(hash_key) };
  });
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

/** Reads a list whole. Throws UserError, also for a file that is not there: perhaps its disk is not mounted. */
function readSuppression(given: SuppressionFile, edit = (text: string) => text): SuppressionList {
  try {
    return new SuppressionList(given, edit(readFileSync(given.file, 'utf8')));
  } catch (error) {
    if (codeOf(error) === undefined) throw error;
    throw configError(
      `The suppression_file ${given.file} cannot be read (${messageOf(error)}). If nobody is suppressed yet, make an empty file.`,
      { cause: error, where: { file: given.file } },
    );
  }
}

/**
 * The list that a purge will append to. A missing file is an empty list, and a last line that was cut does not count.
 */
export function suppressionToAppend(given: SuppressionFile): SuppressionList {
  const isThere = statSync(given.file, { throwIfNoEntry: false }) !== undefined;
  return isThere ? readSuppression(given, wholeLines) : new SuppressionList(given, '');
}

/** The text without a last line that a crash has cut. A whole line may lack its end, as an editor leaves it. */
function wholeLines(text: string): string {
  const end = text.lastIndexOf('\n') + 1;
  const isWhole = HMAC.test(textOf(objectIn(text.slice(end)).hmac) ?? '');
  return isWhole ? `${text}\n` : text.slice(0, end);
}

/**
 * The filter for downloads. `hashKey`: the key of `df_unified_id` if a configuration hashes it; a person may be listed by
 * the id or its hash. Throws UserError for a person who is known by the hash under another key.
 */
function loadSuppression(given: SuppressionFile, hashKey?: HashKey): Suppression {
  const list = readSuppression(given);
  const { key, entries } = list;
  if (entries.some(({ hash_key }) => hash_key !== undefined && hash_key !== hashKey?.check)) {
    throw configError(
      `The suppression_file ${given.file} names people by df_unified_id as it was hashed under another hash_key. Keep ` +
        'df_unified_id in columns_hash with that key, or their rows would come back.',
      { where: { file: given.file } },
    );
  }
  const listed = new Set(entries.map(({ hmac }) => hmac));
  const columns = [UNIFIED_ID, ...new Set(entries.flatMap(({ column }) => column ?? []))];
  const answers = new Map<string, boolean>();
  const drops: Suppression['drops'] = (column, bytes, start, end) => {
    if (listed.size === 0) return false;
    const text = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start);
    const cell = Buffer.concat([prefixOf(column), text]);
    const name = cell.toString('latin1');
    const known = answers.get(name);
    if (known !== undefined) return known;
    const isHashed = column === UNIFIED_ID && hashKey !== undefined;
    const answer = listed.has(hmacOf(key, cell)) || (isHashed && listed.has(hmacOf(key, hashKey.hashOf(text))));
    if (answers.size >= MAX_ANSWERS) answers.clear();
    answers.set(name, answer);
    return answer;
  };
  return { columns, drops, version: list.version(), extends: (version) => list.extends(version) };
}

/** The filter of a source configuration; undefined if it names no list. */
export function suppressionOf(config: {
  readonly suppressionFile: string | undefined;
  readonly suppressionKey: Secret | undefined;
  readonly columnsHash: readonly string[];
  readonly hashKey: Secret | undefined;
}): Suppression | undefined {
  const { suppressionFile: file, suppressionKey: key, columnsHash, hashKey } = config;
  if (file === undefined || key === undefined) return undefined;
  const isHashed = columnsHash.includes(UNIFIED_ID) && hashKey !== undefined;
  return loadSuppression({ file, key }, isHashed ? new HashKey(hashKey) : undefined);
}

/**
 * Throws UserError if a place was purged with a list, and `list` is missing, another one or a shorter one. A sync would
 * bring people back, and a purge would lose track of them.
 */
export function requireSuppression(
  place: string,
  stored: SuppressionVersion | undefined,
  list: Pick<Suppression, 'extends'> | undefined,
): void {
  if (stored === undefined || stored.length === 0 || list?.extends(stored)) return;
  const why =
    list === undefined
      ? 'no suppression_file is configured'
      : 'the suppression_file is another one, or an older copy of it';
  throw configError(
    `${place} was purged with a suppression list of ${stored.length} entries, but ${why}. Give that list as ` +
      'suppression_file, so that nobody comes back.',
  );
}

/**
 * Appends people who are not on the list yet; a placeholder is nobody. Returns the version of the whole list, which is on
 * disk by then. Throws UserError, also if another purge holds the lock too long.
 */
export async function suppress(
  given: SuppressionFile,
  people: readonly Forgotten[],
  { clock, signal }: { readonly clock: Clock; readonly signal?: AbortSignal | undefined },
): Promise<SuppressionVersion> {
  const path = resolve(given.file);
  const what = `the suppression file ${path}`;
  const wanted = new Map<string, Entry>();
  for (const { text, column, hashKey } of people) {
    if (isPlaceholder(text)) continue;
    const hmac = hmacOf(given.key, Buffer.concat([prefixOf(column), Buffer.from(text)]));
    wanted.set(hmac, { hmac, column, hash_key: hashKey });
  }
  try {
    makeFolders(dirname(path));
    const lock = { what, clock, waitMs: LOCK_WAIT_MS, signal };
    return await withLockFile(`${path}.lock`, lock, (checkHeld) => append(given, [...wanted.values()], checkHeld));
  } catch (error) {
    throw diskError(error, { what, path });
  }
}

async function append(given: SuppressionFile, wanted: readonly Entry[], checkHeld: () => void) {
  const file = await open(given.file, 'a+', OWNER_FILE);
  try {
    const text = await file.readFile('utf8');
    const kept = wholeLines(text);
    const list = new SuppressionList(given, kept);
    const known = new Set(list.entries.map(({ hmac }) => hmac));
    const added = wanted.filter(({ hmac }) => !known.has(hmac)).map((entry) => JSON.stringify(entry));
    const lines = [...(kept === '' ? [headerOf(given.key)] : []), ...added].map((line) => `${line}\n`).join('');
    checkHeld();
    if (kept.length < text.length) await file.truncate(Buffer.byteLength(kept));
    await file.writeFile(kept.slice(text.length) + lines);
    await file.sync();
    await syncFolder(dirname(given.file));
    return new SuppressionList(given, kept + lines).version();
  } finally {
    await file.close();
  }
}
