import { hkdfSync } from 'node:crypto';
import { accessSync, constants, existsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { configError } from '../../base/errors.ts';
import { HashKey } from '../../base/hash-key.ts';
import { Secret } from '../../base/secrets.ts';
import { whyUnreadable } from '../../fs/disk-failure.ts';
import { type KeySource, keyForReading } from '../key-file.ts';

/** The keys of a ledger: one for the ids in its lines, one for the codes of its lines. */
export interface LedgerKeys {
  readonly idKey: HashKey;
  readonly lineKey: HashKey;
}

/** Derives each key from one secret under a label of its own: no line can hold the secret. */
export function ledgerKeysOf(secret: Secret): LedgerKeys {
  const derivedKey = (purpose: string): HashKey => {
    const bytes = hkdfSync('sha256', secret.reveal(), '', `dfinery-elt ledger ${purpose} v1`, 32);
    return new HashKey(new Secret(Buffer.from(bytes).toString('hex')));
  };
  return { idKey: derivedKey('id'), lineKey: derivedKey('chain') };
}

export const ledgerPathIn = (folder: string): string => join(folder, 'ledger.jsonl');

export const ledgerKeySource = (path: string, configuredKey: Secret | undefined): KeySource => ({
  path,
  keyPath: join(dirname(path), 'ledger.key'),
  configuredKey,
  lostKeyText:
    `The ledger in ${dirname(path)} has lost its key: put ledger.key back, or give it as ledger_key (DFINERY_LEDGER_KEY). ` +
    'If it is lost for good, move ledger.jsonl out of the folder: that begins a new ledger. The suppression list stays.',
});

/** Finds the ledger in a file, or in a folder, and its keys. Throws UserError if it cannot be read or has lost its key. */
export function locateLedger(fileOrFolder: string, configuredKey: Secret | undefined) {
  const isFolder = existsSync(fileOrFolder) && statSync(fileOrFolder).isDirectory();
  const path = isFolder ? ledgerPathIn(fileOrFolder) : fileOrFolder;
  try {
    accessSync(path, constants.R_OK);
  } catch (error) {
    throw configError(`The ledger ${path} cannot be read: ${whyUnreadable(error)}.`, { cause: error });
  }
  return { path, keys: ledgerKeysOf(keyForReading(ledgerKeySource(path, configuredKey))) };
}
