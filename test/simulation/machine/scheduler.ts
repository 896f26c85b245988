import { AsyncLocalStorage } from 'node:async_hooks';
import type { Clock } from '../../../src/base/clock.ts';
import type { Random } from '../../../src/base/random.ts';

/*
 * The event loop of a simulated simulation. Whatever would come from outside (a file system call, a packet, a timer, the end of
 * a statement) is an event here; events happen one at a time, in an order that the seed draws, and time passes only when
 * nothing else is left to happen. So one seed is one history, and an hour of waiting costs nothing.
 */

/** The owner of an event; a dead owner does nothing any more. */
export interface Owner {
  readonly isDead: boolean;
}

/** The process whose code runs now; undefined for the service, or the test itself. */
export const running = new AsyncLocalStorage<Owner | undefined>();

const realImmediate = setImmediate;
const realTimeout = setTimeout;

/** Events that keep their order among themselves: the bytes of a connection, the turns of a process. */
export type Channel = (() => void)[];

interface Timer {
  readonly at: number;
  readonly order: number;
  readonly owner: Owner | undefined;
  readonly fire: () => void;
}

/** How far behind the oldest event one may be that overtakes it. */
const MAX_OVERTAKEN = 4;
/** Real turns without any event after which something outside the simulation is waited for, and then given up. */
const MAX_IDLE = 400;
/** ms of the simulation: no command waits longer than for the next day of a quota. */
const LONGEST_WORK_MS = 4 * 24 * 3_600_000;

export class Scheduler {
  /** ms since 1970, as the service sees it. */
  now: number;
  /** Events so far: two histories with the same number are, most likely, the same. */
  events = 0;
  readonly #random: Random | undefined;
  readonly #ready: { readonly owner: Owner | undefined; readonly happen: () => void }[] = [];
  #timers: Timer[] = [];
  #timersMade = 0;
  readonly #outside = new Set<Promise<unknown>>();

  /** `random` draws which event is next; without it the oldest is. */
  constructor(now: number, random: Random | undefined) {
    this.now = now;
    this.#random = random;
  }

  push(owner: Owner | undefined, happen: () => void): void {
    this.#ready.push({ owner, happen });
  }

  /** Schedules an event behind all earlier ones of the channel. */
  pushInto(channel: Channel, owner: Owner | undefined, happen: () => void): void {
    channel.push(happen);
    this.push(owner, () => channel.shift()?.());
  }

  /** Calls back after `ms`; returns how to cancel it. */
  after(owner: Owner | undefined, ms: number, fire: () => void): () => void {
    const timer: Timer = { at: this.now + Math.max(0, ms), order: this.#timersMade++, owner, fire };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((one) => one !== timer);
    };
  }

  /** Work of a thread outside: nothing else happens until it is done, and then its end is an event like any other. */
  async outside<T>(owner: Owner | undefined, work: () => Promise<T>): Promise<T> {
    const done = running.run(undefined, work);
    const settled = done.then(
      () => {},
      () => {},
    );
    this.#outside.add(settled);
    await settled;
    this.#outside.delete(settled);
    await new Promise<void>((resolve) => this.push(owner, resolve));
    return done;
  }

  /** Lets things happen until `isDone`; throws when nothing is left that could, or when days of the simulation have passed. */
  async until(isDone: () => boolean): Promise<void> {
    const latest = this.now + LONGEST_WORK_MS;
    for (let idle = 0; ; ) {
      await new Promise<void>((resolve) => realImmediate(resolve));
      if (isDone()) return;
      if (this.now > latest) throw new Error('days have passed, and the work is not done');
      if (this.#outside.size > 0) {
        await Promise.all(this.#outside);
        continue;
      }
      if (this.#next()) idle = 0;
      else if (idle++ > MAX_IDLE) throw new Error('nothing is left that could happen, and the work is not done');
      else if (idle > 3) await new Promise<void>((resolve) => realTimeout(resolve, 2));
      else continue;
    }
  }

  /** Lets happen what happens without time passing. */
  async settle(): Promise<void> {
    await this.until(() => this.#ready.length === 0 && this.#outside.size === 0);
  }

  #next(): boolean {
    const event = this.#ready.length > 0 ? this.#ready.splice(this.#choice(), 1)[0] : this.#dueTimer();
    if (event === undefined) return false;
    this.events++;
    if (event.owner?.isDead !== true) running.run(event.owner, event.happen);
    return true;
  }

  #choice(): number {
    if (this.#random === undefined) return 0;
    return Math.floor(this.#random() ** 3 * Math.min(this.#ready.length, MAX_OVERTAKEN));
  }

  #dueTimer() {
    let first: Timer | undefined;
    for (const timer of this.#timers) {
      if (first === undefined || timer.at < first.at || (timer.at === first.at && timer.order < first.order)) {
        first = timer;
      }
    }
    if (first === undefined) return undefined;
    this.#timers = this.#timers.filter((one) => one !== first);
    this.now = Math.max(this.now, first.at);
    return { owner: first.owner, happen: first.fire };
  }
}

/** Time as a process of the simulation sees it: the simulation's, and by so much ahead as its machine's clock is. */
export function clockOf(scheduler: Scheduler, skew: () => number): Clock {
  const owner = () => running.getStore();
  return {
    now: () => scheduler.now + skew(),
    sleep(ms, signal) {
      return new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason);
        const abort = () => {
          cancel();
          reject(signal?.reason);
        };
        const cancel = scheduler.after(owner(), ms, () => {
          signal?.removeEventListener('abort', abort);
          resolve();
        });
        signal?.addEventListener('abort', abort, { once: true });
      });
    },
    after: (ms, callback) => scheduler.after(owner(), ms, callback),
  };
}
