import type { Clock } from '../../base/clock.ts';

/** Much shorter than the hours without a message after which a platform stops a source. */
const BEAT_MS = 10 * 60_000;

/** Signs of life while `during` waits for work, and none between two of its calls. */
export class Heartbeat {
  readonly #clock: Clock;
  readonly #sign: (until: number | undefined) => void;
  /** End of the wait for the service (ms since 1970); undefined if there is none. */
  #until: number | undefined;
  /** The end that the last sign told. */
  #told: number | undefined;
  #isIdle = false;
  #cancel = () => {};

  /** `sign` gets the end of a wait for the service, or undefined. */
  constructor(clock: Clock, sign: (until: number | undefined) => void) {
    this.#clock = clock;
    this.#sign = sign;
  }

  /** Called with the end of a wait for the service, and with undefined when it is over. */
  readonly waiting = (until: number | undefined): void => {
    this.#until = until;
    if (this.#isIdle) this.#beat(until);
  };

  /** Beats until `work` has settled. */
  async during<T>(work: Promise<T>): Promise<T> {
    this.#isIdle = true;
    if (this.#until !== undefined) this.#beat(this.#until);
    this.#schedule();
    try {
      return await work;
    } finally {
      this.#isIdle = false;
      this.#cancel();
      if (this.#told !== undefined) this.#beat(undefined);
    }
  }

  #schedule(): void {
    this.#cancel = this.#clock.after(BEAT_MS, () => {
      this.#beat(this.#until);
      this.#schedule();
    });
  }

  #beat(until: number | undefined): void {
    this.#told = until;
    this.#sign(until);
  }
}
