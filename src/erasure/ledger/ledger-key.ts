import { hkdfSync } from 'node:crypto';
import { existsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { configError } from '../../base/errors.ts';
import { HashKey } from '../../base/hash-key.ts';
import { Secret } from '../../base/secrets.ts';
import { type KeyedFile, keyForReading } from './key-file.ts';

/** The keys of a ledger. Each is derived from one secret under a label of its own: no line can hold the secret. */
export class LedgerKey {
  readonly #ids: HashKey;
  readonly #lines: HashKey;

  constructor(secret: Secret) {
    this.#ids = derived(secret, 'id');
    this.#lines = derived(secret, 'chain');
  }

  /** Tells a wrong key from a changed line, without saying anything of the key. */
  get checkValue(): string {
    return this.#lines.checkValue;
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

export const ledgerPathIn = (folder: string): string => join(folder, 'ledger.jsonl');

export const keyedLedger = (path: string, configuredKey: Secret | undefined): KeyedFile => ({
  path,
  keyFileName: 'ledger.key',
  configuredKey,
  optionName: 'ledger_key (DFINERY_LEDGER_KEY)',
  lostKeyText:
    `The ledger in ${dirname(path)} has lost its key: put ledger.key back, or give it as ledger_key (DFINERY_LEDGER_KEY). ` +
    'If it is lost for good, move ledger.jsonl out of the folder: that begins a new ledger. The suppression list stays.',
});

/** A ledger to read, and the key under which its lines are written. */
export interface LedgerSource {
  readonly path: string;
  readonly key: LedgerKey;
}

/** Finds the ledger in a file, or in a folder, and its key. Throws UserError if it is not there, or has lost its key. */
export function locateLedger(fileOrFolder: string, configuredKey: Secret | undefined): LedgerSource {
  if (!existsSync(fileOrFolder)) throw configError(`There is no ledger at ${fileOrFolder}.`);
  const path = statSync(fileOrFolder).isDirectory() ? ledgerPathIn(fileOrFolder) : fileOrFolder;
  return { path, key: new LedgerKey(keyForReading(keyedLedger(path, configuredKey))) };
}
