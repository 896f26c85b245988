import { randomBytes } from 'node:crypto';
import { lstatSync, readFileSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { codeOf, configError, messageOf, UserError } from '../base/errors.ts';
import { MIN_KEY_LENGTH, Secret } from '../base/secrets.ts';
import { createFile } from '../fs/atomic-file.ts';
import { GROUP_AND_OTHERS_BITS, isProtected } from '../fs/permissions.ts';

/** Where the key is under which the lines of a file are hashed: of the ledger, or of the suppression list. */
export interface KeySource {
  /** The file with the lines. */
  readonly path: string;
  /** The file with the key. A run makes it once unless a key is configured. */
  readonly keyPath: string;
  readonly configuredKey: Secret | undefined;
  /** What to tell if the key is lost, as sentences. */
  readonly lostKeyText: string;
}

export const randomKey = (): Secret => new Secret(randomBytes(32).toString('hex'));

/** The key of a file. A new file, whose key is still to be made, is empty: any key reads it. */
export const keyForReading = (source: KeySource): Secret => existingKey(source) ?? randomKey();

/** The configured key, else the stored one; undefined for a new file. */
function existingKey(source: KeySource): Secret | undefined {
  const { path, keyPath, configuredKey, lostKeyText } = source;
  const key = configuredKey ?? storedKey(keyPath);
  const isNew = (statSync(path, { throwIfNoEntry: false })?.size ?? 0) === 0;
  if (key === undefined && !isNew) throw configError(lostKeyText);
  return key;
}

/**
 * The key of a file, which is made for a new one. The caller holds the lock of the file. Without it, two processes
 * could each put a key there on a file system without hard links.
 */
export async function ensureKey(source: KeySource): Promise<Secret> {
  const existing = existingKey(source);
  if (existing !== undefined) return existing;
  await createFile(source.keyPath, { text: `${randomKey().reveal()}\n` }, { mayRename: true });
  return await ensureKey(source);
}

/** Refuses a key that others can read: with it, ids can be guessed. */
function storedKey(path: string): Secret | undefined {
  try {
    const stats = lstatSync(path);
    if (!stats.isFile() || !isProtected(stats, GROUP_AND_OTHERS_BITS, dirname(path))) {
      throw configError(
        `The key ${path} is a link, belongs to another user or is open to others: ` +
          'see that nobody else can read it and set its mode to 0600.',
      );
    }
    const keyText = readFileSync(path, 'utf8').trim();
    if (keyText.length < MIN_KEY_LENGTH)
      throw configError(`The key file ${path} has fewer than ${MIN_KEY_LENGTH} characters: put its key back.`);
    return new Secret(keyText);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    if (error instanceof UserError) throw error;
    throw configError(`The key file ${path} cannot be read: ${messageOf(error)}.`, { cause: error });
  }
}
