import { closeSync, fsyncSync, openSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { codeOf } from '../base/errors.ts';

const CANNOT_SYNC: ReadonlySet<string> = new Set(['EISDIR', 'EPERM', 'EACCES', 'EINVAL', 'ENOTSUP', 'ENOENT']);

/** True for the error of a file system that cannot sync the names in a folder. */
const cannotSync = (error: unknown): boolean => CANNOT_SYNC.has(codeOf(error) ?? '');

/** Windows syncs only what is open for writing, Linux opens a folder only for reading. */
export async function syncFile(path: string, flags: 'r+' | 'r' = 'r+'): Promise<void> {
  const file = await open(path, flags);
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Syncs the names in a folder to disk, on file systems that support it. */
export async function syncFolder(path: string): Promise<void> {
  try {
    await syncFile(path, 'r');
  } catch (error) {
    if (!cannotSync(error)) throw error;
  }
}

/** The same, without a turn for others. */
export function syncFolderNow(path: string): void {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(path, 'r');
    fsyncSync(descriptor);
  } catch (error) {
    if (!cannotSync(error)) throw error;
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}
