import { readFileSync, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { codeOf, configError } from '../base/errors.ts';
import { HashKey } from '../base/hash-key.ts';
import { parseJsonObject } from '../base/json.ts';
import { isPlaceholder } from '../base/placeholder.ts';
import { formatCount, withSeparators } from '../base/quantities.ts';
import type { Secret } from '../base/secrets.ts';
import type { Suppression } from '../cells/columns/export-scanner.ts';
import type { SourceConfig } from '../config/source.ts';
import { looksHashed, type SuppressionHmacs } from '../engine/people/people.ts';
import { whyUnreadable, withDiskErrors } from '../fs/disk-failure.ts';
import { makeFolders, syncFolder } from '../fs/folders.ts';
import { LOCK_WAIT_MS, type LockOptions, withLockFile } from '../fs/lock.ts';
import { checkWritable, giveToFolderOwner, PRIVATE_FILE_MODE } from '../fs/permissions.ts';
import { ensureKey, type KeySource, keyForReading } from './key-file.ts';

// The suppression list: a file of JSON Lines. The first line is a header that tells a wrong key. Every other line
// has an HMAC of a person's df_unified_id, or of its hash. If only the hash is known, `hash_key` is the check value of
// its key. Purges append to the list, and never change a line. Downloads leave out the rows of these people.
//
// | who reads it       | the file is not there                      | its last line is cut within its text |
// | ------------------ | ------------------------------------------ | ------------------------------------ |
// | a load             | empty; refused if a configuration names it | refused                              |
// | a purge            | empty                                      | the line does not count              |
// | a purge, to append | made                                       | the line is removed                  |

type ListSettings = Pick<SourceConfig, 'suppressionFile' | 'suppressionKey'> & {
  readonly ledgerDir?: string | undefined;
};

const NEW_LIST_HINT =
  'If it is lost for good, move the list away, and begin a new one: forget --suppressed --new-list.';

export class SuppressionList {
  readonly path: string;
  readonly #keySource: KeySource;
  readonly #diskContext: { readonly subject: string; readonly path: string };

  private constructor(file: string, configuredKey: Secret | undefined) {
    this.path = resolve(file);
    this.#diskContext = { subject: `the suppression list ${this.path}`, path: this.path };
    this.#keySource = {
      path: this.path,
      keyPath: join(dirname(this.path), 'suppressed.key'),
      configuredKey,
      lostKeyText: `The suppression list ${this.path} has lost its key: put suppressed.key back. ${NEW_LIST_HINT}`,
    };
  }

  /** `suppression_file` of a configuration, else the list in the folder of the ledger; undefined without either. */
  static of({ suppressionFile, suppressionKey, ledgerDir }: ListSettings): SuppressionList | undefined {
    if (suppressionFile !== undefined && suppressionKey !== undefined)
      return new SuppressionList(suppressionFile, suppressionKey);
    return ledgerDir === undefined ? undefined : new SuppressionList(join(ledgerDir, 'suppressed.jsonl'), undefined);
  }

  /**
   * Reads the filter for downloads, and how many lines the list has. With a `hash_key` a person may be on it by the
   * id or its hash. Throws UserError for one who is known by another hash.
   */
  readFilter({ hashKey: secret }: Pick<SourceConfig, 'hashKey'>): Suppression & { readonly length: number } {
    const hashKey = secret && new HashKey(secret);
    const { key, hmacs, keyChecks } = this.#readForLoad();
    this.#refuseOtherHashes(keyChecks, hashKey);
    const suppressedHmacs = new Set(hmacs);
    const isOnList = (id: Buffer): boolean => suppressedHmacs.has(key.hashOf(id));
    const has = (id: Buffer): boolean =>
      suppressedHmacs.size > 0 &&
      (isOnList(id) || (hashKey !== undefined && isOnList(Buffer.from(hashKey.hashOf(id)))));
    return { has, length: hmacs.length };
  }

  /** Reads the people for a purge. Throws UserError for one who is known by a hash under another key than this. */
  readHmacs(hashKey: HashKey | undefined): SuppressionHmacs {
    const { keyChecks, ...hmacs } = this.#readForPurge();
    this.#refuseOtherHashes(keyChecks, hashKey);
    return hmacs;
  }

  /** How many lines it has, without its header: one for each form of a person's id. */
  readLength(): number {
    return this.#readForPurge().hmacs.length;
  }

  /** Throws UserError if nobody could be put on the list. Changes nothing. */
  async requireWritable(): Promise<void> {
    await withDiskErrors(this.#diskContext, checkWritable(this.path));
  }

  /**
   * Appends the people who are not on the list yet; a placeholder is nobody. Returns the number of lines, which are on
   * disk then. Throws UserError, also if another purge holds the lock too long.
   */
  async add(
    unifiedIds: Iterable<string>,
    { clock, signal, hashKey }: Pick<LockOptions, 'clock' | 'signal'> & { readonly hashKey?: HashKey | undefined },
  ): Promise<number> {
    const namingIds = [...unifiedIds].filter((unifiedId) => !isPlaceholder(unifiedId));
    const keyCheckByNewId = new Map(namingIds.map((id) => [id, looksHashed(id) ? hashKey?.keyCheck : undefined]));
    // Rows of another place may have the hash of a plain id. It needs no key: downloads know the person by the plain id.
    for (const id of namingIds) if (hashKey && !looksHashed(id)) keyCheckByNewId.set(hashKey.hashOf(id), undefined);
    const lock = { subject: this.#diskContext.subject, clock, waitMs: LOCK_WAIT_MS, signal };
    await withDiskErrors(this.#diskContext, makeFolders(dirname(this.path)));
    const appending = withLockFile(`${this.path}.lock`, lock, (checkHeld) => this.#append(keyCheckByNewId, checkHeld));
    return await withDiskErrors(this.#diskContext, appending);
  }

  /** `keyCheckByNewId`: by unified id, the check of the key without which a load would not know the person, if any. */
  async #append(keyCheckByNewId: ReadonlyMap<string, string | undefined>, checkHeld: () => void): Promise<number> {
    const secret = await ensureKey(this.#keySource);
    const file = await open(this.path, 'a+', PRIVATE_FILE_MODE);
    try {
      giveToFolderOwner(this.path);
      const text = await file.readFile('utf8');
      const wholeText = wholeLines(text);
      const { key, hmacs } = this.#parse(wholeText, secret);
      const keyCheckByNewHmac = new Map(Array.from(keyCheckByNewId, ([id, keyCheck]) => [key.hashOf(id), keyCheck]));
      for (const hmac of hmacs) keyCheckByNewHmac.delete(hmac);
      const header = { v: 1, kind: 'suppression', key_check: key.keyCheck };
      const newLines = [
        ...(wholeText === '' ? [header] : []),
        ...Array.from(keyCheckByNewHmac, ([hmac, hash_key]) => ({ hmac, hash_key })),
      ];
      checkHeld();
      if (wholeText.length < text.length) await file.truncate(Buffer.byteLength(wholeText));
      const missingEnd = wholeText.slice(text.length);
      await file.writeFile(missingEnd + newLines.map((line) => `${JSON.stringify(line)}\n`).join(''));
      await file.sync();
      await syncFolder(dirname(this.path));
      return hmacs.length + keyCheckByNewHmac.size;
    } finally {
      await file.close();
    }
  }

  /**
   * A list in the folder of the ledger begins with the first purge. A file that a configuration names must be there:
   * perhaps its disk is not mounted. Throws UserError.
   */
  #readForLoad() {
    const { path } = this;
    try {
      const text = this.#keySource.configuredKey === undefined ? textIfThere(path) : readFileSync(path, 'utf8');
      return this.#parse(text, keyForReading(this.#keySource));
    } catch (error) {
      if (codeOf(error) === undefined) throw error;
      throw configError(
        `The suppression list ${path} cannot be read: ${whyUnreadable(error)}.` +
          (codeOf(error) === 'ENOENT' ? ' If nobody is suppressed yet, make an empty file.' : ''),
        { cause: error },
      );
    }
  }

  #readForPurge() {
    return this.#parse(wholeLines(textIfThere(this.path)), keyForReading(this.#keySource));
  }

  /** `keyChecks`: of the keys of hashes on the list. */
  #refuseOtherHashes(keyChecks: ReadonlySet<string>, hashKey: HashKey | undefined): void {
    if ([...keyChecks].every((keyCheck) => keyCheck === hashKey?.keyCheck)) return;
    throw configError(
      `The suppression list ${this.path} names people by a hash of df_unified_id that this configuration does not make. ` +
        'Give the hash_key of that hash, or their rows would come back.',
    );
  }

  /** Throws UserError unless every line is understood: half a list would let people through. */
  #parse(text: string, secret: Secret) {
    const { path } = this;
    const key = new HashKey(secret, 'dfinery-elt suppression key check v1');
    const hmacs: string[] = [];
    const keyChecks = new Set<string>();
    for (const [i, line] of text.split(/\r?\n/).entries()) {
      if (line.trim() === '') continue;
      const lineError = (why: string) =>
        configError(`Line ${i + 1} of the suppression list ${path} ${why} ${NEW_LIST_HINT}`, { where: { row: i + 1 } });
      const { kind, key_check, hmac, hash_key } = parseJsonObject(line);
      const restore = 'Restore the file; the next purge removes a last line that was cut.';
      if (i === 0) {
        if (kind !== 'suppression') throw lineError(`is not its header, which tells a wrong key. ${restore}`);
        if (key_check === key.keyCheck) continue;
        throw lineError('was written under another key: give that one.');
      }
      if (typeof hmac !== 'string' || !looksHashed(hmac))
        throw lineError(`is not {"hmac":"<64 hex digits>"}. ${restore}`);
      hmacs.push(hmac);
      if (typeof hash_key === 'string') keyChecks.add(hash_key);
    }
    return { key, hmacs, keyChecks };
  }
}

/** Says that `subject`, a place or the ledger, knew a longer list than this one; undefined if no line is missing. */
function olderListSentence(subject: string, knownLength: number | undefined, length: number | undefined) {
  if (knownLength === undefined || knownLength <= (length ?? 0)) return undefined;
  const problem =
    length === undefined
      ? 'neither suppression_file nor erasure.ledger_dir is configured'
      : `the list has ${withSeparators(length)}: it is an older copy, or another one`;
  return `${subject} knew ${formatCount(knownLength, 'line')} of the suppression list, and ${problem}.`;
}

/** A warning of lines that are no longer on the list, if there are any. */
export function olderListWarnings(subject: string, knownLength: number | undefined, length: number): string[] {
  const sentence = olderListSentence(subject, knownLength, length);
  return sentence === undefined ? [] : [`${sentence} Those who are missing return while the service exports them.`];
}

/**
 * Throws UserError if a place was purged with a longer list than it has now. A sync would bring people back,
 * and a purge would lose track of them. `length`: undefined for a configuration without a list.
 */
export function refuseOlderList(place: string, knownLength: number | undefined, length: number | undefined): void {
  const sentence = olderListSentence(place, knownLength, length);
  if (sentence === undefined) return;
  const remedy = 'Give that list, so that nobody comes back. If it is lost for good, begin a new one:';
  throw configError(`${sentence} ${remedy} forget --suppressed --new-list.`);
}

/**
 * The filter of downloads into a place that knew `knownLength` lines of the list; undefined for a configuration without
 * a list. Throws UserError for an older list, and for one that names people by another hash.
 */
export function readFilterForPlace(
  config: ListSettings & Pick<SourceConfig, 'hashKey'>,
  knownLength: number | undefined,
): Suppression | undefined {
  const suppression = SuppressionList.of(config)?.readFilter(config);
  refuseOlderList('The place', knownLength, suppression?.length);
  return suppression;
}

/** The text of a file; an empty one for a file that is not there. */
const textIfThere = (path: string): string =>
  statSync(path, { throwIfNoEntry: false }) === undefined ? '' : readFileSync(path, 'utf8');

/** The text without a last line that a crash has cut. One that lacks its line end alone gets that: it names a person. */
function wholeLines(text: string): string {
  const lastLineAt = text.lastIndexOf('\n') + 1;
  const isLastWhole = looksHashed(String(parseJsonObject(text.slice(lastLineAt)).hmac));
  const wholeText = isLastWhole ? `${text}\n` : text.slice(0, lastLineAt);
  // A purge begins a file of blank lines with the header.
  return wholeText.trim() === '' ? '' : wholeText;
}
