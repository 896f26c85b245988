import type { Argv } from 'yargs';
import { type Day, isDay } from '../base/days.ts';
import { parseDuration } from '../base/durations.ts';
import { configFailure, type ExitCode } from '../base/errors.ts';
import type { Context, GlobalOptions } from './context.ts';

/** Option values as yargs parsed them, under the names a command declared. */
export type Options = Readonly<Record<string, unknown>> & GlobalOptions;

/** What a command does. Throws Failure. */
export type Handler = (options: Options, context: Context) => Promise<ExitCode>;

/** One command, in a file of its own: its options, and what it does with them. */
export interface Command {
  options(yargs: Argv): Argv;
  /** True when it refuses unknown environment variables itself, since it tells scripts of every failure; else that is done before it. */
  readonly refusesUnknownNames?: true;
  readonly run: Handler;
}

/** A line of the list of commands: what help says of a command, and how to load its file once it was chosen. */
export interface CommandEntry {
  /** yargs' own notation: `sync duckdb <file>`. */
  readonly usage: string;
  readonly summary: string;
  load(): Promise<Command>;
}

/**
 * An option that was given once, as text; given twice is refused by the parser. Throws a Failure for an empty one: a
 * variable of a script that was never set would otherwise mean the default.
 */
export const text = (options: Options, name: string): string | undefined => {
  const value = options[name];
  if (value === '')
    throw configFailure(`The value of ${shownOption(name).slice(2)} is empty: give one, or leave it out.`);
  return typeof value === 'string' ? value : undefined;
};

/** An option as it is written on the command line; `name`: as the parser calls it. */
export const shownOption = (name: string): string =>
  `--${name.replace(/[A-Z]/g, (capital) => `-${capital.toLowerCase()}`)}`;

export const flag = (options: Options, name: string): boolean => options[name] === true;

/** A day given on the command line, or undefined. An empty text is no day: perhaps a variable that was never set. */
export function dayOption(name: string, value: unknown): Day | undefined {
  if (value === undefined) return undefined;
  if (typeof value === 'string' && isDay(value)) return value;
  throw configFailure(`--${name} is ${JSON.stringify(value)}, wanted a day of the calendar as yyyy-MM-dd.`);
}

/** A length of time given on the command line, in ms, or undefined. */
export function durationOption(name: string, value: unknown): number | undefined {
  if (value === undefined) return undefined;
  const ms = typeof value === 'string' ? parseDuration(value) : undefined;
  if (ms !== undefined) return ms;
  throw configFailure(`--${name} is ${JSON.stringify(value)}, wanted a time such as 30s, 20m or 1h.`);
}

/** `--config` of the commands that read a source configuration. */
export const CONFIG_OPTION = {
  type: 'string',
  describe: 'Source configuration (JSON); default dfinery.json',
} as const;

/** `--json`, with what is printed: `The plan`. */
export const jsonOption = (what: string) =>
  ({ type: 'boolean', default: false, describe: `${what} as one JSON object on stdout` }) as const;
