import type { Clock } from './clock.ts';
import type { Env } from './env.ts';
import type { Logger } from './log.ts';
import type { Random } from './random.ts';

/** What work needs of the process that runs it, or of a test in its place. */
export interface Runtime {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly env: Env;
  readonly signal: AbortSignal;
}
