import { tmpdir } from 'node:os';
import type { Argv } from 'yargs';
import type { Env } from '../base/env.ts';
import type { PlaceOptions } from '../sinks/target.ts';
import { type Options, text } from './command.ts';
import { type Context, durationOption } from './context.ts';

const DEFAULT_WAIT = '30s';

/** The options of commands that work on a target without calling the service. */
export function maintenanceOptions(yargs: Argv): Argv {
  return yargs
    .option('lock-wait', { type: 'string', default: DEFAULT_WAIT, describe: 'How long to wait for a target in use' })
    .option('spool-dir', SPOOL_DIR)
    .option('json', { type: 'boolean', default: false, describe: 'The result as one JSON object on stdout' });
}

/** Where a command without a source configuration keeps copies while it needs them. */
const SPOOL_DIR = {
  type: 'string',
  describe: 'Spool folder; default DFINERY_SPOOL_DIR, else the temporary folder of the system',
} as const;

export const spoolDirOption = (options: Options, env: Env): string =>
  text(options, 'spoolDir') || env('DFINERY_SPOOL_DIR') || tmpdir();

/** ms. */
export const lockWait = (options: Options): number => durationOption('lock-wait', options.lockWait) ?? 0;

/** The options of such a command for a target. */
export function placeOptions(options: Options, { clock, logger, signal, env }: Context): PlaceOptions {
  return { lockWaitMs: lockWait(options), spoolDir: spoolDirOption(options, env), env, clock, logger, signal };
}
