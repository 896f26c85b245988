import { readFileSync, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { Clock } from '../base/clock.ts';
import { codeOf, configError, messageOf } from '../base/errors.ts';
import { objectIn } from '../base/json.ts';
import { isPlaceholder } from '../base/placeholder.ts';
import { MIN_KEY_LENGTH, type Secret } from '../base/secrets.ts';
import { UNIFIED_ID } from '../cells/columns/groups.ts';
import { HashKey } from '../cells/columns/hash-key.ts';
import type { Suppression } from '../cells/columns/scanner.ts';
import type { SuppressedPeople, UnifiedId } from '../engine/people/query.ts';
import { tryToWrite } from '../fs/atomic-file.ts';
import { diskError } from '../fs/disk-failure.ts';
import { makeFolders, syncFolder } from '../fs/folders.ts';
import { withLockFile } from '../fs/lock.ts';
import { OWNER_FILE } from '../fs/permissions.ts';
import { makeKey, randomKey, storedKey } from './key-file.ts';

// The suppression list: a file of JSON Lines. The first line is a header that tells a wrong key. Every other line is
// an HMAC of a person's df_unified_id. Purges append to it, and never change a line. Downloads leave out the rows of
// these people.

/** Where a suppression list is, and its key. */
export interface SuppressionFile {
  readonly file: string;
  readonly key: Secret | { readonly file: string };
}

interface SuppressedPerson {
  readonly hmac: string;
  /** Check value of the key under which the unified id is a hash itself; undefined for a plain one. */
  readonly hash_key?: string | undefined;
}

const HMAC = /^[0-9a-f]{64}$/;
const CHECK_LABEL = 'dfinery-elt suppression key check v1';
/** Another purge appends to the list in seconds; a lock whose owner was killed is free after a minute. */
const LOCK_WAIT_MS = 75_000;

/** The list of a configuration: `suppression_file`, else one in the folder of the ledger; undefined without either. */
export function suppressionFileOf(config: {
  readonly suppressionFile: string | undefined;
  readonly suppressionKey: Secret | undefined;
  readonly ledgerDir?: string | undefined;
}): SuppressionFile | undefined {
  const { suppressionFile: file, suppressionKey: key, ledgerDir } = config;
  if (file !== undefined && key !== undefined) return { file, key };
  if (ledgerDir === undefined) return undefined;
  return { file: join(ledgerDir, 'suppressed.jsonl'), key: { file: join(ledgerDir, 'suppressed.key') } };
}

/** A suppression list that was read whole. */
export interface SuppressionList {
  readonly length: number;
  readonly entries: readonly SuppressedPerson[];
  /** Everybody on the list, with the key of the list. */
  readonly people: SuppressedPeople;
}

/** Throws UserError unless every line is understood: half a list would let people through. */
function listOf(text: string, path: string, key: HashKey): SuppressionList {
  const entries = entriesIn(text, path, key);
  return { length: entries.length, entries, people: { key, hmacs: entries.map(({ hmac }) => hmac) } };
}

const headerOf = ({ check }: HashKey): string => JSON.stringify({ v: 1, kind: 'suppression', key_check: check });

const NEW_LIST = 'If it is lost for good, move the list away, and begin a new one: forget --suppressed --new-list.';

function entriesIn(text: string, path: string, key: HashKey): SuppressedPerson[] {
  return text.split(/\r?\n/).flatMap((line, i) => {
    if (line.trim() === '') return [];
    const refused = (why: string) =>
      configError(`Line ${i + 1} of the suppression list ${path} ${why}`, { where: { file: path, row: i + 1 } });
    const { kind, key_check, hmac, hash_key } = objectIn(line);
    if (i === 0 && kind === 'suppression') {
      if (key_check === key.check) return [];
      throw refused(`was written under another key: give that one. ${NEW_LIST}`);
    }
    if (typeof hmac !== 'string' || !HMAC.test(hmac)) {
      throw refused(
        'is not {"hmac":"<64 hex digits>"}. Restore the file; the next purge removes a last line that was cut.',
      );
    }
    return { hmac, hash_key: textOf(hash_key) };
  });
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

/** The key of a list; undefined if it is still to be made. Throws UserError if it is lost. */
function keyOf({ file, key: source }: SuppressionFile): HashKey | undefined {
  const key = 'file' in source ? storedKey(source.file) : source;
  if (key === undefined) {
    if (textAt(file).trim() === '') return undefined;
    throw configError(`The suppression list ${file} has lost its key: put suppressed.key back. ${NEW_LIST}`);
  }
  if (key.reveal().length < MIN_KEY_LENGTH) {
    throw configError(
      `suppression_key is shorter than ${MIN_KEY_LENGTH} characters. Make a longer one, for instance with ` +
        '"openssl rand -hex 32", and begin a new suppression_file.',
    );
  }
  return new HashKey(key, CHECK_LABEL);
}

/** A key for a list without people, until the first purge makes one. */
const temporaryKey = (): HashKey => new HashKey(randomKey(), CHECK_LABEL);

/** The text of a file; an empty one for a file that is not there. */
const textAt = (path: string): string =>
  statSync(path, { throwIfNoEntry: false }) === undefined ? '' : readFileSync(path, 'utf8');

/**
 * Reads a list whole. A list in the folder of the ledger begins with the first purge. A file that a configuration names
 * must be there: perhaps its disk is not mounted. Throws UserError.
 */
function readSuppression(list: SuppressionFile): SuppressionList {
  const { file, key } = list;
  try {
    const text = 'file' in key ? textAt(file) : readFileSync(file, 'utf8');
    return listOf(text, file, keyOf(list) ?? temporaryKey());
  } catch (error) {
    if (codeOf(error) === undefined) throw error;
    throw configError(
      `The suppression list ${file} cannot be read (${messageOf(error)}). If nobody is suppressed yet, make an empty file.`,
      { cause: error, where: { file } },
    );
  }
}

/** The list that a purge will append to. A missing file is an empty list; a last line that was cut does not count. */
export const suppressionToAppend = (list: SuppressionFile): SuppressionList =>
  listOf(wholeLines(textAt(list.file)), list.file, keyOf(list) ?? temporaryKey());

/** Throws UserError if people could not be put on a list. Changes nothing. */
export async function tryToSuppress({ file }: SuppressionFile): Promise<void> {
  try {
    await tryToWrite(file);
  } catch (error) {
    throw listError(error, file);
  }
}

/** The text without a last line that a crash has cut. A whole line may lack its end, as an editor leaves it. */
function wholeLines(text: string): string {
  const end = text.lastIndexOf('\n') + 1;
  const isWhole = HMAC.test(textOf(objectIn(text.slice(end)).hmac) ?? '');
  return isWhole ? `${text}\n` : text.slice(0, end);
}

/**
 * The filter for downloads; undefined for a configuration without a list. If it hashes `df_unified_id`, a person may be
 * listed by the id or its hash. Throws UserError for a person who is known by the hash under another key.
 */
export function suppressionOf(
  config: Parameters<typeof suppressionFileOf>[0] & {
    readonly columnsHash: readonly string[];
    readonly hashKey: Secret | undefined;
  },
): Suppression | undefined {
  const list = suppressionFileOf(config);
  if (list === undefined) return undefined;
  const { entries, people, length } = readSuppression(list);
  const isHashed = config.columnsHash.includes(UNIFIED_ID) && config.hashKey !== undefined;
  const hashKey = isHashed ? new HashKey(config.hashKey) : undefined;
  if (entries.some(({ hash_key }) => hash_key !== undefined && hash_key !== hashKey?.check)) {
    throw configError(
      `The suppression list ${list.file} names people by df_unified_id as it was hashed under another hash_key. Keep ` +
        'df_unified_id in columns_hash with that key, or their rows would come back.',
      { where: { file: list.file } },
    );
  }
  const listed = new Set(people.hmacs);
  const isListed = (id: Buffer): boolean => listed.has(people.key.hashOf(id));
  const has = (id: Buffer): boolean =>
    listed.size > 0 && (isListed(id) || (hashKey !== undefined && isListed(Buffer.from(hashKey.hashOf(id)))));
  return { has, length };
}

/**
 * Throws UserError if a place was purged with more people on the list than `list` has. A sync would bring people back,
 * and a purge would lose track of them.
 */
export function requireSuppression(place: string, stored: number, list: { readonly length: number } | undefined): void {
  if (stored <= (list?.length ?? 0)) return;
  const why =
    list === undefined
      ? 'neither suppression_file nor erasure.ledger_dir is configured'
      : `the list has ${list.length}: it is an older copy, or another one`;
  throw configError(
    `${place} was purged with a suppression list of ${stored} entries, but ${why}. Give that list, so that nobody comes ` +
      'back. If it is lost for good, begin a new one: forget --suppressed --new-list.',
  );
}

/**
 * Appends people who are not on the list yet; a placeholder is nobody. Returns the whole list, which is on disk by
 * then. Throws UserError, also if another purge holds the lock too long.
 */
export async function suppress(
  list: SuppressionFile,
  people: readonly UnifiedId[],
  { clock, signal }: { readonly clock: Clock; readonly signal?: AbortSignal | undefined },
): Promise<SuppressionList> {
  const path = resolve(list.file);
  try {
    makeFolders(dirname(path));
    const lock = { what: `the suppression list ${path}`, clock, waitMs: LOCK_WAIT_MS, signal };
    return await withLockFile(`${path}.lock`, lock, async (checkHeld) => {
      const made = async () => new HashKey('file' in list.key ? await makeKey(list.key.file) : list.key, CHECK_LABEL);
      const key = keyOf(list) ?? (await made());
      const added = people
        .filter(({ text }) => !isPlaceholder(text))
        .map(({ text, hashKey }): SuppressedPerson => ({ hmac: key.hashOf(text), hash_key: hashKey }));
      return append(path, key, added, checkHeld);
    });
  } catch (error) {
    throw listError(error, path);
  }
}

const listError = (error: unknown, path: string): unknown =>
  diskError(error, { what: `the suppression list ${path}`, path });

async function append(path: string, key: HashKey, people: readonly SuppressedPerson[], checkHeld: () => void) {
  const file = await open(path, 'a+', OWNER_FILE);
  try {
    const text = await file.readFile('utf8');
    const kept = wholeLines(text);
    const listed = new Set(listOf(kept, path, key).people.hmacs);
    const added = new Map(people.filter(({ hmac }) => !listed.has(hmac)).map((entry) => [entry.hmac, entry]));
    const header = kept === '' ? [headerOf(key)] : [];
    const lines = [...header, ...[...added.values()].map((entry) => JSON.stringify(entry))];
    const more = lines.map((line) => `${line}\n`).join('');
    checkHeld();
    if (kept.length < text.length) await file.truncate(Buffer.byteLength(kept));
    await file.writeFile(kept.slice(text.length) + more);
    await file.sync();
    await syncFolder(dirname(path));
    return listOf(kept + more, path, key);
  } finally {
    await file.close();
  }
}
