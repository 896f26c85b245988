// This folder: one file a command, with its usage, its options and what it does.

import type { Command } from '../command.ts';

/**
 * The file of each command by its first word, in the order of help: loaded when the command is chosen or listed. It
 * imports DuckDB only where the command runs, since the list does not need it.
 */
export const COMMANDS: Readonly<Record<string, () => Promise<{ readonly commands: readonly Command[] }>>> = {
  demo: () => import('./demo.ts'),
  init: () => import('./init.ts'),
  sync: () => import('./sync.ts'),
  plan: () => import('./plan.ts'),
  check: () => import('./check.ts'),
  discover: () => import('./discover.ts'),
  inspect: () => import('./inspect.ts'),
  verify: () => import('./verify.ts'),
  compact: () => import('./compact.ts'),
  report: () => import('./report.ts'),
  models: () => import('./models.ts'),
  forget: () => import('./forget.ts'),
  person: () => import('./person.ts'),
  simulate: () => import('./simulate.ts'),
};
