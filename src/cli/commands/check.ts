import type { Command } from '../command.ts';

export const check: Command = {
  usage: 'check',
  summary: 'One smallest export: is the configuration right, and does the service answer?',
  options: (yargs) =>
    yargs
      .option('config', { type: 'string', describe: 'Source configuration (JSON); default dfinery.json' })
      .option('json', { type: 'boolean', default: false, describe: 'The verdict as one JSON object on stdout' }),
  handler: async () => (await import('../handlers/check.ts')).check,
};
