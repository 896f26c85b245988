import type { Clock } from './clock.ts';
import type { Env } from './env.ts';
import type { Logger } from './log.ts';

/** Uniform in [0, 1): injected, so that jitter is repeatable in tests. */
export type Random = () => number;

export const systemRandom: Random = () => Math.random();

/** What work needs of the process that runs it, or of a test in its place. */
export interface Runtime {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly signal: AbortSignal;
  readonly env: Env;
}
