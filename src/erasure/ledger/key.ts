import { hkdfSync } from 'node:crypto';
import { join } from 'node:path';
import { configError } from '../../base/errors.ts';
import { Secret } from '../../base/secrets.ts';
import { HashKey } from '../../cells/columns/hash-key.ts';
import { configuredOrStored, makeKey, randomKey } from '../keys.ts';

/** The keys of a ledger. Each is derived from one secret under a label of its own: no line can hold the secret. */
export class LedgerKey {
  readonly #ids: HashKey;
  readonly #lines: HashKey;

  constructor(secret: Secret) {
    this.#ids = derived(secret, 'id');
    this.#lines = derived(secret, 'chain');
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

function derived(secret: Secret, purpose: string): HashKey {
  const bytes = hkdfSync('sha256', secret.reveal(), '', `dfinery-elt ledger ${purpose} v1`, 32);
  return new HashKey(new Secret(Buffer.from(bytes).toString('hex')));
}

const keyFileOf = (folder: string): string => join(folder, 'ledger.key');

/** A key for a plan of a ledger without a key yet, and for a case without a ledger. */
export const temporaryKey = (): LedgerKey => new LedgerKey(randomKey());

/** Makes the key of a new ledger in its folder. The caller holds the lock of the ledger. */
export const makeLedgerKey = async (folder: string): Promise<LedgerKey> =>
  new LedgerKey(await makeKey(keyFileOf(folder)));

/** The key of the ledger in a folder: the configured one, else the one in its file; undefined without either. */
export function ledgerKeyOf(folder: string, configured: Secret | undefined): LedgerKey | undefined {
  const secret = configuredOrStored(configured, keyFileOf(folder), 'ledger_key (DFINERY_LEDGER_KEY)');
  return secret && new LedgerKey(secret);
}

/** The same for a ledger that has lines. Throws a configuration failure if it has lost its key. */
export function requireLedgerKey(folder: string, configured: Secret | undefined): LedgerKey {
  const key = ledgerKeyOf(folder, configured);
  if (key !== undefined) return key;
  throw configError(
    `The ledger in ${folder} has lost its key: put ledger.key back, or give it as ledger_key (DFINERY_LEDGER_KEY). ` +
      'If it is lost for good, move ledger.jsonl out of the folder: that begins a new ledger. The suppression list stays.',
  );
}
