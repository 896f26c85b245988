import { createHmac, hkdfSync, randomBytes } from 'node:crypto';
import { lstatSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { codeOf, configError, messageOf, UserError } from '../../base/errors.ts';
import { MIN_KEY_LENGTH, Secret } from '../../base/secrets.ts';
import { createFile } from '../../fs/atomic-file.ts';
import { isTrustedOwner } from '../../fs/permissions.ts';

const KEY_FILE = 'ledger.key';
const OTHERS = 0o077;

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

const randomKey = (): string => randomBytes(32).toString('hex');

/** A random key for a dry run without a key, which writes nothing. */
export const temporaryKey = (): LedgerKey => new LedgerKey(new Secret(randomKey()));

/**
 * The key in a ledger's folder, if one was made there. Refuses one that others can read: with it, a ledger can be
 * forged.
 */
export function storedKey(folder: string): Secret | undefined {
  const path = join(folder, KEY_FILE);
  try {
    const file = lstatSync(path);
    const isOpen = process.getuid !== undefined && (file.mode & OTHERS) !== 0;
    if (isOpen || !isTrustedOwner(file.uid) || !file.isFile()) {
      throw configError(
        `The ledger's key ${path} is a link, belongs to another user or is open to others: ` +
          'see that nobody else can read it and set its mode to 0600.',
        { where: { file: path } },
      );
    }
    const text = readFileSync(path, 'utf8').trim();
    if (text === '') throw configError(`The ledger's key file in ${folder} is empty: put its key back.`);
    return new Secret(text);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    if (error instanceof UserError) throw error;
    throw configError(`The ledger's key file in ${folder} cannot be read: ${messageOf(error)}.`, { cause: error });
  }
}

/**
 * The key of a ledger: the one given, else the one in its folder. Throws a configuration failure when there is neither.
 */
export function givenOrStoredKey(folder: string, given: Secret | undefined): LedgerKey {
  const secret = given ?? storedKey(folder);
  if (secret) return new LedgerKey(secret);
  throw configError(
    `The ledger in ${folder} has lost its key: put ledger.key back, or give it as ledger_key (DFINERY_LEDGER_KEY).`,
  );
}

/**
 * Makes a random key in a ledger's folder; one that is there all the same stays. The caller holds the ledger's lock.
 * Without it, two processes could each put a key there on a file system without hard links.
 */
export async function makeKey(folder: string): Promise<Secret> {
  await createFile(join(folder, KEY_FILE), `${randomKey()}\n`, { mayRename: true });
  const secret = storedKey(folder);
  if (secret === undefined) throw configError(`The ledger's key in ${folder} was taken away while it was made.`);
  return secret;
}
