import type { Argv } from 'yargs';
import type { ExitCode } from '../base/errors.ts';
import type { Context, GlobalOptions } from './context.ts';

/** Option values as yargs parsed them, under the names a command declared. */
export type Options = Readonly<Record<string, unknown>> & GlobalOptions;

/** One command of the command line: how it is spelled and what it does. */
export interface Command {
  /** yargs' own notation: `sync duckdb <file>`. */
  readonly usage: string;
  readonly summary: string;
  options(yargs: Argv): Argv;
  run(options: Options, context: Context): Promise<ExitCode>;
}

/** An option that was given once, as text; given twice is refused by the parser. */
export const text = (options: Options, name: string): string | undefined => {
  const value = options[name];
  return typeof value === 'string' && value !== '' ? value : undefined;
};

/** An option as it is written on the command line; `name`: as the parser calls it. */
export const shownOption = (name: string): string =>
  `--${name.replace(/[A-Z]/g, (capital) => `-${capital.toLowerCase()}`)}`;

export const flag = (options: Options, name: string): boolean => options[name] === true;
