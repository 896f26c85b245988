import { randomUUID } from 'node:crypto';
import { linkSync, readFileSync, renameSync, unlinkSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import type { Clock } from '../../base/clock.ts';
import { codeOf } from '../../base/errors.ts';
import { isAlive } from '../../base/exit.ts';

const PAUSE_MS = 10;
/** A holder needs a millisecond; one on another machine that is silent for so many pauses is dead. */
const MOST_PAUSES = 500;

/**
 * Runs `work`, which must not wait for anything, while no other process of any machine on the same folder does.
 * A lock whose process is dead is taken over. Throws what the file system throws.
 */
export async function withLock<T>(path: string, clock: Clock, work: () => T): Promise<T> {
  for (let pause = 0; ; pause++) {
    if (tryLock(path)) break;
    const stale = holderOf(path);
    if (stale !== undefined && (isDead(stale) || pause > MOST_PAUSES)) breakLock(path, stale);
    else {
      await clock.sleep(PAUSE_MS);
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
  try {
    return work();
  } finally {
    unlinkSync(path);
  }
}

function tryLock(path: string): boolean {
  try {
    writeFileSync(path, `${process.pid} ${hostname()} ${randomUUID()}`, { flag: 'wx', mode: 0o600 });
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw error;
  }
}

function holderOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

function isDead(holder: string): boolean {
  const [pid, host] = holder.split(' ');
  return host === hostname() && !isAlive(Number(pid));
}

/** Takes the stale lock away, and puts it back should somebody have renewed it in between. */
function breakLock(path: string, stale: string): void {
  const aside = `${path}.${randomUUID()}`;
  try {
    renameSync(path, aside);
    if (holderOf(aside) !== stale) linkSync(aside, path);
  } catch {
    // Somebody else was first.
  }
  try {
    unlinkSync(aside);
  } catch {
    // Nothing was moved.
  }
}
