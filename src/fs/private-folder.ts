import { lstatSync, type Stats } from 'node:fs';
import { configFailure } from '../base/errors.ts';
import { makeFolders } from './make-folders.ts';

const OWNER_FOLDER = 0o700;
const OTHERS = 0o077;

/** Whose a folder is; `others` as well when they may look into it, or when it is a link or no folder. */
export function ownerOf(path: string): 'us' | 'others' | 'nobody' {
  const found = statsOf(path);
  if (found === undefined) return 'nobody';
  if (found === 'hidden' || !found.isDirectory()) return 'others';
  const uid = process.getuid?.();
  return uid === undefined || (found.uid === uid && (found.mode & OTHERS) === 0) ? 'us' : 'others';
}

/** True for what belongs to this user or to root, as a container's volume does; root trusts everybody's. */
export function isTrustedOwner(uid: number): boolean {
  const own = process.getuid?.();
  return own === undefined || own === 0 || uid === own || uid === 0;
}

function statsOf(path: string): Stats | 'hidden' | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch {
    return 'hidden';
  }
}

/** True for a folder, no link, that belongs to this user and that nobody else may look into. */
export const isPrivateFolder = (path: string): boolean => ownerOf(path) === 'us';

/**
 * Makes a folder for this user alone, where it is not there. Throws a configuration failure for one that is a link,
 * somebody else's or open to others, the system's error where it cannot be made. `what` and `remedy` are parts of the
 * sentence: `The spool folder`, `set spool_dir to another`.
 */
export function makePrivateFolder(path: string, what: string, remedy: string): void {
  makeFolders(path, OWNER_FOLDER);
  if (ownerOf(path) !== 'others') return;
  throw configFailure(
    `${what} ${path} is a link, belongs to another user or is open to others: remove it or ${remedy}.`,
    { where: { file: path } },
  );
}
