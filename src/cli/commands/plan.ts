import type { Command } from '../command.ts';

export const plan: Command = {
  usage: 'plan',
  summary: 'Windows, exports and time of the next sync, before any call',
  options: (yargs) =>
    yargs
      .option('config', { type: 'string', describe: 'Source configuration (JSON); default dfinery.json' })
      .option('duckdb', { type: 'string', describe: 'DuckDB file to go on from; without it a first run is planned' })
      .option('from', { type: 'string', describe: 'First day, yyyy-MM-dd' })
      .option('to', { type: 'string', describe: 'Last day, included' })
      .option('full-refresh', { type: 'boolean', default: false, describe: 'Every day again' })
      .option('json', { type: 'boolean', default: false, describe: 'The plan as one JSON object' }),
  handler: async () => (await import('../handlers/plan.ts')).plan,
};
