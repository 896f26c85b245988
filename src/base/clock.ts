import { setTimeout as delay } from 'node:timers/promises';

/** Time, injected, so that tests need not sleep; only the progress has its own timer. Milliseconds since 1970, UTC. */
export interface Clock {
  now(): number;
  /** Resolves after `ms`, at most 24 days; rejects with the signal's reason when it aborts first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Calls back once after `ms` unless cancelled; never keeps the process alive by itself. */
  after(ms: number, callback: () => void): () => void;
}

export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;
const MAX_TIMER_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  async sleep(ms, signal) {
    signal?.throwIfAborted();
    try {
      await delay(Math.min(Math.max(0, ms), MAX_TIMER_MS), undefined, signal ? { signal } : {});
    } catch (error) {
      signal?.throwIfAborted();
      throw error;
    }
  },
  after(ms, callback) {
    const timer = setTimeout(callback, Math.min(Math.max(0, ms), MAX_TIMER_MS));
    timer.unref();
    return () => clearTimeout(timer);
  },
};

/** Resolves once I/O that is ready was handled. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** An instant in UTC to the second: `2026-01-02 03:04:05`. */
export const formatSecond = (instant: string): string => instant.slice(0, 19).replace('T', ' ');

/** The same to the minute. */
export const formatMinute = (instant: string): string => instant.slice(0, 16).replace('T', ' ');
