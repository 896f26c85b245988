import type { Clock } from '../../base/clock.ts';

/** Much shorter than the hours without a message after which a platform stops a source. */
const BEAT_MS = 10 * 60_000;

/** Signs of life while `beatWhile` waits for work, and none between two of its calls. */
export class Heartbeat {
  readonly #clock: Clock;
  readonly #onBeat: (waitEnd: number | undefined) => void;
  /** End of the wait for the service (ms since 1970); undefined if there is none. */
  #waitEnd: number | undefined;
  /** The end that the last sign of life had. */
  #lastWaitEnd: number | undefined;
  #isBeating = false;
  #cancel = () => {};

  /** `onBeat` gets the end of a wait for the service, or undefined. */
  constructor(clock: Clock, onBeat: (waitEnd: number | undefined) => void) {
    this.#clock = clock;
    this.#onBeat = onBeat;
  }

  /** Called with the end of a wait for the service, and with undefined when it is over. */
  readonly setWaitEnd = (waitEnd: number | undefined): void => {
    this.#waitEnd = waitEnd;
    if (this.#isBeating) this.#beat(waitEnd);
  };

  /** Beats until `work` has settled. */
  async beatWhile<T>(work: Promise<T>): Promise<T> {
    this.#isBeating = true;
    if (this.#waitEnd !== undefined) this.#beat(this.#waitEnd);
    this.#schedule();
    try {
      return await work;
    } finally {
      this.#isBeating = false;
      this.#cancel();
      if (this.#lastWaitEnd !== undefined) this.#beat(undefined);
    }
  }

  #schedule(): void {
    this.#cancel = this.#clock.after(BEAT_MS, () => {
      this.#beat(this.#waitEnd);
      this.#schedule();
    });
  }

  #beat(waitEnd: number | undefined): void {
    this.#lastWaitEnd = waitEnd;
    this.#onBeat(waitEnd);
  }
}
