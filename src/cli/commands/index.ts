// This folder: the declaration of each command: usage, options, and where its handler is. Loaded at every start, so
// without the code that does the work.

import { TARGETS } from '../../sinks/targets.ts';
import type { Command } from '../command.ts';
import { check } from './check.ts';
import { compactCommands } from './compact.ts';
import { demo } from './demo.ts';
import { discover } from './discover.ts';
import { forget } from './forget.ts';
import { init } from './init.ts';
import { inspect } from './inspect.ts';
import { models } from './models.ts';
import { plan } from './plan.ts';
import { reportCommands } from './report.ts';
import { simulate } from './simulate.ts';
import { syncCommand } from './sync.ts';
import { verifyCommands } from './verify.ts';

/** In the order in which help lists them. */
export const COMMANDS: readonly Command[] = [
  demo,
  init,
  ...TARGETS.map(syncCommand),
  plan,
  check,
  discover,
  inspect,
  ...TARGETS.flatMap(verifyCommands),
  ...TARGETS.flatMap(compactCommands),
  ...TARGETS.flatMap(reportCommands),
  models,
  forget,
  simulate,
];
