import { onAbort } from '../../src/base/abort.ts';
import { type Clock, nextTurn } from '../../src/base/clock.ts';

/** The instant that tests take for now, unless they say otherwise: 2026-01-20 03:00 UTC, noon in the service's zone. */
export const NOW = Date.UTC(2026, 0, 20, 3);

/** A clock whose timers ring when told to: time passes by `pass` alone. */
export class ManualClock implements Clock {
  time: number;
  /** How long each timer was set for, in order. */
  readonly set: number[] = [];
  readonly #timers = new Map<object, { readonly at: number; readonly ring: () => void }>();

  constructor(time = NOW) {
    this.time = time;
  }

  now = (): number => this.time;

  after(ms: number, ring: () => void): () => void {
    const key = {};
    this.set.push(ms);
    this.#timers.set(key, { at: this.time + ms, ring });
    return () => this.#timers.delete(key);
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const unlink =
        signal &&
        onAbort(signal, () => {
          cancel();
          reject(signal.reason);
        });
      const cancel = this.after(ms, () => {
        unlink?.();
        resolve();
      });
    });
  }

  /** Timers that are set now. */
  get pending(): number {
    return this.#timers.size;
  }

  pass(ms: number): void {
    this.time += ms;
    for (const [key, { at, ring }] of [...this.#timers]) {
      if (at > this.time) continue;
      this.#timers.delete(key);
      ring();
    }
  }

  /** Lets time pass until something happened, a second at a time, with turns of the event loop in between. */
  async passUntil(happened: () => boolean, mostMs: number, stepMs = 1_000): Promise<void> {
    for (let passed = 0; passed <= mostMs && !happened(); passed += stepMs) {
      await settle();
      if (happened()) return;
      this.pass(stepMs);
    }
    await settle();
  }
}

/** A clock on which nobody waits: whoever sleeps moves the time. Sleeps that overlap end at the latest of their ends. */
export class LeapingClock extends ManualClock {
  readonly slept: number[] = [];

  override async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    const end = this.time + ms;
    this.slept.push(ms);
    // Others have their turn, as they have in a real pause.
    await settle(1);
    this.time = Math.max(this.time, end);
    signal?.throwIfAborted();
  }
}

/** Lets whatever is ready happen. */
export async function settle(turns = 12): Promise<void> {
  for (let i = 0; i < turns; i++) await nextTurn();
}
