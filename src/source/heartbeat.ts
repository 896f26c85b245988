import type { Clock } from '../base/clock.ts';

/** Much shorter than the hours without a message after which a platform stops a source. */
const BEAT_MS = 10 * 60_000;

/** Called while the run waits for a window. */
export interface HeartbeatListener {
  /** The limit is spent until `until` (ms since 1970): when the wait begins, and again at every beat. */
  limited(until: number): void;
  /** The wait for the limit is over. */
  resumed(): void;
  /** No window has arrived for one interval, for another reason. */
  alive(): void;
}

/** Regular calls while a run waits for the next window; none while records are written. */
export class Heartbeat {
  readonly #clock: Clock;
  readonly #listener: HeartbeatListener;
  #until: number | undefined;
  #isIdle = false;
  #isLimited = false;
  #cancel: (() => void) | undefined;

  constructor(clock: Clock, listener: HeartbeatListener) {
    this.#clock = clock;
    this.#listener = listener;
  }

  /** Called by the quota with the end of a wait, and with undefined when it is over. */
  readonly waiting = (until: number | undefined): void => {
    this.#until = until;
    if (!this.#isIdle) return;
    if (until !== undefined) this.#limited(until);
    else this.#resumed();
  };

  /** Beats until `work` is settled. */
  async during<T>(work: Promise<T>): Promise<T> {
    this.#isIdle = true;
    if (this.#until !== undefined) this.#limited(this.#until);
    this.#schedule();
    try {
      return await work;
    } finally {
      this.#isIdle = false;
      this.#cancel?.();
      this.#resumed();
    }
  }

  #schedule(): void {
    this.#cancel = this.#clock.after(BEAT_MS, () => {
      if (this.#until === undefined) this.#listener.alive();
      else this.#limited(this.#until);
      this.#schedule();
    });
  }

  #limited(until: number): void {
    this.#isLimited = true;
    this.#listener.limited(until);
  }

  #resumed(): void {
    if (this.#isLimited) this.#listener.resumed();
    this.#isLimited = false;
  }
}
