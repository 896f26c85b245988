import { createHash, randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  linkSync,
  lstatSync,
  openSync,
  readSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import type { Clock } from '../base/clock.ts';
import { codeOf } from '../base/errors.ts';
import { hasNoLinks } from './atomic-file.ts';
import { identityFrom, livenessOf, OWN_IDENTITY, type ProcessIdentity } from './process-identity.ts';
import { writeWhole } from './write-whole.ts';

/** How often a holder rewrites its file. */
export const HEARTBEAT_MS = 10_000;
/** A holder on another machine or in another container counts as dead when its file is older than this. */
const SILENCE_MS = 60_000;
const OWNER_FILE = 0o600;
const MOST_BYTES = 4_096;
/** Never through a link, and never waiting for the other end of a pipe. */
const SAFELY = (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

/** A lock or lease as found on disk. */
export interface Holder {
  /** Differs for any two holders of one path. */
  readonly token: string;
  /** Undefined for a file that this version did not write, or that is being written at this moment. */
  readonly identity: ProcessIdentity | undefined;
  /** Last heartbeat, by the clock of the file system (ms). */
  readonly beatAt: number;
}

/**
 * Makes a file that says who holds something; undefined when there is one already, or when others interfere. It is whole
 * from the moment on in which it has its name: a holder that is killed is known by it. Throws the system's error. Returns
 * its token.
 */
export function createHolderFile(path: string): string | undefined {
  if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) return undefined;
  const token = randomBytes(8).toString('hex');
  const draft = join(dirname(path), `.holder-${randomBytes(6).toString('hex')}.tmp`);
  try {
    writeDraft(draft, token);
    linkSync(draft, path);
    return token;
  } catch (error) {
    const code = codeOf(error) ?? '';
    // Somebody else was quicker, or took the draft for one that was left behind.
    if (code === 'EEXIST' || (code === 'ENOENT' && existsSync(dirname(path)))) return undefined;
    if (hasNoLinks(error)) return createInPlace(path, token);
    throw error;
  } finally {
    removeIfThere(draft);
  }
}

function writeDraft(path: string, token: string): void {
  const file = openNew(path);
  try {
    writeHolder(file, token);
  } finally {
    closeSync(file);
  }
}

/** The same where a file cannot have two names: who is killed before it is written counts as alive until it is silent. */
function createInPlace(path: string, token: string): string | undefined {
  let file: number;
  try {
    file = openNew(path);
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return undefined;
    throw error;
  }
  try {
    writeHolder(file, token);
    // Between the two calls the empty file may have been taken for one that was left behind.
    return isAt(file, path) ? token : undefined;
  } catch (error) {
    removeIfThere(path);
    throw error;
  } finally {
    closeSync(file);
  }
}

const openNew = (path: string): number =>
  openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | SAFELY, OWNER_FILE);

const writeHolder = (file: number, token: string): void => writeWhole(file, Buffer.from(textOf(token)));

const textOf = (token: string): string => JSON.stringify({ v: 1, ...OWN_IDENTITY, token });

function isAt(file: number, path: string): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false, bigint: true });
  const own = fstatSync(file, { bigint: true });
  return found !== undefined && found.ino === own.ino && found.dev === own.dev;
}

/** Who holds a path; undefined when nobody does. Throws the system's error for what can be no file of ours. */
export function readHolderFile(path: string): Holder | undefined {
  let file: number;
  try {
    file = openSync(path, constants.O_RDONLY | SAFELY);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
  try {
    const { ino, mtimeMs, mtimeNs } = fstatSync(file, { bigint: true });
    const text = readText(file);
    const found = parsed(text);
    const token = found?.token ?? createHash('sha256').update(`${ino} ${mtimeNs} ${text}`).digest('hex').slice(0, 16);
    return { token, identity: found?.identity, beatAt: Number(mtimeMs) };
  } finally {
    closeSync(file);
  }
}

/** Rewrites the file of a holder; false when the file is no longer theirs. */
function beatHolderFile(path: string, token: string): boolean {
  let file: number;
  try {
    file = openSync(path, constants.O_RDWR | SAFELY);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false;
    throw error;
  }
  try {
    if (parsed(readText(file))?.token !== token) return false;
    writeSync(file, textOf(token), 0);
    return true;
  } finally {
    closeSync(file);
  }
}

/** Beats until cancelled, or until the file is somebody else's. */
export function startHeartbeat(path: string, token: string, clock: Clock): () => void {
  let cancel: () => void = () => {};
  const beat = () => {
    cancel = clock.after(HEARTBEAT_MS, () => {
      if (isStillOurs(path, token)) beat();
    });
  };
  beat();
  return () => cancel();
}

/** A disk that fails for a while must not end the heartbeat. */
function isStillOurs(path: string, token: string): boolean {
  try {
    return beatHolderFile(path, token);
  } catch {
    return true;
  }
}

/**
 * True when a holder is dead: provably, or, where it cannot be seen from here, by its silence. That is measured by the
 * clock of the file system alone, so that machines whose clocks differ agree.
 */
export function isAbandoned({ identity, beatAt }: Holder, path: string): boolean {
  const liveness = identity === undefined ? 'unknown' : livenessOf(identity);
  if (liveness !== 'unknown') return liveness === 'dead';
  return Math.abs(timeOfFileSystem(dirname(path)) - beatAt) > SILENCE_MS;
}

const MOMENTARY = /^\.(time|holder)-[0-9a-f]{12}\.tmp$/;

/** True for a file that is there for a moment alone, or whose maker was killed in it: anybody may remove it. */
export const isMomentary = (name: string): boolean => MOMENTARY.test(name);

/** The instant (ms) that the file system of a folder gives to a file written now. */
function timeOfFileSystem(folder: string): number {
  const path = join(folder, `.time-${randomBytes(6).toString('hex')}.tmp`);
  const file = openSync(path, 'wx', OWNER_FILE);
  try {
    writeSync(file, '.');
    return fstatSync(file).mtimeMs;
  } finally {
    closeSync(file);
    removeIfThere(path);
  }
}

export function removeIfThere(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
  }
}

function readText(file: number): string {
  const buffer = Buffer.alloc(MOST_BYTES);
  return buffer.toString('utf8', 0, readSync(file, buffer, 0, MOST_BYTES, 0));
}

function parsed(text: string): { readonly token: string; readonly identity: ProcessIdentity } | undefined {
  try {
    const value: unknown = JSON.parse(text);
    const identity = identityFrom(value);
    const { token } = value as { token?: unknown };
    if (identity !== undefined && typeof token === 'string' && /^[0-9a-f]{16}$/.test(token)) return { token, identity };
  } catch {
    // Not what this version writes.
  }
  return undefined;
}
