import { tmpdir } from 'node:os';
import type { Argv } from 'yargs';
import type { Env } from '../base/env.ts';
import { defect } from '../base/errors.ts';
import type { PlaceOptions, Target } from '../sinks/target.ts';
import { durationOption, jsonOption, type Options, text } from './command.ts';
import type { Context } from './context.ts';

const DEFAULT_WAIT = '30s';

/** The options of commands that work on a target without calling the service. */
export function maintenanceOptions(yargs: Argv): Argv {
  return yargs
    .option('lock-wait', { type: 'string', default: DEFAULT_WAIT, describe: 'How long to wait for a target in use' })
    .option('spool-dir', {
      type: 'string',
      describe: 'Spool folder; default DFINERY_SPOOL_DIR, else the temporary folder of the system',
    })
    .option('json', jsonOption('The result'));
}

/** The same, after the place of a target: `verify duckdb <file>`. */
export const placeArgument =
  ({ place }: Target) =>
  (yargs: Argv): Argv =>
    maintenanceOptions(yargs.positional(place.name, { type: 'string', demandOption: true }));

export const placeOf = ({ place }: Target, options: Options): string => text(options, place.name) ?? '';

/** What a target does for a command: a target that the command is listed for supports it. */
export function supported<T>(operation: T | undefined): T {
  if (operation === undefined) throw defect('The command is listed for a target that does not support it.');
  return operation;
}

const spoolDirOption = (options: Options, env: Env): string =>
  text(options, 'spoolDir') || env('DFINERY_SPOOL_DIR') || tmpdir();

/** ms. */
export const lockWait = (options: Options): number => durationOption('lock-wait', options.lockWait) ?? 0;

/** The options of such a command for a target. */
export function placeOptions(options: Options, { clock, logger, signal, env }: Context): PlaceOptions {
  return { lockWaitMs: lockWait(options), spoolDir: spoolDirOption(options, env), env, clock, logger, signal };
}
