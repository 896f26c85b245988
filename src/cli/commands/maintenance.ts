import type { Argv } from 'yargs';
import type { Options } from '../command.ts';
import { durationOption } from '../context.ts';

const DEFAULT_WAIT = '30s';

/** The options of the commands that look after a target without calling the service. */
export function maintenanceOptions(yargs: Argv): Argv {
  return yargs
    .option('lock-wait', { type: 'string', default: DEFAULT_WAIT, describe: 'How long to wait for a target in use' })
    .option('json', { type: 'boolean', default: false, describe: 'The result as one JSON object on stdout' });
}

/** ms. */
export const lockWait = (options: Options): number => durationOption('lock-wait', options.lockWait) ?? 0;
