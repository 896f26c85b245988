import { randomUUID } from 'node:crypto';
import { readFileSync, renameSync, unlinkSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { dirname } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import { codeOf, messageOf } from '../../base/errors.ts';
import { isAlive } from '../../base/exit.ts';
import { makeFolders } from '../../base/folders.ts';
import type { Logger } from '../../base/log.ts';
import { withLock } from './lock.ts';
import { EMPTY_STATE, parseState, pruned, type QuotaState, type Slot } from './state.ts';

const LEASE_MS = 120_000;
const RENEW_MS = 30_000;

export interface LedgerOptions {
  /** Path of the file; undefined: this process keeps the state for itself. */
  readonly path: string | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The state of the quota, shared by the processes of one machine through a file that is replaced as a whole. */
export class Ledger {
  #path: string | undefined;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #run = randomUUID();
  readonly #held = new Set<number>();
  #state: QuotaState = EMPTY_STATE;
  #warned = false;
  #renewing: (() => void) | undefined;

  constructor({ path, clock, logger }: LedgerOptions) {
    this.#path = path;
    this.#clock = clock;
    this.#logger = logger;
  }

  /** The state as of now, without waiting for a lock: a whole one, perhaps a moment old. */
  peek(): QuotaState {
    return this.#current(this.#read());
  }

  /** One change of the state that no other process's comes between. */
  async update<T>(change: (state: QuotaState) => { readonly state: QuotaState; readonly result: T }): Promise<T> {
    const path = this.#path;
    const apply = (write: (state: QuotaState) => void) => {
      const { state, result } = change(this.#current(this.#read()));
      this.#state = state;
      write(state);
      return result;
    };
    if (path === undefined) return apply(() => {});
    let done: { readonly result: T } | undefined;
    try {
      makeFolders(dirname(path), 0o700);
      return await withLock(`${path}.lock`, this.#clock, () => {
        const result = apply(() => {});
        done = { result };
        replaceFile(path, JSON.stringify(this.#state));
        return result;
      });
    } catch (error) {
      if (codeOf(error) === undefined) throw error;
      this.#countAlone(error);
      return done === undefined ? apply(() => {}) : done.result;
    }
  }

  /** A slot of this process; it is renewed until given up. */
  hold(n: number): Slot {
    this.#held.add(n);
    this.#renewLater();
    return { n, pid: process.pid, host: hostname(), run: this.#run, lease: this.#leaseEnd(), heard: false };
  }

  giveUp(n: number): void {
    this.#held.delete(n);
    if (this.#held.size > 0) return;
    this.#renewing?.();
    this.#renewing = undefined;
  }

  isOwn(slot: Slot): boolean {
    return slot.run === this.#run;
  }

  #read(): QuotaState {
    if (this.#path === undefined) return this.#state;
    let text: string;
    try {
      text = readFileSync(this.#path, 'utf8');
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return EMPTY_STATE;
      this.#countAlone(error);
      return this.#state;
    }
    const state = parseState(text);
    if (state !== undefined) return state;
    this.#warnOnce(`The ledger of the quota in ${this.#path} cannot be understood: it is started anew.`);
    return EMPTY_STATE;
  }

  #current(state: QuotaState): QuotaState {
    const now = this.#clock.now();
    return pruned(state, now, (slot) => this.#isHeld(slot, now));
  }

  #isHeld(slot: Slot, now: number): boolean {
    if (this.isOwn(slot)) return this.#held.has(slot.n);
    if (slot.host === hostname() && !isAlive(slot.pid)) return false;
    // No process takes so long a lease: its clock, or ours, was wrong since.
    return slot.lease > now && slot.lease <= now + 2 * LEASE_MS;
  }

  #leaseEnd(): number {
    return this.#clock.now() + LEASE_MS;
  }

  #renewLater(): void {
    this.#renewing ??= this.#clock.after(RENEW_MS, () => {
      this.#renewing = undefined;
      if (this.#held.size === 0) return;
      this.#renewLater();
      void this.#renew().catch(() => {});
    });
  }

  #renew(): Promise<void> {
    return this.update((state) => {
      const lease = this.#leaseEnd();
      const slots = state.slots.map((slot) => (this.isOwn(slot) ? { ...slot, lease } : slot));
      return { state: { ...state, slots }, result: undefined };
    });
  }

  /** A file that could not be written or read once is not believed again: it lacks what happened since. */
  #countAlone(error: unknown): void {
    this.#warnOnce(
      `The ledger of the quota cannot be kept in ${this.#path} (${messageOf(error)}): this run counts alone, other ` +
        'processes of this machine do not see its exports.',
    );
    this.#path = undefined;
  }

  #warnOnce(message: string): void {
    if (this.#warned) return;
    this.#warned = true;
    this.#logger.warn('quota.ledger', message);
  }
}

function replaceFile(path: string, text: string): void {
  const next = `${path}.${randomUUID()}.tmp`;
  try {
    writeFileSync(next, text, { flag: 'wx', mode: 0o600 });
    renameSync(next, path);
  } catch (error) {
    try {
      unlinkSync(next);
    } catch {
      // It was never made.
    }
    throw error;
  }
}
