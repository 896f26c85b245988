import type { Command } from '../command.ts';

const DEFAULT_FILE = 'dfinery-demo.duckdb';

export const demo: Command = {
  usage: 'demo [file]',
  summary: 'The embedded service into a DuckDB file, and what is then in it; no account needed',
  options: (yargs) =>
    yargs.positional('file', {
      type: 'string',
      default: DEFAULT_FILE,
      describe: 'The DuckDB file; a second run loads only what is new',
    }),
  handler: async () => (await import('../handlers/demo.ts')).demo,
};
