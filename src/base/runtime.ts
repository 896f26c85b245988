// This folder: what several folders use. It sends nothing, and reads no file but that of a secret.
//
//   failures         errors.ts (`UserError`, exit codes), retry.ts, abort.ts
//   the process      this file (what work needs of it), clock.ts, env.ts, log.ts, process.ts, output-queue.ts, version.ts
//   secrets          secrets.ts, hash-key.ts
//   values as text   days.ts, quantities.ts, address.ts, placeholder.ts, json.ts, validator.ts, text.ts, sql.ts
//   bytes and lists  ascii.ts, byte-buffer.ts, lines.ts, group.ts

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
