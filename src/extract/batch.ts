import type { Clock } from '../base/clock.ts';
import type { DayDownload } from './receipt.ts';

/** The end of a batch: the day that reaches one of these numbers, or the time after its first day was ready. */
export const BATCH_LIMITS = { rows: 500_000, bytes: 256 * 1024 * 1024, waitMs: 10_000 };
export type BatchLimits = Readonly<typeof BATCH_LIMITS>;
export const ONE_DAY: BatchLimits = { ...BATCH_LIMITS, rows: 0 };

/** Collects days, in order, until they are delivered together. A day that may share rows is a batch of its own. */
export class Batch {
  readonly #limits: BatchLimits;
  readonly #clock: Clock;
  #days: DayDownload[] = [];
  #expired: Promise<void> | undefined;
  #cancel = () => {};

  constructor(limits: BatchLimits, clock: Clock) {
    this.#limits = limits;
    this.#clock = clock;
  }

  add(day: DayDownload): void {
    this.#days.push(day);
    if (this.#days.length > 1 || this.isFull) return;
    this.#expired = new Promise((resolve) => {
      this.#cancel = this.#clock.after(this.#limits.waitMs, resolve);
    });
  }

  get isFull(): boolean {
    const total = (of: 'rows' | 'bytes') => this.#days.reduce((sum, { receipt }) => sum + receipt[of], 0);
    const isAlone = this.#days.some(({ mayShareRows }) => mayShareRows);
    return isAlone || total('rows') >= this.#limits.rows || total('bytes') >= this.#limits.bytes;
  }

  /** Waits for `ready`, but no longer than the collected days may wait; false if that time is over. */
  async mayWaitFor(ready: Promise<unknown>): Promise<boolean> {
    const done = ready.then(
      () => true,
      () => true,
    );
    return this.#expired === undefined ? done : Promise.race([done, this.#expired.then(() => false)]);
  }

  drain(): readonly DayDownload[] {
    const drained = this.#days;
    this.#days = [];
    this.#expired = undefined;
    this.#cancel();
    return drained;
  }
}
