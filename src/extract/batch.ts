import type { Clock } from '../base/clock.ts';
import { lastContained } from './plan/days.ts';
import type { Window } from './window.ts';

/**
 * The end of a batch of windows: the window that reaches one of these numbers (`bytes` of CSV), or the time after
 * the first window was ready.
 */
export const BATCH_LIMITS = { rows: 500_000, bytes: 256 * 1024 * 1024, windows: 100, waitMs: 10_000 };
export type BatchLimits = Readonly<typeof BATCH_LIMITS>;
export const ONE_WINDOW: BatchLimits = { ...BATCH_LIMITS, windows: 1 };

/** Collects windows, in the order of days, until they are delivered together. */
export class Batch {
  readonly #limits: BatchLimits;
  readonly #clock: Clock;
  #waiting: Window[] = [];
  #expired: Promise<void> | undefined;
  #expire = () => {};
  #cancel = () => {};
  /** Resolves once the collected windows are committed and removed; undefined if there are none. */
  #flushed: Promise<void> | undefined;
  #onFlushed = () => {};

  constructor(limits: BatchLimits, clock: Clock) {
    this.#limits = limits;
    this.#clock = clock;
  }

  add(window: Window): void {
    this.#waiting.push(window);
    this.#flushed ??= new Promise((resolve) => {
      this.#onFlushed = resolve;
    });
    if (this.#waiting.length > 1 || this.isFull) return;
    this.#expired = new Promise((resolve) => {
      this.#expire = resolve;
      this.#cancel = this.#clock.after(this.#limits.waitMs, resolve);
    });
  }

  get isFull(): boolean {
    const { rows, bytes, windows } = this.#limits;
    const total = (of: 'rows' | 'bytes') => this.#waiting.reduce((sum, { receipt }) => sum + receipt[of], 0);
    return this.#waiting.length >= windows || total('rows') >= rows || total('bytes') >= bytes;
  }

  /**
   * True if a waiting window may have rows of the same day: the later window then replaces rows of the earlier one,
   * which must be stored first. `isExclusive`: an export of several days is known not to contain `to_date`.
   */
  sharesDay({ receipt }: Window, isExclusive: boolean): boolean {
    const last = lastContained(receipt, isExclusive);
    return this.#waiting.some(
      ({ receipt: held }) => held.from <= last && receipt.from <= lastContained(held, isExclusive),
    );
  }

  /** Waits for `ready`, but no longer than the collected windows may wait; false if that time is over. */
  async mayWaitFor(ready: Promise<void>): Promise<boolean> {
    if (this.#expired === undefined) return true;
    return Promise.race([ready.then(() => true), this.#expired.then(() => false)]);
  }

  /**
   * Ends the wait of the windows, since their room on the disk is needed. Resolves once they, and the windows that are
   * being delivered, are committed and removed. Undefined if there are none.
   */
  flush(): Promise<void> | undefined {
    this.#expire();
    return this.#flushed;
  }

  /** To be called when the drained windows are committed and removed. */
  markFlushed(): void {
    this.#flushed = undefined;
    this.#onFlushed();
  }

  drain(): readonly Window[] {
    const drained = this.#waiting;
    this.#waiting = [];
    this.#expired = undefined;
    this.#cancel();
    return drained;
  }
}
