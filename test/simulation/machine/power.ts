import { join } from 'node:path';
import type { Random } from '../../../src/base/random.ts';
import { forgetNames, loseNames, namesSynced } from './names.ts';
import { realFs } from './real-fs.ts';

/*
 * What a power cut takes: bytes that were written and not synced since, and names in folders that were not synced. What
 * DuckDB wrote to its own files stays: it syncs them itself.
 */

/** Bytes of each file when it was last synced, by inode; undefined if it never was. */
const unsynced = new Map<number, Buffer | undefined>();

export function forgetAllUnsynced(): void {
  unsynced.clear();
  forgetNames();
}

/** Called before the bytes of a file change, which is named by path or descriptor; false if there is none yet. */
export function noteUnsynced(file: unknown): boolean {
  const found = statOf(file);
  if (found?.isFile() && !unsynced.has(found.ino)) {
    unsynced.set(found.ino, found.size === 0 ? undefined : realFs.readFileSync(pathOf(file)));
  }
  return found !== undefined;
}

/** A file that was just made, or a folder of such. */
export function noteMade(path: string): void {
  const found = statOf(path);
  if (found?.isFile()) unsynced.set(found.ino, undefined);
  if (found?.isDirectory()) for (const name of realFs.readdirSync(path)) noteMade(join(path, name));
}

/** Called when a file or a folder is synced, with its descriptor. */
export function forgetUnsynced(descriptor: number): void {
  const { ino } = realFs.fstatSync(descriptor);
  unsynced.delete(ino);
  namesSynced(ino);
}

/**
 * Undoes what was not synced below a folder: a file that never was synced keeps half of its bytes; of the names, a random number
 * of the latest go.
 */
export function loseUnsynced(folder: string, random: Random): void {
  loseNames(random);
  for (const name of realFs.readdirSync(folder, { recursive: true })) {
    const path = join(folder, String(name));
    const found = realFs.lstatSync(path);
    if (!found.isFile() || !unsynced.has(found.ino)) continue;
    const before = unsynced.get(found.ino);
    if (before === undefined) realFs.truncateSync(path, Math.floor(found.size / 2));
    else realFs.writeFileSync(path, before);
  }
  unsynced.clear();
}

function statOf(file: unknown) {
  if (typeof file === 'number') return realFs.fstatSync(file);
  return realFs.statSync(String(file), { throwIfNoEntry: false });
}

/** A descriptor may be open for writing alone, or at its end. */
const pathOf = (file: unknown): string => (typeof file === 'number' ? `/proc/self/fd/${file}` : String(file));
