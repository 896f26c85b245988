import type { Clock } from '../base/clock.ts';
import { codeOf, configFailure, transientFailure } from '../base/errors.ts';
import {
  createHolderFile,
  type Holder,
  isAbandoned,
  readHolderFile,
  removeIfThere,
  startHeartbeat,
} from './holder-file.ts';

export interface LockOptions {
  /** What is locked, in the words of a sentence: `the ledger in /var/ledger`. */
  readonly what: string;
  readonly clock: Clock;
  /** How long to wait for another holder; 0: not at all. */
  readonly waitMs: number;
  readonly signal?: AbortSignal | undefined;
}

const FIRST_PAUSE_MS = 10;
const LONGEST_PAUSE_MS = 200;
/** A process that takes a lock away from a dead one may die over it, and the one that takes that one's away. */
const MOST_TAKEOVERS = 3;

/**
 * A file that one process at a time holds, of any container and machine that sees it. A dead holder's is taken over: one
 * whose death is proved in this boot and these namespaces, or one from elsewhere whose heartbeat has been silent.
 */
export class LockFile {
  readonly #path: string;
  readonly #token: string;
  readonly #stopHeartbeat: () => void;

  private constructor(path: string, token: string, clock: Clock) {
    this.#path = path;
    this.#token = token;
    this.#stopHeartbeat = startHeartbeat(path, token, clock);
  }

  /**
   * Takes the lock. Throws a transient failure that names the holder when the wait is over, the signal's reason when it
   * aborts, the system's error when the file cannot be made.
   */
  static async take(path: string, options: LockOptions): Promise<LockFile> {
    return new LockFile(path, tokenAt(path, options.what) ?? (await tokenAfterWait(path, options)), options.clock);
  }

  /** False once somebody took the lock away, as from a process that was suspended for long. */
  isHeld(): boolean {
    return readHolderFile(this.#path)?.token === this.#token;
  }

  release(): void {
    this.#stopHeartbeat();
    release(this.#path, this.#token);
  }
}

/** Runs `work` while no other process that uses the lock does. Throws what `work` throws, and what `take` throws. */
export async function withLockFile<T>(path: string, options: LockOptions, work: () => Promise<T>): Promise<T> {
  const lock = await LockFile.take(path, options);
  try {
    return await work();
  } finally {
    lock.release();
  }
}

/** The same for work that waits for nothing: where the lock is free, it is done before this returns its promise. */
export async function withBriefLock<T>(path: string, options: LockOptions, work: () => T): Promise<T> {
  const token = tokenAt(path, options.what) ?? (await tokenAfterWait(path, options));
  try {
    return work();
  } finally {
    release(path, token);
  }
}

async function tokenAfterWait(path: string, { clock, waitMs, signal, what }: LockOptions): Promise<string> {
  let pause = FIRST_PAUSE_MS;
  // Pauses are counted, not clocks compared: those may jump.
  for (let waited = 0; waited < waitMs; waited += pause) {
    pause = Math.min(pause * 2, LONGEST_PAUSE_MS, waitMs - waited);
    await clock.sleep(pause, signal);
    // A clock that never really sleeps must not keep others from their turn.
    await new Promise((resolve) => setImmediate(resolve));
    signal?.throwIfAborted();
    const token = tokenAt(path, what);
    if (token !== undefined) return token;
  }
  throw heldBy(holderAt(path, what), what, path);
}

/** Takes the lock if it is free or its holder dead; returns its token. */
function tokenAt(path: string, what: string): string | undefined {
  const token = createHolderFile(path);
  if (token !== undefined) return token;
  const holder = holderAt(path, what);
  if (holder !== undefined && !(isAbandoned(holder, path) && removeOf(holder, path, 1))) return undefined;
  return createHolderFile(path);
}

/** A lock that cannot be removed is that of a dead process soon. */
function release(path: string, token: string): void {
  try {
    if (readHolderFile(path)?.token === token) removeIfThere(path);
  } catch {}
}

/**
 * Removes the lock of a dead holder. One process at a time may: the one that holds the claim named after this very
 * holder, and it looks once more before it acts.
 */
function removeOf(dead: Holder, path: string, depth: number): boolean {
  const claim = `${path}.takeover-${dead.token}`;
  const token = createHolderFile(claim);
  if (token === undefined) {
    const other = readHolderFile(claim);
    if (depth < MOST_TAKEOVERS && other !== undefined && isAbandoned(other, claim)) removeOf(other, claim, depth + 1);
    return false;
  }
  try {
    const isSame = readHolderFile(path)?.token === dead.token;
    if (isSame) removeIfThere(path);
    return isSame;
  } finally {
    removeIfThere(claim);
  }
}

function holderAt(path: string, what: string): Holder | undefined {
  try {
    return readHolderFile(path);
  } catch (error) {
    throw configFailure(
      `${path}, the lock of ${what}, is no lock of this user (${codeOf(error) ?? 'unknown error'}): remove it.`,
      { cause: error, where: { file: path } },
    );
  }
}

function heldBy(holder: Holder | undefined, what: string, path: string) {
  const { pid, host } = holder?.identity ?? {};
  const who = pid === undefined ? '' : ` by process ${pid} on ${host}`;
  return transientFailure(`${capital(what)} is in use${who}: try again when that run has ended.`, {
    where: { file: path },
  });
}

const capital = (text: string): string => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
