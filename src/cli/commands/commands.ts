// This folder: one file a command, with its options and what it does.

import type { Command } from '../command.ts';

/** `usage` follows the name: `[TARGET PLACE]`. The file of a command is loaded when it is chosen. */
const entry = (usage: string, summary: string, load: () => Promise<{ command: Command }>) => ({ usage, summary, load });

/** Every command by its name, in the order of help. */
export const COMMANDS: Readonly<Record<string, ReturnType<typeof entry>>> = {
  demo: entry('[FILE]', 'Load and show an embedded service; no account', () => import('./demo.ts')),
  init: entry('', 'Ask, write dfinery.json, try it', () => import('./init.ts')),
  sync: entry('[TARGET PLACE]', 'Load the days that a place lacks', () => import('./sync.ts')),
  load: entry('[TARGET PLACE] FILE', 'Load a day from a CSV file', () => import('./load.ts')),
  status: entry('[TARGET PLACE]', 'Show days, cursor, gaps and last run', () => import('./status.ts')),
  plan: entry('[TARGET PLACE]', 'Show days and exports of the next sync', () => import('./plan.ts')),
  check: entry('', 'Try the configuration; costs one export or two', () => import('./check.ts')),
  discover: entry('', 'Print the typed schema; costs two exports', () => import('./discover.ts')),
  inspect: entry('FILE', 'Show columns and types of a CSV', () => import('./inspect.ts')),
  verify: entry('[TARGET PLACE]', 'Compare a place with its receipts', () => import('./verify.ts')),
  compact: entry('[duckdb FILE]', 'Give back the space of removed rows', () => import('./compact.ts')),
  report: entry('[TARGET PLACE]', 'Write a page: days, events, columns, runs', () => import('./report.ts')),
  prune: entry('[TARGET PLACE]', 'Remove old days from a place, after a plan', () => import('./prune.ts')),
  models: entry('[duckdb FILE]', 'Make ready views in the schema analytics', () => import('./models.ts')),
  forget: entry('', 'Erase people, after a plan, and prove it', () => import('./forget.ts')),
  person: entry('', 'Print every row about people', () => import('./person.ts')),
  simulate: entry('', 'Run the embedded service on loopback', () => import('./simulate.ts')),
};
