import { randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  linkSync,
  lstatSync,
  openSync,
  readdirSync,
  readSync,
  writeSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { Clock } from '../base/clock.ts';
import { codeOf, configError, transientError } from '../base/errors.ts';
import { objectIn } from '../base/json.ts';
import { waitedFor } from '../base/retry.ts';
import { hasNoLinks, OWNER_FILE, removeIfThere, writeWhole } from './atomic-file.ts';
import { identityFrom, livenessOf, OWN_IDENTITY, type ProcessIdentity } from './process-identity.ts';

// A lock and a lease are a file that names the process that owns it. It is created exclusively, whole from the moment
// on in which it has its name, and rewritten every ten seconds. An owner is dead if that can be seen here (same boot
// and namespaces), else if its file was not rewritten for a minute. The lock of a dead owner is stolen: by the one
// process that creates `LOCK.steal-TOKEN`, where TOKEN is the dead owner's.

export const HEARTBEAT_MS = 10_000;
/** An owner that cannot be seen from here counts as dead if its file is older than this. */
const SILENCE_MS = 60_000;
const FIRST_PAUSE_MS = 20;
const MAX_PAUSE_MS = 200;
const MAX_LOCK_FILE_BYTES = 4_096;
/** Between the name of a lock and the token of the owner from whom it is stolen. */
const STEAL = '.steal-';
/** Flags that open a file without following a link and without waiting for the other end of a pipe. */
const NO_FOLLOW_NO_WAIT = (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

interface Owner {
  /** Differs for any two owners of one path. */
  readonly token: string;
  /** The owner's process; undefined for a file of another version, or one that is just being written. */
  readonly identity: ProcessIdentity | undefined;
  /** Last rewrite, by the clock of the file system (ms). */
  readonly rewrittenAt: number;
}

export interface LockOptions {
  /** Name of the locked thing within a sentence: `the ledger in /var/ledger`. */
  readonly what: string;
  readonly clock: Clock;
  /** Time to wait for another owner (ms); 0 for not at all. */
  readonly waitMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** A file that one process at a time owns, of any container and machine that sees it. */
export class LockFile {
  readonly #path: string;
  readonly #token: string;
  readonly #what: string;
  #stopRewriting: () => void = () => {};

  private constructor(path: string, token: string, { what, clock }: Pick<LockOptions, 'what' | 'clock'>) {
    this.#path = path;
    this.#token = token;
    this.#what = what;
    this.#keepAlive(clock);
  }

  /** Takes the lock if it is free or its owner is dead; else undefined. */
  static tryAcquire(path: string, options: Pick<LockOptions, 'what' | 'clock'>): LockFile | undefined {
    const token = createOwnerFile(path) ?? steal(path, options.what);
    if (token === undefined) return undefined;
    removeLeftovers(path);
    return new LockFile(path, token, options);
  }

  /**
   * Takes the lock. Throws a transient failure that names the owner when the wait is over, the signal's reason when it
   * aborts, the system's error when the file cannot be made.
   */
  static async acquire(path: string, options: LockOptions): Promise<LockFile> {
    const { waitMs, what } = options;
    const policy = { waitMs, pauseMs: FIRST_PAUSE_MS, maxPauseMs: MAX_PAUSE_MS };
    const lock = await waitedFor(policy, options, () => LockFile.tryAcquire(path, options));
    if (lock !== undefined) return lock;
    const { pid, host } = checkedOwner(path, what)?.identity ?? {};
    const who = pid === undefined ? '' : ` by process ${pid} on ${host}`;
    const message = `${what[0].toUpperCase()}${what.slice(1)} is in use${who}: try again when that run has ended.`;
    throw transientError(message, { where: { file: path } });
  }

  /**
   * Throws a transient failure once another process stole the lock, as from a process that was suspended for long.
   * Called right before each step that others see.
   */
  checkHeld(): void {
    if (this.isHeld()) return;
    throw transientError(`Another run has taken over ${this.#what}: this one was silent for long. Run again.`, {
      where: { file: this.#path },
    });
  }

  isHeld(): boolean {
    return readOwner(this.#path)?.token === this.#token;
  }

  /** A file that cannot be removed counts as a dead owner's a minute after its last rewrite. */
  release(): void {
    this.#stopRewriting();
    try {
      if (this.isHeld()) removeIfThere(this.#path);
    } catch {}
  }

  /** Rewrites the file until the lock is released, or until the file is missing or belongs to another owner. */
  #keepAlive(clock: Clock): void {
    this.#stopRewriting = clock.after(HEARTBEAT_MS, () => {
      if (this.#rewrite()) this.#keepAlive(clock);
    });
  }

  #rewrite(): boolean {
    const write = (file: number) => {
      const isOwn = ownerIn(file).token === this.#token;
      if (isOwn) writeSync(file, ownerText(this.#token), 0);
      return isOwn;
    };
    try {
      return withFile(this.#path, constants.O_RDWR, write) === true;
    } catch {
      // A disk that fails for a while must not end the rewriting.
      return true;
    }
  }
}

/**
 * Runs `work` while no other process that uses the lock does; it asks `checkHeld` right before each step that others
 * see. If the lock is free, work that waits for nothing is done before this returns its promise. Throws what `work`
 * throws, and what `acquire` throws.
 */
export async function withLockFile<T>(
  path: string,
  options: LockOptions,
  work: (checkHeld: () => void) => T | Promise<T>,
): Promise<T> {
  const lock = LockFile.tryAcquire(path, options) ?? (await LockFile.acquire(path, options));
  try {
    const done = work(() => lock.checkHeld());
    return done instanceof Promise ? await done : done;
  } finally {
    lock.release();
  }
}

/**
 * Shows that a run is alive: files with its name in a shared folder must not be touched while its lease is held.
 * `checkHeld` throws a transient failure if another run took this one for dead: it removes or uses its files.
 */
export type Lease = ReturnType<typeof acquireLease>;

/** Takes a lease for a new run. Throws the system's error, `EEXIST` too if the file was removed meanwhile. */
export function acquireLease(folder: string, clock: Clock) {
  const run = `r${randomBytes(8).toString('hex')}`;
  const path = leasePath(folder, run);
  const file = LockFile.tryAcquire(path, { what: `the files of this run in ${folder}`, clock });
  if (file === undefined) throw Object.assign(new Error(`${path} was taken away`), { code: 'EEXIST' });
  return { run, checkHeld: () => file.checkHeld(), release: () => file.release() };
}

const leasePath = (folder: string, run: string): string => join(folder, `${run}.lease`);

/** The run whose lease a file is, by the name of the file. */
export const leaseOf = (name: string): string | undefined => /^(r[0-9a-f]{16})\.lease$/.exec(name)?.[1];

/** True while the run that wrote a file lives. Throws the system's error. */
export function isLeased(folder: string, run: string): boolean {
  const path = leasePath(folder, run);
  try {
    const owner = readOwner(path);
    return owner !== undefined && !isDead(owner, path);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false;
    throw error;
  }
}

/** True for a temporary file of a lock, or one whose process was killed: any process may remove it. */
export const isLockTemporary = (name: string): boolean => /^\.(time|owner)-[0-9a-f]{12}\.tmp$/.test(name);

/** Removes what killed processes left while they took this lock, which is held now, or another lock of its folder. */
function removeLeftovers(lock: string): void {
  const folder = dirname(lock);
  const stealing = `${basename(lock)}${STEAL}`;
  try {
    for (const name of readdirSync(folder)) {
      const path = join(folder, name);
      // This lock has an owner that lives, so that nobody steals it any more.
      if (name.startsWith(stealing)) removeIfThere(path);
      if (!isLockTemporary(name)) continue;
      const owner = readOwner(path);
      // A file without an owner is not written yet; a process whose file is removed tries again.
      if (owner !== undefined && (owner.identity === undefined || isDead(owner, path))) removeIfThere(path);
    }
  } catch {
    // Files that stay lock nothing; the next process removes them.
  }
}

const temporaryIn = (folder: string, kind: 'time' | 'owner'): string =>
  join(folder, `.${kind}-${randomBytes(6).toString('hex')}.tmp`);

/**
 * Takes the lock of a dead owner and returns the new token; undefined if the owner lives, or if another process steals
 * it.
 */
function steal(path: string, what: string): string | undefined {
  const owner = checkedOwner(path, what);
  // The lock was released meanwhile.
  if (owner === undefined) return createOwnerFile(path);
  if (!isDead(owner, path)) return undefined;
  const stealing = `${path}${STEAL}${owner.token}`;
  if (createOwnerFile(stealing) === undefined) {
    const other = readOwner(stealing);
    // The process that was stealing it was killed: the next attempt may steal it.
    if (other !== undefined && isDead(other, stealing)) removeIfThere(stealing);
    return undefined;
  }
  try {
    // If the owner differs, the lock was stolen before the file was created.
    if (readOwner(path)?.token !== owner.token) return undefined;
    removeIfThere(path);
    return createOwnerFile(path);
  } finally {
    removeIfThere(stealing);
  }
}

/** Throws a configuration failure for what cannot be a lock of this user: a link, a folder. */
function checkedOwner(path: string, what: string): Owner | undefined {
  try {
    return readOwner(path);
  } catch (error) {
    throw configError(
      `${path}, the lock of ${what}, is no lock of this user (${codeOf(error) ?? 'unknown error'}): remove it.`,
      { cause: error, where: { file: path } },
    );
  }
}

/**
 * True if an owner is dead: provably, or, if it cannot be seen from here, by its silence, which is measured by the
 * clock of the file system alone, so that machines whose clocks differ agree.
 */
function isDead({ identity, rewrittenAt }: Owner, path: string): boolean {
  const liveness = identity === undefined ? 'unknown' : livenessOf(identity);
  if (liveness !== 'unknown') return liveness === 'dead';
  const temporary = temporaryIn(dirname(path), 'time');
  const file = openSync(temporary, 'wx', OWNER_FILE);
  try {
    writeSync(file, '.');
    return Math.abs(fstatSync(file).mtimeMs - rewrittenAt) > SILENCE_MS;
  } finally {
    closeSync(file);
    removeIfThere(temporary);
  }
}

/** Creates the file of an owner and returns its token; undefined if there is one, or if another process interferes. */
function createOwnerFile(path: string): string | undefined {
  if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) return undefined;
  const token = randomBytes(8).toString('hex');
  const temporary = temporaryIn(dirname(path), 'owner');
  try {
    writeNew(temporary, token);
    try {
      linkSync(temporary, path);
    } catch (error) {
      if (!hasNoLinks(error)) throw error;
      // A process that is killed between creating and writing it counts as alive until it is silent.
      writeNew(path, token);
    }
    return token;
  } catch (error) {
    const code = codeOf(error);
    // Another process was quicker, or removed the temporary file as one of a killed process.
    if (code === 'EEXIST' || (code === 'ENOENT' && existsSync(dirname(path)))) return undefined;
    throw error;
  } finally {
    removeIfThere(temporary);
  }
}

/** Creates a file with the text of an owner. Throws the system's error, `EEXIST` if there is a file. */
function writeNew(path: string, token: string): void {
  const file = openSync(
    path,
    constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | NO_FOLLOW_NO_WAIT,
    OWNER_FILE,
  );
  try {
    writeWhole(file, Buffer.from(ownerText(token)));
  } catch (error) {
    removeIfThere(path);
    throw error;
  } finally {
    closeSync(file);
  }
}

const ownerText = (token: string): string => JSON.stringify({ v: 1, ...OWN_IDENTITY, token });

/** The owner of a path; undefined if there is none. Throws the system's error for what cannot be an owner's file. */
const readOwner = (path: string): Owner | undefined => withFile(path, constants.O_RDONLY, ownerIn);

function ownerIn(file: number): Owner {
  const buffer = Buffer.alloc(MAX_LOCK_FILE_BYTES);
  const text = buffer.toString('utf8', 0, readSync(file, buffer, 0, MAX_LOCK_FILE_BYTES, 0));
  const { ino, mtimeMs, mtimeNs } = fstatSync(file, { bigint: true });
  return { identity: undefined, token: `${ino}-${mtimeNs}`, ...parseOwner(text), rewrittenAt: Number(mtimeMs) };
}

/** Parses the text of an owner's file; undefined for a text that this version does not write. */
function parseOwner(text: string): Pick<Owner, 'token' | 'identity'> | undefined {
  const value = objectIn(text);
  const identity = identityFrom(value);
  const { token } = value;
  const isOwner = identity !== undefined && typeof token === 'string' && /^[0-9a-f]{16}$/.test(token);
  return isOwner ? { token, identity } : undefined;
}

/** Opens a file, runs `work` with it and closes it; undefined if there is no such file. */
function withFile<T>(path: string, mode: number, work: (file: number) => T): T | undefined {
  let file: number;
  try {
    file = openSync(path, mode | NO_FOLLOW_NO_WAIT);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
  try {
    return work(file);
  } finally {
    closeSync(file);
  }
}
