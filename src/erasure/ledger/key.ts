import { hkdfSync } from 'node:crypto';
import { join } from 'node:path';
import { configError } from '../../base/errors.ts';
import { MIN_KEY_LENGTH, Secret } from '../../base/secrets.ts';
import { HashKey } from '../../cells/columns/hash-key.ts';
import { randomKey, storedKey } from '../key-file.ts';

/** The keys of a ledger, each derived from the configured one under a label of its own: no line can ever hold a key. */
export class LedgerKey {
  readonly #ids: HashKey;
  readonly #lines: HashKey;

  /** Throws a configuration failure for a key that is too short. */
  constructor(key: Secret) {
    if (key.reveal().length < MIN_KEY_LENGTH) {
      throw configError(
        `The ledger's key is shorter than ${MIN_KEY_LENGTH} characters: ` +
          'give a longer ledger_key (DFINERY_LEDGER_KEY), for instance of "openssl rand -hex 32".',
      );
    }
    this.#ids = derived(key, 'id');
    this.#lines = derived(key, 'chain');
  }

  /** Tells whether two ledgers share a key, without saying anything of it. */
  get check(): string {
    return this.#lines.check;
  }

  idHash(id: string): string {
    return this.#ids.hashOf(id);
  }

  /** Code of a line's text for the chain. */
  mac(text: string): string {
    return this.#lines.hashOf(text);
  }
}

function derived(key: Secret, purpose: string): HashKey {
  const bytes = hkdfSync('sha256', key.reveal(), '', `dfinery-elt ledger ${purpose} v1`, 32);
  return new HashKey(new Secret(Buffer.from(bytes).toString('hex')));
}

/** A random key for a dry run without a key, which writes nothing. */
export const temporaryKey = (): LedgerKey => new LedgerKey(randomKey());

/** The file with the key of a ledger. */
export const keyFileOf = (folder: string): string => join(folder, 'ledger.key');

/**
 * The key of a ledger: the configured one, else the one in its folder. Throws a configuration failure when there is
 * neither.
 */
export function configuredOrStoredKey(folder: string, configured: Secret | undefined): LedgerKey {
  const secret = configured ?? storedKey(keyFileOf(folder));
  if (secret) return new LedgerKey(secret);
  throw configError(
    `The ledger in ${folder} has lost its key: put ledger.key back, or give it as ledger_key (DFINERY_LEDGER_KEY). If it is ` +
      'lost for good, move ledger.jsonl out of the folder, which begins a new ledger; the suppression list stays there.',
  );
}
