import { createHash } from 'node:crypto';
import { chmod, open, rename } from 'node:fs/promises';
import { dirname } from 'node:path';
import { codeOf } from '../../base/errors.ts';
import { makeFolders } from '../../fs/make-folders.ts';

const OWNER_FOLDER = 0o700;
const OWNER_FILE = 0o600;
const READ_BYTES = 1 << 20;

/** What a file on disk is. */
export interface Fingerprint {
  readonly bytes: number;
  readonly sha256: string;
}

export async function makeFolder(path: string): Promise<void> {
  makeFolders(path, OWNER_FOLDER);
}

/** Reads a file to its end. */
export async function fingerprint(path: string): Promise<Fingerprint> {
  const file = await open(path, 'r');
  try {
    return await hashOf(file);
  } finally {
    await file.close();
  }
}

/** Makes a finished file the owner's alone, brings it to the disk, and says what it is. */
export async function settle(path: string): Promise<Fingerprint> {
  await chmod(path, OWNER_FILE);
  const file = await open(path, 'r+');
  try {
    const found = await hashOf(file);
    await file.sync();
    return found;
  } finally {
    await file.close();
  }
}

async function hashOf(file: Awaited<ReturnType<typeof open>>): Promise<Fingerprint> {
  const hash = createHash('sha256');
  const buffer = Buffer.allocUnsafe(READ_BYTES);
  let bytes = 0;
  for (;;) {
    const { bytesRead } = await file.read(buffer, 0, READ_BYTES, bytes);
    if (bytesRead === 0) return { bytes, sha256: hash.digest('hex') };
    hash.update(buffer.subarray(0, bytesRead));
    bytes += bytesRead;
  }
}

/** Moves a file into place, making the folder; false when it has been moved before. */
export async function moveInto(from: string, to: string): Promise<boolean> {
  await makeFolder(dirname(to));
  try {
    await rename(from, to);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false;
    throw error;
  }
  return true;
}
