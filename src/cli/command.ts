import { hasCredentials } from '../base/address.ts';
import { isDay } from '../base/days.ts';
import { configError, type ExitCode, type UserError } from '../base/errors.ts';
import { LOG_LEVELS } from '../base/log.ts';
import { parseDuration } from '../base/quantities.ts';
import { nearest } from '../config/nearest.ts';
import type { Target } from '../targets/contract.ts';
import type { Context } from './context.ts';
import { LOG_FORMATS } from './terminal.ts';

export interface Command<O extends OptionTable = OptionTable> {
  /** Options by name in camel case: `maxWait` is `--max-wait`. Arguments are among them, in their order. */
  readonly options: O;
  /** Two command lines for its help, without the program's name. */
  readonly examples: readonly [string, string];
  /** The page to read, in `docs/`. */
  readonly docsPage: string;
  run(values: OptionValues<O & typeof GLOBAL_OPTIONS>, context: Context): Promise<CommandResult>;
}

/** What a command found: one JSON object for scripts, lines for people. */
export interface CommandResult {
  readonly result: object;
  readonly lines: readonly string[];
  /** True if stdout got binary data, which nothing may follow: then the result goes to stderr. */
  readonly isStdoutTaken?: boolean;
  /** Default: done. */
  readonly exit?: ExitCode;
}

export const defineCommand = <O extends OptionTable>(definition: Command<O>): Command => definition;

export type OptionTable = Readonly<Record<string, Option<unknown>>>;
export type OptionValues<O extends OptionTable> = { readonly [N in keyof O]: O[N] extends Option<infer T> ? T : never };

export interface Option<T> {
  readonly description: string;
  /** The heading in the help below which it stands. */
  readonly heading?: string;
  /** Number of words that follow its name: 0 for a flag. Of two words there may be several pairs. */
  readonly wordCount: 0 | 1 | 2;
  /** The targets of which it takes a name: help shows their places, completion their names. */
  readonly targets?: readonly Target[];
  /** Its short name: `o` for `-o`. */
  readonly short?: string;
  /** True for a word after the command, which messages call by its name in capitals. */
  readonly isArgument?: boolean;
  /** True for an argument whose default is a key of the configuration. */
  readonly hasConfigDefault?: boolean;
  /** True for an external id, which may look like an address with a key in it. Such an address is refused elsewhere. */
  readonly isExternalId?: boolean;
  readonly isRequired?: boolean;
  /** The word that is read where it is left out. */
  readonly defaultWord?: string;
  /** Parses the words that were given, none of them empty; throws a UserError, which calls the option `name`. */
  read(words: readonly string[], name: string): T;
}

export const kebabCase = (key: string): string => key.replace(/\B[A-Z]/g, (capital) => `-${capital.toLowerCase()}`);

/** The name of an option in messages: `--max-wait` for `maxWait`, `FILE` for an argument. */
export const optionName = (key: string, { isArgument }: Option<unknown>): string =>
  isArgument === true ? key.toUpperCase() : `--${kebabCase(key)}`;

/** The names of the options that are no arguments. */
export const dashedOptionNames = (table: OptionTable): string[] =>
  Object.entries(table).flatMap(([key, option]) => (option.isArgument ? [] : [optionName(key, option)]));

/** The sentence for a name that is unknown. It shows the name only if a known one is near: it may be a secret. */
export function unknownNameError(what: string, name: string, names: readonly string[]): UserError {
  const near = hasCredentials(name) ? undefined : nearest(name, names);
  if (near === undefined) return configError(`there is no such ${what}: wanted ${names.join(', ')}.`);
  return configError(`there is no ${what} ${JSON.stringify(name)}: did you mean ${near}?`);
}

export const flagOption = (description: string): Option<boolean> => ({
  description,
  wordCount: 0,
  read: ([word]) => word === 'true',
});

/** An option of one word, undefined when left out; `parse` returns undefined for a word that is not the `form`. */
export function wordOption<T>(
  description: string,
  form: string,
  parse: (word: string) => T | undefined,
): Option<T | undefined> {
  return {
    description,
    wordCount: 1,
    read([word], name) {
      const value = word === undefined ? undefined : parse(word);
      if (word === undefined || value !== undefined) return value;
      // The word may be a secret that stands in the wrong place.
      throw configError(`${name} is not usable: wanted ${form}.`);
    },
  };
}

export const textOption = (description: string) => wordOption(description, 'a text', (word) => word);

export const dayOption = (description: string) =>
  wordOption(description, 'a day of the calendar as yyyy-MM-dd', (word) => (isDay(word) ? word : undefined));

/** A length of time, in ms. */
export const durationOption = (description: string) =>
  wordOption(description, 'a time such as 30s, 20m or 1h', parseDuration);

export const numberOption = (description: string, least = 0, most = 999_999_999) =>
  wordOption(description, `a whole number from ${least} to ${most}`, (word) => {
    const number = /^\d{1,9}$/.test(word) ? Number(word) : -1;
    return number >= least && number <= most ? number : undefined;
  });

const choiceOption = <T extends string>(description: string, choices: readonly T[]) =>
  wordOption(`${description}: ${choices.join(', ')}`, `one of ${choices.join(', ')}`, (word) =>
    choices.find((name) => name === word),
  );

/** `defaultWord` is written as a user would write it. */
export const withDefault = <T>(defaultWord: string, option: Option<T | undefined>): Option<T> =>
  ({ ...option, defaultWord }) as Option<T>;

export const required = <T>(option: Option<T | undefined>): Option<T> => ({ ...option, isRequired: true }) as Option<T>;

/** Makes an option an argument, the next word after the command. */
export const argument = <T>(option: Option<T>): Option<T> => ({ ...option, isArgument: true });

export const underHeading = <O extends OptionTable>(heading: string, options: O): O =>
  Object.fromEntries(Object.entries(options).map(([key, option]) => [key, { ...option, heading }])) as O;

export const DAY_OPTIONS = {
  from: dayOption('First day, yyyy-MM-dd; with it exactly the days named are read'),
  to: dayOption('Last day, included'),
  fullRefresh: flagOption('Replace every day that the service still exports'),
};

/** The options of every command. */
export const GLOBAL_OPTIONS = underHeading('Options of all commands', {
  config: textOption('Configuration file; default dfinery.json'),
  json: flagOption('The result as one JSON object on the last line of stdout'),
  quiet: { ...flagOption('Log errors alone, show no progress'), short: 'q' },
  verbose: { ...flagOption('Log debug lines, too'), short: 'v' },
  logLevel: choiceOption('Least severity of the log', LOG_LEVELS),
  logFormat: withDefault('text', choiceOption('Log lines on stderr', LOG_FORMATS)),
  help: { ...flagOption('Show this help'), short: 'h' },
  version: flagOption('Show the version'),
});
