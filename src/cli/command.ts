import { tmpdir } from 'node:os';
import type { Argv } from 'yargs';
import { type Day, isDay } from '../base/days.ts';
import { parseDuration } from '../base/durations.ts';
import { configError, type ExitCode } from '../base/errors.ts';
import type { PlaceOptions, Target } from '../sinks/target.ts';
import type { Context, GlobalOptions } from './context.ts';
import type { WantedDays } from './sync/sync.ts';

/** Option values as yargs parsed them, under the names a command declared. */
export type Options = Readonly<Record<string, unknown>> & GlobalOptions;

/** One command, in a file of its own: its options, and what it does with them. */
export interface Command {
  options(yargs: Argv): Argv;
  /** True when it refuses unknown environment variables itself, since it reports every failure to scripts; else that is done before it. */
  readonly refusesUnknownNames?: true;
  /** Throws UserError. */
  run(options: Options, context: Context): Promise<ExitCode>;
}

/** A line of the list of commands: the text of help, and how to load its file once it was chosen. */
export interface CommandEntry {
  /** yargs' own notation: `sync duckdb <file>`. */
  readonly usage: string;
  readonly summary: string;
  load(): Promise<Command>;
}

/**
 * An option that was given once, as text; given twice is refused by the parser. Throws a UserError for an empty one: a
 * variable of a script that was never set would otherwise mean the default.
 */
export const text = (options: Options, name: string): string | undefined => {
  const value = options[name];
  if (value === '')
    throw configError(`The value of ${shownOption(name).slice(2)} is empty: give one, or leave it out.`);
  return typeof value === 'string' ? value : undefined;
};

/** An empty variable of a script must not quietly leave out a check, a list or a purge: throws a UserError. */
export function refuseEmpty(options: Options): void {
  for (const [name, value] of Object.entries(options)) {
    if (name.includes('-') || (Array.isArray(value) ? !value.includes('') : value !== '')) continue;
    throw configError(`${shownOption(name)} is empty.`);
  }
}

/** An option as it is written on the command line; `name`: as the parser calls it. */
export const shownOption = (name: string): string =>
  `--${name.replace(/[A-Z]/g, (capital) => `-${capital.toLowerCase()}`)}`;

export const flag = (options: Options, name: string): boolean => options[name] === true;

/** A day given on the command line, or undefined. An empty text is no day: perhaps a variable that was never set. */
export function dayOption(name: string, value: unknown): Day | undefined {
  if (value === undefined) return undefined;
  if (typeof value === 'string' && isDay(value)) return value;
  throw configError(`--${name} is ${JSON.stringify(value)}, wanted a day of the calendar as yyyy-MM-dd.`);
}

/** The options for the days of a run; the same for its plan. */
export const dayOptions = (yargs: Argv): Argv =>
  yargs
    .option('from', { type: 'string', describe: 'First day, yyyy-MM-dd; with it exactly the days requested are read' })
    .option('to', { type: 'string', describe: 'Last day, included' })
    .option('full-refresh', {
      type: 'boolean',
      default: false,
      describe: 'Read every day again and merge; nothing is emptied',
    });

export const wantedDays = (options: Options): WantedDays => ({
  from: dayOption('from', options.from),
  to: dayOption('to', options.to),
  fullRefresh: flag(options, 'fullRefresh'),
});

/** A length of time given on the command line, in ms, or undefined. */
export function durationOption(name: string, value: unknown): number | undefined {
  if (value === undefined) return undefined;
  const ms = typeof value === 'string' ? parseDuration(value) : undefined;
  if (ms !== undefined) return ms;
  throw configError(`--${name} is ${JSON.stringify(value)}, wanted a time such as 30s, 20m or 1h.`);
}

/** `--config` of the commands that read a source configuration. */
export const CONFIG_OPTION = {
  type: 'string',
  describe: 'Source configuration (JSON); default dfinery.json',
} as const;

/** `--json`, with what is printed: `The plan`. */
export const jsonOption = (what: string) =>
  ({ type: 'boolean', default: false, describe: `${what} as one JSON object on stdout` }) as const;

/** Prints the result of a command: with `--json` one JSON object, else lines for people. */
export function printResult(json: object, lines: readonly string[], options: Options, { terminal }: Context): void {
  for (const line of flag(options, 'json') ? [JSON.stringify(json)] : lines) terminal.result(line);
}

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

/** ms. */
export const lockWait = (options: Options): number => durationOption('lock-wait', options.lockWait) ?? 0;

/** What such a command gives a target. */
export function placeOptions(options: Options, { clock, logger, signal, env }: Context): PlaceOptions {
  const spoolDir = text(options, 'spoolDir') || env('DFINERY_SPOOL_DIR') || tmpdir();
  return { lockWaitMs: lockWait(options), spoolDir, env, clock, logger, signal };
}

/** The same options, after the place of a target: `verify duckdb <file>`. */
export const placeArgument =
  ({ place }: Target) =>
  (yargs: Argv): Argv =>
    maintenanceOptions(yargs.positional(place.name, { type: 'string', demandOption: true }));

export const placeOf = ({ place }: Target, options: Options): string => text(options, place.name) ?? '';
