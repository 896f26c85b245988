import { randomBytes } from 'node:crypto';
import { lstatSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { codeOf, configError, messageOf, UserError } from '../base/errors.ts';
import { MIN_KEY_LENGTH, Secret } from '../base/secrets.ts';
import { createFile } from '../fs/atomic-file.ts';
import { GROUP_AND_OTHERS, isOpenTo, isTrustedOwner } from '../fs/permissions.ts';

// The keys of the ledger and of the suppression list. A configuration gives them, or a run makes them once, each in a
// file beside what it protects.

export const randomKey = (): Secret => new Secret(randomBytes(32).toString('hex'));

/** The configured key, else the one in a file; undefined if there is neither. `name`: the option that gives it. */
export function configuredOrStored(configured: Secret | undefined, path: string, name: string): Secret | undefined {
  if (configured === undefined) return storedKey(path);
  if (configured.reveal().length >= MIN_KEY_LENGTH) return configured;
  throw configError(
    `${name} is shorter than ${MIN_KEY_LENGTH} characters: make a longer one, for instance with "openssl rand -hex 32".`,
  );
}

/** Refuses a key that others can read: with it, ids can be guessed. */
function storedKey(path: string): Secret | undefined {
  try {
    const file = lstatSync(path);
    if (!isTrustedOwner(file.uid) || !file.isFile() || isOpenTo(GROUP_AND_OTHERS, file.mode, dirname(path))) {
      throw configError(
        `The key ${path} is a link, belongs to another user or is open to others: ` +
          'see that nobody else can read it and set its mode to 0600.',
        { where: { file: path } },
      );
    }
    const text = readFileSync(path, 'utf8').trim();
    if (text.length < MIN_KEY_LENGTH) {
      const why = text === '' ? 'is empty' : `has fewer than ${MIN_KEY_LENGTH} characters`;
      throw configError(`The key file ${path} ${why}: put its key back.`);
    }
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
