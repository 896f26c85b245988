import { createHmac, randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, linkSync, openSync, readFileSync, unlinkSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { codeOf, configFailure, messageOf } from '../../base/errors.ts';
import { Secret } from '../../base/secrets.ts';

export const KEY_FILE = 'ledger.key';

/** The ledger's key at work: one key for ids, one derived from it for the chain, so that no id can imitate a line. */
export class LedgerKey {
  readonly #id: Buffer;
  readonly #chain: Buffer;
  /** Tells whether two ledgers share a key, without saying anything of it. */
  readonly check: string;

  constructor(key: Secret) {
    this.#id = Buffer.from(key.reveal());
    this.#chain = derived(this.#id, 'dfinery-elt ledger chain v1');
    this.check = derived(this.#id, 'dfinery-elt ledger key check v1').toString('hex').slice(0, 16);
  }

  /** HMAC-SHA256 of the id's bytes under the key itself. */
  readonly idHash = (id: string | Buffer): Buffer => createHmac('sha256', this.#id).update(id).digest();

  /** Hex. */
  mac(text: string): string {
    return createHmac('sha256', this.#chain).update(text).digest('hex');
  }
}

const derived = (key: Buffer, purpose: string): Buffer => createHmac('sha256', key).update(purpose).digest();

/** A key that lives as long as the process: for a dry run that has none, where nothing outlives it. */
export const passingKey = (): LedgerKey => new LedgerKey(new Secret(randomBytes(32).toString('hex')));

/** The key in a ledger's folder, if one was made there. */
export function storedKey(folder: string): Secret | undefined {
  try {
    const text = readFileSync(join(folder, KEY_FILE), 'utf8').trim();
    if (text === '') throw configFailure(`The ledger's key file in ${folder} is empty: put its key back.`);
    return new Secret(text);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    if (error instanceof Error && error.name === 'Failure') throw error;
    throw configFailure(`The ledger's key file in ${folder} cannot be read: ${messageOf(error)}.`, { cause: error });
  }
}

/** The stored key; made once, at random, mode 0600, whole or not at all. */
export function keyInFolder(folder: string): Secret {
  const found = storedKey(folder);
  if (found) return found;
  const draft = join(folder, `.${KEY_FILE}.${randomBytes(6).toString('hex')}`);
  const fd = openSync(draft, 'wx', 0o600);
  try {
    writeSync(fd, `${randomBytes(32).toString('hex')}\n`);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  try {
    linkSync(draft, join(folder, KEY_FILE));
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
  } finally {
    unlinkSync(draft);
  }
  return storedKey(folder) ?? keyInFolder(folder);
}
