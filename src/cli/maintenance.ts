import { tmpdir } from 'node:os';
import type { Argv } from 'yargs';
import type { PlaceOptions } from '../sinks/target.ts';
import type { Options } from './command.ts';
import { type Context, durationOption } from './context.ts';

const DEFAULT_WAIT = '30s';

/** The options of the commands that look after a target without calling the service. */
export function maintenanceOptions(yargs: Argv): Argv {
  return yargs
    .option('lock-wait', { type: 'string', default: DEFAULT_WAIT, describe: 'How long to wait for a target in use' })
    .option('json', { type: 'boolean', default: false, describe: 'The result as one JSON object on stdout' });
}

/** ms. */
export const lockWait = (options: Options): number => durationOption('lock-wait', options.lockWait) ?? 0;

/** What such a command tells a target. */
export function placeOptions(options: Options, { clock, logger, signal, env }: Context): PlaceOptions {
  return { lockWaitMs: lockWait(options), spoolDir: tmpdir(), env, clock, logger, signal };
}
