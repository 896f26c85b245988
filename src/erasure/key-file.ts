import { randomBytes } from 'node:crypto';
import { lstatSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { codeOf, configError, messageOf, UserError } from '../base/errors.ts';
import { Secret } from '../base/secrets.ts';
import { createFile } from '../fs/atomic-file.ts';
import { isTrustedOwner, keepsModes, OTHERS } from '../fs/permissions.ts';

// Keys that are made once, in a file beside what they protect.

export const randomKey = (): Secret => new Secret(randomBytes(32).toString('hex'));

/** The key in a file; undefined if there is none. Refuses one that others can read: with it, ids can be guessed. */
export function storedKey(path: string): Secret | undefined {
  try {
    const file = lstatSync(path);
    const isOpen = process.getuid !== undefined && (file.mode & OTHERS) !== 0 && keepsModes(dirname(path));
    if (isOpen || !isTrustedOwner(file.uid) || !file.isFile()) {
      throw configError(
        `The key ${path} is a link, belongs to another user or is open to others: ` +
          'see that nobody else can read it and set its mode to 0600.',
        { where: { file: path } },
      );
    }
    const text = readFileSync(path, 'utf8').trim();
    if (text === '') throw configError(`The key file ${path} is empty: put its key back.`);
    return new Secret(text);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    if (error instanceof UserError) throw error;
    throw configError(`The key file ${path} cannot be read: ${messageOf(error)}.`, { cause: error });
  }
}

/**
 * Makes a random key in a file; one that is there all the same stays. The caller holds the lock of what the key
 * protects. Without it, two processes could each put a key there on a file system without hard links.
 */
export async function makeKey(path: string): Promise<Secret> {
  await createFile(path, `${randomKey().reveal()}\n`, { mayRename: true });
  const secret = storedKey(path);
  if (secret === undefined) throw configError(`The key ${path} was taken away while it was made.`);
  return secret;
}
