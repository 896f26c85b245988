import type { Command } from '../command.ts';

const DEFAULT_PORT = '8585';

export const simulate: Command = {
  usage: 'simulate',
  summary: 'The embedded service: both operations over HTTP on loopback, with limits and faults on demand',
  options: (yargs) =>
    yargs
      .option('port', { type: 'string', default: DEFAULT_PORT, describe: 'Port on 127.0.0.1; 0 takes a free one' })
      .option('scenario', { type: 'string', describe: 'JSON file with data, unknowns and faults (docs/simulator.md)' })
      .option('rows-per-day', { type: 'string', describe: 'Events a day, about' }),
  handler: async () => (await import('../handlers/simulate.ts')).simulate,
};
