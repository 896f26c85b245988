import type { Argv } from 'yargs';
import { TARGETS } from '../../sinks/targets.ts';
import type { Command } from '../command.ts';

export const plan: Command = {
  usage: 'plan',
  summary: 'Windows, exports and time of the next sync, before any call',
  options: (yargs) =>
    startingPlaces(yargs)
      .option('config', { type: 'string', describe: 'Source configuration (JSON); default dfinery.json' })
      .option('from', { type: 'string', describe: 'First day, yyyy-MM-dd' })
      .option('to', { type: 'string', describe: 'Last day, included' })
      .option('full-refresh', { type: 'boolean', default: false, describe: 'Every day again' })
      .option('json', { type: 'boolean', default: false, describe: 'The plan as one JSON object' }),
  handler: async () => (await import('../handlers/plan.ts')).plan,
};

/** An option for each target that stores state, by its name. */
function startingPlaces(yargs: Argv): Argv {
  return TARGETS.filter(({ readPriorLoads }) => readPriorLoads !== undefined).reduce(
    (all, { name, place }) =>
      all.option(name, {
        type: 'string',
        describe: `${place.name.toUpperCase()} of sync ${name} to go on from; without one a first run is planned`,
      }),
    yargs,
  );
}
