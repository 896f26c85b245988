import { credentialsError, hasCredentials } from '../base/address.ts';
import { isDay } from '../base/days.ts';
import { configError, type ExitCode, type UserError } from '../base/errors.ts';
import { LOG_LEVELS } from '../base/log.ts';
import { parseDuration } from '../base/quantities.ts';
import { nearest } from '../config/nearest.ts';
import type { Target } from '../targets/contract.ts';
import type { Context } from './context.ts';
import type { Failure } from './failure.ts';
import { LOG_FORMATS } from './terminal/terminal.ts';

export interface Command<A extends OptionTable = OptionTable, O extends OptionTable = OptionTable> {
  /** The targets with whose places it works: then TARGET PLACE follow its name, or are left out together. */
  readonly targets?: readonly Target[];
  /** The other words that follow its name, in their order: `file` is FILE. */
  readonly arguments?: A;
  /** Options by name in camel case: `maxWait` is `--max-wait`. */
  readonly options?: O;
  /** Two command lines for its help, without the program's name. */
  readonly examples: readonly [string, string];
  /** The page to read, in `docs/`. */
  readonly docsPage: string;
  /** A method: TypeScript takes a command with options of its own for a `Command` then, and not if it were a property. */
  run(values: OptionValues<A & O & typeof GLOBAL_OPTIONS> & PlaceWords, context: Context): Promise<CommandResult>;
}

/** TARGET PLACE as they were written, a name and an address. Without them the configuration names a place. */
export interface PlaceWords {
  readonly target?: string | undefined;
  readonly place?: string | undefined;
}

/** What a command found: one JSON object for scripts, lines for people. */
export interface CommandResult {
  readonly result: object;
  readonly lines: readonly string[];
  /** What ended it early. It is logged, gives the exit code, and is told in `result`. */
  readonly failure?: Failure | undefined;
  /** True if stdout got binary data, which nothing may follow: then the result goes to stderr. */
  readonly isStdoutTaken?: boolean;
  /** Default: done. */
  readonly exitCode?: ExitCode;
}

export const defineCommand = <A extends OptionTable = NoOptions, O extends OptionTable = NoOptions>(
  definition: Command<A, O>,
): Command => definition;

type NoOptions = Readonly<Record<never, never>>;
export type OptionTable = Readonly<Record<string, Option<unknown>>>;
export type OptionValues<O extends OptionTable> = { readonly [N in keyof O]: O[N] extends Option<infer T> ? T : never };

/** An option, or an argument. */
export interface Option<T> {
  readonly description: string;
  /** Number of words that follow its name each time: 0 for a flag. An option of pairs may be there several times. */
  readonly wordCount: 0 | 1 | 2;
  /** Its short name: `o` for `-o`. */
  readonly short?: string;
  /** The heading in the help below which it stands. */
  readonly heading?: string;
  /** Parses its words, none of them empty, or no word. Throws a UserError, which calls the option `name`. */
  parse(words: readonly string[], name: string): T;
}

export const kebabCase = (key: string): string => key.replace(/\B[A-Z]/g, (capital) => `-${capital.toLowerCase()}`);

/** The name of an option on the command line and in messages: `--max-wait` for `maxWait`. */
export const optionName = (key: string): string => `--${kebabCase(key)}`;

/** The sentence for a name that is unknown. It shows the name only if a known one is near: it may be a secret. */
export function unknownNameError(noun: string, name: string, names: readonly string[]): UserError {
  const near = hasCredentials(name) ? undefined : nearest(name, names);
  if (near === undefined) return configError(`there is no such ${noun}: wanted ${names.join(', ')}.`);
  return configError(`there is no ${noun} ${JSON.stringify(name)}: did you mean ${near}?`);
}

export const flagOption = (description: string): Option<boolean> => ({
  description,
  wordCount: 0,
  parse: ([word]) => word === 'true',
});

/** An option of one word, undefined when left out; `parseWord` returns undefined for a word that is not the `form`. */
export function wordOption<T>(
  description: string,
  form: string,
  parseWord: (word: string) => T | undefined,
): Option<T | undefined> {
  return {
    description,
    wordCount: 1,
    parse([word], name) {
      const value = word === undefined ? undefined : parseWord(word);
      if (word === undefined || value !== undefined) return value;
      // The word may be a secret that stands in the wrong place.
      throw configError(`${name} is not usable: wanted ${form}.`);
    },
  };
}

export const textOption = (description: string) => wordOption(description, 'a text', (word) => word);

/** A path, or an address without credentials: messages, logs and notifications repeat it. */
export const pathOption = (description: string): Option<string | undefined> => ({
  ...textOption(description),
  parse([path], name) {
    if (hasCredentials(path)) throw credentialsError(name);
    return path;
  },
});

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

/** Parses `defaultWord`, written as a user would, where the option is left out. */
export const withDefault = <T>(defaultWord: string, option: Option<T | undefined>): Option<T> => ({
  ...option,
  description: `${option.description} [${defaultWord}]`,
  parse: (words, name) => option.parse(words.length === 0 ? [defaultWord] : words, name) as T,
});

export const required = <T>(option: Option<T | undefined>): Option<T> => ({
  ...option,
  description: `${option.description} [required]`,
  parse(words, name) {
    if (words.length === 0) throw configError(`${name} is missing.`);
    return option.parse(words, name) as T;
  },
});

export const underHeading = <O extends OptionTable>(heading: string, options: O): O =>
  Object.fromEntries(Object.entries(options).map(([key, option]) => [key, { ...option, heading }])) as O;

export const DAY_OPTIONS = {
  from: dayOption('First day, yyyy-MM-dd; with it exactly the days named are read'),
  to: dayOption('Last day, included'),
  fullRefresh: flagOption('Replace every day that the service still exports'),
};

/** The options of every command. */
export const GLOBAL_OPTIONS = underHeading('Options of all commands', {
  config: pathOption('Configuration file; default dfinery.json'),
  json: flagOption('The result as one JSON object on the last line of stdout'),
  quiet: { ...flagOption('Log errors alone, show no progress'), short: 'q' },
  verbose: { ...flagOption('Log debug lines, too'), short: 'v' },
  logLevel: choiceOption('Least severity of the log', LOG_LEVELS),
  logFormat: withDefault('text', choiceOption('Log lines on stderr', LOG_FORMATS)),
  help: { ...flagOption('Show this help'), short: 'h' },
  version: flagOption('Show the version'),
});
