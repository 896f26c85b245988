import type { Clock } from '../../base/clock.ts';

/** Much shorter than the hours without a message after which a platform stops a source. */
const BEAT_MS = 10 * 60_000;

/**
 * Signs of life while `beatWhile` waits for work. Between two of its calls records are written: a state that came among
 * those of a day would count them wrong.
 */
export class Heartbeat {
  readonly #clock: Clock;
  readonly #onBeat: (waitingUntil: number | undefined) => void;
  #waitingUntil: number | undefined;
  /** Cancels the next beat; undefined between two calls of `beatWhile`. */
  #cancelBeat: (() => void) | undefined;

  /** `onBeat` gets the end of a wait for the service (ms since 1970), or undefined. */
  constructor(clock: Clock, onBeat: (waitingUntil: number | undefined) => void) {
    this.#clock = clock;
    this.#onBeat = onBeat;
  }

  /** Called with the end of a wait for the service, and with undefined when it is over. */
  readonly setWaitingUntil = (waitingUntil: number | undefined): void => {
    this.#waitingUntil = waitingUntil;
    if (this.#cancelBeat !== undefined) this.#onBeat(waitingUntil);
  };

  /** Beats until `work` has settled. First it tells a wait that has begun before, last it takes back one that goes on. */
  async beatWhile<T>(work: Promise<T>): Promise<T> {
    if (this.#waitingUntil !== undefined) this.#onBeat(this.#waitingUntil);
    this.#schedule();
    try {
      return await work;
    } finally {
      this.#cancelBeat?.();
      this.#cancelBeat = undefined;
      if (this.#waitingUntil !== undefined) this.#onBeat(undefined);
    }
  }

  #schedule(): void {
    this.#cancelBeat = this.#clock.after(BEAT_MS, () => {
      this.#onBeat(this.#waitingUntil);
      this.#schedule();
    });
  }
}
