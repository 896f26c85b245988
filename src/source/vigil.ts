import type { Clock } from '../base/clock.ts';

/** Silence is broken so often: well within the hours after which a platform takes a source for dead. */
const BEAT_MS = 10 * 60_000;

/** What is said while nothing comes. */
export interface Voice {
  /** The limit is spent until `until` (ms): said when the wait begins, and again at every beat. */
  limited(until: number): void;
  /** Records may flow again. */
  resumed(): void;
  /** Nothing has come for a beat, for whatever reason. */
  alive(): void;
}

/** Keeps a run from being silent while it waits for the next window. Says nothing while records are written. */
export class Vigil {
  readonly #clock: Clock;
  readonly #voice: Voice;
  #until: number | undefined;
  #isIdle = false;
  #isLimited = false;
  #cancel: (() => void) | undefined;

  constructor(clock: Clock, voice: Voice) {
    this.#clock = clock;
    this.#voice = voice;
  }

  /** Told by the quota when a wait begins, and with undefined when it is over. */
  readonly waiting = (until: number | undefined): void => {
    this.#until = until;
    if (!this.#isIdle) return;
    if (until !== undefined) this.#limited(until);
    else this.#resumed();
  };

  /** Watches over one wait for a window. */
  async over<T>(work: Promise<T>): Promise<T> {
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
      if (this.#until === undefined) this.#voice.alive();
      else this.#limited(this.#until);
      this.#schedule();
    });
  }

  #limited(until: number): void {
    this.#isLimited = true;
    this.#voice.limited(until);
  }

  #resumed(): void {
    if (this.#isLimited) this.#voice.resumed();
    this.#isLimited = false;
  }
}
