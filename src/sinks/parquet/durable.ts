import { chmod, rename } from 'node:fs/promises';
import { dirname } from 'node:path';
import { codeOf } from '../../base/errors.ts';
import { syncFile } from '../../fs/atomic-file.ts';
import { makeFolders } from '../../fs/private-folder.ts';
import { type Fingerprint, fingerprint } from '../sql/files/fingerprint.ts';

const OWNER_FOLDER = 0o700;
const OWNER_FILE = 0o600;

export async function makeFolder(path: string): Promise<void> {
  makeFolders(path, OWNER_FOLDER);
}

/** Sets the mode of a finished file to 0600, syncs it to disk and returns its fingerprint. */
export async function makeDurable(path: string): Promise<Fingerprint> {
  await chmod(path, OWNER_FILE);
  const found = await fingerprint(path);
  await syncFile(path);
  return found;
}

/** Moves a file into place, making the folder; one that has been moved before is left there. */
export async function moveInto(from: string, to: string): Promise<void> {
  await makeFolder(dirname(to));
  try {
    await rename(from, to);
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
  }
}
