import type { Argv } from 'yargs';
import { configFailure, type ExitCode } from '../base/errors.ts';
import type { Context, GlobalOptions } from './context.ts';

/** Option values as yargs parsed them, under the names a command declared. */
export type Options = Readonly<Record<string, unknown>> & GlobalOptions;

/** What a command does. Throws Failure. */
export type Handler = (options: Options, context: Context) => Promise<ExitCode>;

/** One command of the command line: its usage, its options, and how to load its handler. */
export interface Command {
  /** yargs' own notation: `sync duckdb <file>`. */
  readonly usage: string;
  readonly summary: string;
  options(yargs: Argv): Argv;
  /** True when its handler refuses unknown environment variables, since it tells scripts of every failure; else that is done before it. */
  readonly refusesUnknownNames?: true;
  /** Loads what the command does: only the one that was chosen is loaded. */
  handler(): Promise<Handler>;
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
