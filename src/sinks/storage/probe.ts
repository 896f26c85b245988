import { randomUUID } from 'node:crypto';
import { configError } from '../../base/errors.ts';
import type { Storage } from './storage.ts';

const FIRST = 'first';

/**
 * Checks that a store refuses to create an object that exists: without that, two writers would silently overwrite each
 * other's commits. Throws a configuration failure if it does not (S42).
 */
export async function checkConditionalWrites(storage: Storage): Promise<void> {
  const path = `_dfinery/probe/${randomUUID()}`;
  try {
    // Refused, although nobody else knows the name: ours is there, and it was the answer that got lost.
    const first = (await storage.create(path, FIRST)) || (await storage.read(path))?.toString('utf8') === FIRST;
    if (first && !(await storage.create(path, 'second'))) return;
    throw configError(
      `${storage.address} does not honour "create only if absent" (If-None-Match: *): commits of two writers would ` +
        'overwrite each other. Use a store that does, or a folder on a disk.',
    );
  } finally {
    await storage.remove([path]);
  }
}
