import type { Command } from '../command.ts';

export const inspect: Command = {
  usage: 'inspect <file>',
  summary: 'Groups, types and values of an export already at hand (a CSV file); no network',
  options: (yargs) =>
    yargs
      .positional('file', { type: 'string', demandOption: true, describe: 'The CSV file' })
      .option('schema', {
        type: 'string',
        describe: 'Pinned schema, as discover prints it: tells what would be rescued',
      })
      .option('timezone', { type: 'string', describe: 'IANA zone of the datetimes without one' })
      .option('config', {
        type: 'string',
        describe: 'Configuration (JSON) whose columns_drop and columns_hash are applied; default dfinery.json',
      })
      .option('json', { type: 'boolean', default: false, describe: 'The result as one JSON object on stdout' }),
  handler: async () => (await import('../handlers/inspect.ts')).inspect,
};
