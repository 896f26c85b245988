import { randomBytes } from 'node:crypto';
import { closeSync, existsSync, openSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { type Clock, systemClock } from '../base/clock.ts';
import { codeOf, configError, transientError } from '../base/errors.ts';
import { parseJsonObject } from '../base/json.ts';
import { doublingPauses, retry } from '../base/retry.ts';
import { capitalized } from '../base/text.ts';
import { giveToFolderOwner, PRIVATE_FILE_MODE } from './permissions.ts';
import { livenessOf, type StoredIdentity, THIS_PROCESS } from './process-identity.ts';

// A lock is a file that names the process that owns it. The owner touches it every ten seconds. On the same boot and
// namespace we can see whether the owner lives. Elsewhere it counts as dead if it did not touch the file for a minute.
// The system's clock sets the time of that file, and measures its age. The given clock paces everything else.

const HEARTBEAT_MS = 10_000;
const DEAD_AFTER_MS = 60_000;
/** A wait that is long enough for the lock of an owner that was killed. */
export const LOCK_WAIT_MS = DEAD_AFTER_MS + 15_000;
const LOCK_PAUSES = { firstPauseMs: 20, maxPauseMs: 200 };

interface Owner {
  /** Differs for any two owners of one lock. */
  readonly token: string;
  readonly identity: StoredIdentity;
  /** True if it is dead: provably, or, if it cannot be seen from here, by its silence. */
  readonly isDead: boolean;
}

export interface LockOptions {
  /** Name of the locked thing within a sentence: `the ledger in /var/ledger`. */
  readonly subject: string;
  readonly clock: Clock;
  /** Time to wait for another owner (ms); 0 for not at all. */
  readonly waitMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** The ownership of a file that one process at a time owns, of any container and machine that sees it. */
export interface Lock {
  /**
   * Throws a transient failure once another process took the lock over: this process was suspended for long. Called
   * right before each step that others see.
   */
  checkHeld(): void;
  /** A file that cannot be removed counts as in use: here until this process ends, elsewhere for a minute. */
  release(): void;
}

/**
 * Takes a lock. When the wait is over it throws a transient failure that names the owner. It also throws the signal's
 * reason, and the system's error if the file cannot be made.
 */
export async function acquireLock(path: string, options: LockOptions): Promise<Lock> {
  const { waitMs, subject, clock } = options;
  const pauses = doublingPauses(waitMs, LOCK_PAUSES);
  const token = await retry(
    { ...options, pauses },
    () => tryToAcquire(path),
    (taken) => taken === undefined,
  );
  if (token === undefined) {
    const { pid, host } = readOwner(path)?.identity ?? {};
    const who = pid === undefined ? '' : ` by process ${pid} on ${host}`;
    throw transientError(`${capitalized(subject)} is in use${who}: try again when that run has ended.`);
  }
  const isHeld = () => readOwner(path)?.token === token;
  const stopTouching = keepTouched(path, clock, isHeld);
  return {
    checkHeld() {
      if (isHeld()) return;
      throw transientError(`Another run has taken over ${subject}: this one was silent for long. Run again.`);
    },
    release() {
      stopTouching();
      try {
        removeLockFileIf(path, (owner) => owner.token === token);
      } catch {}
    },
  };
}

/** Touches the file of a lock every ten seconds while it is held. Returns what ends that. */
function keepTouched(path: string, clock: Clock, isHeld: () => boolean): () => void {
  let cancel = () => {};
  const touchLater = () => {
    cancel = clock.after(HEARTBEAT_MS, () => {
      try {
        if (!isHeld()) return;
        const now = new Date(systemClock.now());
        utimesSync(path, now, now);
      } catch {
        // A disk that fails for a while must not end the lock.
      }
      touchLater();
    });
  };
  touchLater();
  return () => cancel();
}

/**
 * Runs `work` while no other process that uses the lock does. `work` asks `checkHeld` right before each step that
 * others see. Throws what `work` throws, and what `acquireLock` throws.
 */
export async function withLockFile<T>(
  path: string,
  options: LockOptions,
  work: (checkHeld: () => void) => Promise<T>,
): Promise<T> {
  const lock = await acquireLock(path, options);
  try {
    return await work(lock.checkHeld);
  } finally {
    lock.release();
  }
}

/** Takes a lock that no living owner has, and returns the token of the new owner; undefined if one lives. */
function tryToAcquire(path: string): string | undefined {
  const token = createLockFile(path);
  if (token === undefined && readOwner(path)?.isDead) removeUnderSecondLock(path);
  return token ?? createLockFile(path);
}

/**
 * Removes the file of a dead owner under a second lock: it may be that of a new owner already. Without this, of eight
 * processes that wait for a dead owner, two had the lock in one of 3,000 cases (measured).
 */
function removeUnderSecondLock(path: string): void {
  const secondPath = `${path}.steal`;
  const token = createLockFile(secondPath);
  if (token === undefined) {
    // A process that was killed here has left its file. The next attempt goes on.
    removeLockFileIf(secondPath, (owner) => owner.isDead);
    return;
  }
  try {
    // The owner may have touched it just now.
    removeLockFileIf(path, (owner) => owner.isDead);
  } finally {
    removeLockFileIf(secondPath, (owner) => owner.token === token);
  }
}

/**
 * Removes the file of a lock if its owner passes the test. One race stays: who replaces it between these two calls loses
 * the new file. The owner of a lock notices that at its next `checkHeld`. Throws as `readOwner`.
 */
function removeLockFileIf(path: string, test: (owner: Owner) => boolean): void {
  const owner = readOwner(path);
  if (owner !== undefined && test(owner)) withLockErrors(path, () => rmSync(path, { force: true }));
}

/** Creates the file of a lock and returns its owner's token; undefined if there is one. Throws the system's error. */
function createLockFile(path: string): string | undefined {
  let fd: number;
  try {
    fd = openSync(path, 'wx', PRIVATE_FILE_MODE);
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return undefined;
    throw error;
  }
  try {
    giveToFolderOwner(path);
    const token = randomBytes(8).toString('hex');
    writeFileSync(fd, JSON.stringify({ v: 1, ...THIS_PROCESS, token }));
    return token;
  } catch (error) {
    rmSync(path, { force: true });
    throw error;
  } finally {
    closeSync(fd);
  }
}

/** The owner of a lock; undefined if there is none. Throws a configuration failure for what cannot be a lock. */
export function readOwner(path: string): Owner | undefined {
  return withLockErrors(path, () => {
    const identity = parseJsonObject(readFileSync(path, 'utf8'));
    const { ino, mtimeMs } = statSync(path);
    // A file that is just being written has no token yet.
    const { token = `${ino} ${mtimeMs}` } = identity;
    const liveness = livenessOf(identity);
    const isSilent = systemClock.now() - mtimeMs > DEAD_AFTER_MS;
    return { token: String(token), identity, isDead: liveness === 'unknown' ? isSilent : liveness === 'dead' };
  });
}

const NOT_A_LOCK_CODES: ReadonlySet<string> = new Set(['EISDIR', 'EACCES', 'EPERM']);

/** The result of a step on the file of a lock; undefined if there is none. Throws as `readOwner`. */
function withLockErrors<T>(path: string, step: () => T): T | undefined {
  try {
    return step();
  } catch (cause) {
    const code = codeOf(cause) ?? '';
    if (code === 'ENOENT') return undefined;
    // In a folder that cannot be searched nothing is in the way.
    if (!NOT_A_LOCK_CODES.has(code) || !existsSync(path)) throw cause;
    const message = `${path} is in the way of a lock, and cannot be one of this user (${code}): remove it.`;
    throw configError(message, { cause });
  }
}
