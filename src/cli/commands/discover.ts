import type { Command } from '../command.ts';

export const discover: Command = {
  usage: 'discover',
  summary: 'The typed schema of the export, as JSON for --schema; costs two exports',
  options: (yargs) =>
    yargs
      .option('config', { type: 'string', describe: 'Source configuration (JSON); default dfinery.json' })
      .option('max-wait', { type: 'string', describe: 'Longest wait for the quota (30s, 20m, 1h)' }),
  handler: async () => (await import('../handlers/discover.ts')).discover,
};
