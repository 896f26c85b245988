import { randomBytes } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { open, readFile, stat, unlink, utimes } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import { isAlive } from '../../base/exit.ts';

const BEAT_MS = 10_000;
/** A run on another machine (or in another container) that has not beaten for so long is dead. */
const SILENCE_MS = 60_000;
const NAME = /^(r[0-9a-f]{16})\.lease$/;

/** Where ids of processes mean the same as here. */
export const PLACE = `${hostname()} ${processSpace()}`;

interface Holder {
  readonly pid: number;
  /** Machine and space of process ids: elsewhere the same id is another process. */
  readonly host: string;
  /** When the process began, in the system's own ticks: ids of processes come again. Empty where it cannot be told. */
  readonly began: string;
}

/** The sign that a run is alive: whoever finds its files asks here first. */
export class Lease {
  readonly run: string;
  readonly #path: string;
  readonly #clock: Clock;
  #cancel: () => void = () => {};

  private constructor(run: string, folder: string, clock: Clock) {
    this.run = run;
    this.#path = pathOf(folder, run);
    this.#clock = clock;
  }

  static async take(folder: string, clock: Clock): Promise<Lease> {
    const lease = new Lease(`r${randomBytes(8).toString('hex')}`, folder, clock);
    const file = await open(lease.#path, 'wx', 0o600);
    try {
      await file.writeFile(JSON.stringify({ pid: process.pid, host: PLACE, began: beganOf('self') }));
    } finally {
      await file.close();
    }
    lease.#beat();
    return lease;
  }

  async release(): Promise<void> {
    this.#cancel();
    await unlink(this.#path).catch(() => {});
  }

  #beat(): void {
    this.#cancel = this.#clock.after(BEAT_MS, () => {
      const now = this.#clock.now() / 1_000;
      void utimes(this.#path, now, now).catch(() => {});
      this.#beat();
    });
  }
}

export const leaseOf = (name: string): string | undefined => NAME.exec(name)?.[1];

const pathOf = (folder: string, run: string): string => join(folder, `${run}.lease`);

/** True while the run that wrote a file lives. */
export async function isLeased(folder: string, run: string, now: number): Promise<boolean> {
  const path = pathOf(folder, run);
  let holder: Holder | undefined;
  try {
    holder = holderFrom(await readFile(path, 'utf8'));
  } catch {
    return false;
  }
  // A lease whose text is not there yet is being written at this moment.
  if (holder === undefined || holder.host !== PLACE) return beatWithin(path, now);
  if (!isAlive(holder.pid)) return false;
  return holder.began === beganOf(String(holder.pid));
}

function holderFrom(text: string): Holder | undefined {
  try {
    const { pid, host, began } = JSON.parse(text) as Partial<Holder>;
    if (typeof pid === 'number' && typeof host === 'string' && typeof began === 'string') return { pid, host, began };
  } catch {
    // Falls through: half a lease says nothing.
  }
  return undefined;
}

async function beatWithin(path: string, now: number): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  return found !== undefined && now - found.mtimeMs < SILENCE_MS;
}

function beganOf(pid: string): string {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return text.slice(text.lastIndexOf(')') + 2).split(' ')[19] ?? '';
  } catch {
    return '';
  }
}

function processSpace(): string {
  try {
    return readlinkSync('/proc/self/ns/pid');
  } catch {
    return '';
  }
}
