import { createHmac, hkdfSync } from 'node:crypto';
import { join } from 'node:path';
import { configError } from '../../base/errors.ts';
import { MIN_KEY_LENGTH, type Secret } from '../../base/secrets.ts';
import { randomKey, storedKey } from '../key-file.ts';

/** The keys of a ledger, each derived from the configured one under a label of its own: no line can ever hold a key. */
export class LedgerKey {
  readonly #id: Buffer;
  readonly #chain: Buffer;
  /** Tells whether two ledgers share a key, without saying anything of it. */
  readonly check: string;

  /** Throws a configuration failure for a key that is too short. */
  constructor(key: Secret) {
    const secret = key.reveal();
    if (secret.length < MIN_KEY_LENGTH) {
      throw configError(
        `The ledger's key is shorter than ${MIN_KEY_LENGTH} characters: ` +
          'give a longer ledger_key (DFINERY_LEDGER_KEY), for instance of "openssl rand -hex 32".',
      );
    }
    this.#id = derived(secret, 'id');
    this.#chain = derived(secret, 'chain');
    this.check = derived(secret, 'key check').toString('hex').slice(0, 16);
  }

  idHash(id: string): string {
    return hmac(this.#id, id);
  }

  /** Code of a line's text for the chain. */
  mac(text: string): string {
    return hmac(this.#chain, text);
  }
}

/** HMAC-SHA256 (hex). */
const hmac = (key: Buffer, data: string): string => createHmac('sha256', key).update(data).digest('hex');

const derived = (secret: string, purpose: string): Buffer =>
  Buffer.from(hkdfSync('sha256', secret, '', `dfinery-elt ledger ${purpose} v1`, 32));

/** A random key for a dry run without a key, which writes nothing. */
export const temporaryKey = (): LedgerKey => new LedgerKey(randomKey());

/** The file with the key of a ledger. */
export const keyFileOf = (folder: string): string => join(folder, 'ledger.key');

/**
 * The key of a ledger: the one given, else the one in its folder. Throws a configuration failure when there is neither.
 */
export function givenOrStoredKey(folder: string, given: Secret | undefined): LedgerKey {
  const secret = given ?? storedKey(keyFileOf(folder));
  if (secret) return new LedgerKey(secret);
  throw configError(
    `The ledger in ${folder} has lost its key: put ledger.key back, or give it as ledger_key (DFINERY_LEDGER_KEY). If it is ` +
      'lost for good, move ledger.jsonl out of the folder, which begins a new ledger; the suppression list stays there.',
  );
}
