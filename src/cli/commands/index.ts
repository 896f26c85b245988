// This folder: one file a command, with its options and what it does.

import type { Command } from '../command.ts';

interface Entry {
  /** What follows the name: `TARGET PLACE`. */
  readonly words: string;
  readonly summary: string;
  load(): Promise<{ readonly command: Command }>;
}

/** Every command by its name, in the order of help. Its file is loaded when it is chosen. */
export const COMMANDS: Readonly<Record<string, Entry>> = {
  demo: {
    words: '[FILE]',
    summary: 'Load an embedded service into a DuckDB file and show what is in it; no account needed',
    load: () => import('./demo.ts'),
  },
  init: {
    words: '',
    summary: 'Ask for address, service and token, try them, and write dfinery.json without secrets',
    load: () => import('./init.ts'),
  },
  sync: { words: 'TARGET PLACE', summary: 'Load the days that a place lacks', load: () => import('./sync.ts') },
  status: {
    words: 'TARGET PLACE',
    summary: 'Show days, cursor, gaps and last run of a place',
    load: () => import('./status.ts'),
  },
  plan: {
    words: '[TARGET PLACE]',
    summary: 'Show the days, exports and time of the next sync, before any call',
    load: () => import('./plan.ts'),
  },
  check: {
    words: '',
    summary: 'Try the configuration with one smallest export',
    load: () => import('./check.ts'),
  },
  discover: {
    words: '',
    summary: 'Print the typed schema of the export, for --schema; costs two exports',
    load: () => import('./discover.ts'),
  },
  inspect: {
    words: 'FILE',
    summary: 'Show columns, types and misfits of an export at hand (CSV); no network',
    load: () => import('./inspect.ts'),
  },
  verify: {
    words: 'TARGET PLACE',
    summary: 'Compare a place with the receipts of what was loaded; exit 1 where they differ',
    load: () => import('./verify.ts'),
  },
  compact: {
    words: 'duckdb FILE',
    summary: 'Give back the room that old rows take in a DuckDB file',
    load: () => import('./compact.ts'),
  },
  report: {
    words: 'TARGET PLACE',
    summary: 'Write a page about a place: days, events, columns, runs',
    load: () => import('./report.ts'),
  },
  prune: {
    words: 'TARGET PLACE',
    summary: 'Remove old days from a place, after a plan',
    load: () => import('./prune.ts'),
  },
  models: {
    words: 'duckdb FILE',
    summary: 'Make ready views in the schema analytics of a DuckDB file',
    load: () => import('./models.ts'),
  },
  forget: {
    words: '',
    summary: 'Erase people at the service and in places, after a plan; prove it',
    load: () => import('./forget.ts'),
  },
  person: { words: '', summary: 'Print every row about people', load: () => import('./person.ts') },
  simulate: {
    words: '',
    summary: 'Run the embedded service on loopback: both operations, with limits',
    load: () => import('./simulate.ts'),
  },
};
