import type { Random } from '../../base/random.ts';

/** How often one id is requested, and the pauses between. A repeated deletion is harmless. */
export const RETRY = {
  attempts: 6,
  /** For an answer of unknown meaning, which is unlikely to change. */
  unclearAttempts: 2,
  firstMs: 500,
  longestMs: 30_000,
} as const;

/** A pause after the attempt of that number (from 1), with full jitter. */
export function pauseAfter(attempt: number, random: Random): number {
  return random() * Math.min(RETRY.longestMs, RETRY.firstMs * 2 ** (attempt - 1));
}
