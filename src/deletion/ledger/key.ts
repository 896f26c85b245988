import { createHmac, hkdfSync, randomBytes } from 'node:crypto';
import { closeSync, constants, fsyncSync, lstatSync, openSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { codeOf, configError, messageOf, type UserError } from '../../base/errors.ts';
import { Secret } from '../../base/secrets.ts';
import { nameTemporary, temporaryPathOf, writeWhole } from '../../fs/atomic-file.ts';
import { isTrustedOwner } from '../../fs/private-folder.ts';

const { S_IFMT, S_IFREG } = constants;
const KEY_FILE = 'ledger.key';
const OTHERS = 0o077;
/** Of a key (characters). */
const MIN_LENGTH = 32;

/** The keys of a ledger, each derived from the configured one under a label of its own: no line can ever hold a key. */
export class LedgerKey {
  readonly #id: Buffer;
  readonly #chain: Buffer;
  readonly #list: Buffer;
  /** Tells whether two ledgers share a key, without saying anything of it. */
  readonly check: string;

  /** Throws a configuration failure for a key that is too short. */
  constructor(key: Secret) {
    const secret = key.reveal();
    if (secret.length < MIN_LENGTH) throw tooShort();
    this.#id = derived(secret, 'id');
    this.#chain = derived(secret, 'chain');
    this.#list = derived(secret, 'list');
    this.check = derived(secret, 'key check').toString('hex').slice(0, 16);
  }

  idHash(id: string): string {
    return hmac(this.#id, id);
  }

  /** Of a list's hash: with the plain hash, a list of one id could be found by guessing. */
  listHash(hash: string): string {
    return hmac(this.#list, hash);
  }

  /** Of a line's text, for the chain. */
  mac(text: string): string {
    return hmac(this.#chain, text);
  }
}

/** HMAC-SHA256 (hex). */
const hmac = (key: Buffer, data: string): string => createHmac('sha256', key).update(data).digest('hex');

const derived = (secret: string, purpose: string): Buffer =>
  Buffer.from(hkdfSync('sha256', secret, '', `dfinery-elt ledger ${purpose} v1`, 32));

const tooShort = (): UserError =>
  configError(
    `The ledger's key is shorter than ${MIN_LENGTH} characters: give a longer ledger_key (DFINERY_LEDGER_KEY), for instance of "openssl rand -hex 32".`,
  );

/** A random key for a dry run without a key, which writes nothing. */
export const temporaryKey = (): LedgerKey => new LedgerKey(new Secret(randomBytes(32).toString('hex')));

/** The key in a ledger's folder, if one was made there. */
export function storedKey(folder: string): Secret | undefined {
  try {
    const path = join(folder, KEY_FILE);
    refuseForeign(path);
    const text = readFileSync(path, 'utf8').trim();
    if (text === '') throw configError(`The ledger's key file in ${folder} is empty: put its key back.`);
    return new Secret(text);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    if (error instanceof Error && error.name === 'UserError') throw error;
    throw configError(`The ledger's key file in ${folder} cannot be read: ${messageOf(error)}.`, { cause: error });
  }
}

/** Refuses a key that others can read: with it, a ledger can be forged. Throws the system's error if there is no key. */
function refuseForeign(path: string): void {
  const { uid, mode } = lstatSync(path);
  const isClosed = process.getuid === undefined || (mode & OTHERS) === 0;
  if (isTrustedOwner(uid) && isClosed && (mode & S_IFMT) === S_IFREG) return;
  throw configError(
    `The ledger's key ${path} is a link, belongs to another user or is open to others: see that nobody else can read it and set its mode to 0600.`,
    { where: { file: path } },
  );
}

/** The stored key; generated once, at random, and written atomically with mode 0600. */
export function keyInFolder(folder: string): Secret {
  const found = storedKey(folder);
  if (found) return found;
  const path = join(folder, KEY_FILE);
  const temporary = temporaryPathOf(path);
  try {
    writeNew(temporary, `${randomBytes(32).toString('hex')}\n`);
    nameTemporary(temporary, path);
  } finally {
    rmSync(temporary, { force: true });
  }
  return storedKey(folder) ?? keyInFolder(folder);
}

function writeNew(path: string, text: string): void {
  const fd = openSync(path, 'wx', 0o600);
  try {
    writeWhole(fd, Buffer.from(text));
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
