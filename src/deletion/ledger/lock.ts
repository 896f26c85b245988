import { randomBytes } from 'node:crypto';
import { closeSync, openSync, readFileSync, statSync, unlinkSync, utimesSync, writeSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import { codeOf, transientFailure } from '../../base/errors.ts';
import { isAlive } from '../../base/exit.ts';

const BEAT_MS = 20_000;
/** A holder on another machine that has not beaten for so long is dead. */
const SILENCE_MS = 2 * 60_000;
/** A takeover lasts microseconds; one so old was cut short. */
const TAKEOVER_MS = 60_000;

interface Holder {
  readonly pid: number;
  readonly host: string;
  /** When the process began, in the system's ticks: process ids come again. */
  readonly began: string;
  readonly token: string;
}

/** One run at a time writes to a ledger's folder. */
export class LedgerLock {
  readonly #path: string;
  readonly #token: string;
  readonly #clock: Clock;
  #cancelBeat: () => void = () => {};

  private constructor(path: string, token: string, clock: Clock) {
    this.#path = path;
    this.#token = token;
    this.#clock = clock;
  }

  /** Takes the lock or throws a transient failure that names the holder. A dead holder's lock is taken over. */
  static take(folder: string, clock: Clock): LedgerLock {
    const path = join(folder, 'ledger.lock');
    const token = randomBytes(8).toString('hex');
    if (!create(path, token)) {
      takeOver(path, clock.now());
      if (!create(path, token)) throw heldBy(holderOf(path));
    }
    const lock = new LedgerLock(path, token, clock);
    lock.#beat();
    return lock;
  }

  release(): void {
    this.#cancelBeat();
    if (holderOf(this.#path)?.token === this.#token) unlinkSync(this.#path);
  }

  #beat(): void {
    this.#cancelBeat = this.#clock.after(BEAT_MS, () => {
      const seconds = this.#clock.now() / 1_000;
      try {
        utimesSync(this.#path, seconds, seconds);
      } catch {
        // The folder is gone or read-only: the next write of the ledger will say so.
      }
      this.#beat();
    });
  }
}

function create(path: string, token: string): boolean {
  let fd: number;
  try {
    fd = openSync(path, 'wx', 0o600);
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw error;
  }
  try {
    const holder: Holder = { pid: process.pid, host: hostname(), began: beganOf('self'), token };
    writeSync(fd, JSON.stringify(holder));
  } finally {
    closeSync(fd);
  }
  return true;
}

/** Removes the lock of a dead holder; under a lock of its own, so that two runs cannot remove each other's. */
function takeOver(path: string, now: number): void {
  const guard = `${path}.takeover`;
  if (agedMs(guard, now) > TAKEOVER_MS) unlinkSync(guard);
  if (!create(guard, '')) throw heldBy(holderOf(path));
  try {
    if (isHeld(path, now)) throw heldBy(holderOf(path));
    unlinkSync(path);
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
  } finally {
    unlinkSync(guard);
  }
}

function isHeld(path: string, now: number): boolean {
  const holder = holderOf(path);
  // Without its text it is either being written at this moment or was left by a crash.
  if (holder === undefined || holder.host !== hostname()) {
    return agedMs(path, now) < (holder === undefined ? TAKEOVER_MS : SILENCE_MS);
  }
  return isAlive(holder.pid) && holder.began === beganOf(String(holder.pid));
}

function agedMs(path: string, now: number): number {
  try {
    return now - statSync(path).mtimeMs;
  } catch {
    return 0;
  }
}

function holderOf(path: string): Holder | undefined {
  try {
    const value: Partial<Holder> = JSON.parse(readFileSync(path, 'utf8'));
    const { pid, host, began, token } = value;
    if (typeof pid !== 'number' || typeof host !== 'string') return undefined;
    return { pid, host, began: began ?? '', token: token ?? '' };
  } catch {
    return undefined;
  }
}

function beganOf(pid: string): string {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return text.slice(text.lastIndexOf(')') + 2).split(' ')[19] ?? '';
  } catch {
    return '';
  }
}

const heldBy = (holder: Holder | undefined) =>
  transientFailure(
    `Another run is writing to the ledger${holder ? ` (process ${holder.pid} on ${holder.host})` : ''}; try again when it has ended.`,
  );
