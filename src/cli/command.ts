import { tmpdir } from 'node:os';
import { isDay } from '../base/days.ts';
import { parseDuration } from '../base/durations.ts';
import { configError, type ExitCode } from '../base/errors.ts';
import type { PlaceOptions } from '../targets/place-options.ts';
import type { Target } from '../targets/target.ts';
import type { Context } from './context.ts';
import type { Failure } from './failure.ts';

export interface Command<O extends OptionTable = OptionTable> {
  /** `verify duckdb <file>`. */
  readonly usage: string;
  readonly summary: string;
  /** Summary that stands in the list of all commands for all those that begin with the same word. */
  readonly family?: string;
  /** Options by name in camel case: `maxWait` is `--max-wait`. */
  readonly options: O;
  readonly epilogue?: () => string;
  run(values: ValuesOf<O>, context: Context): Promise<ExitCode>;
  /**
   * Reports the failure of a run, or of a command line that was refused, to scripts; after a refusal `values` holds
   * what could be read. The default prints one JSON object if `--json` is given.
   */
  failed?(failure: Failure, values: Partial<ValuesOf<O>>, context: Context): Promise<void>;
}

/** The words of a command: `verify`, `duckdb`. */
export const wordsOf = ({ usage }: Command): string[] => usage.replace(/ [<[].*/, '').split(' ');

/** The command whose name these words begin with. */
export const commandAt = (words: readonly string[], commands: readonly Command[]): Command | undefined =>
  commands.find((one) => wordsOf(one).every((word, i) => word === words[i]));

/** The targets that commands of one verb are for. */
export const targetsOf = (commands: readonly Command[]): string[] => commands.flatMap((one) => wordsOf(one).slice(1));

export type ValuesOf<O extends OptionTable> = {
  readonly [N in keyof O]: NonNullable<O[N]> extends Option<infer T> ? T : never;
};

export const command = <O extends OptionTable>(definition: Command<O>): Command => definition;

export interface Option<T> {
  readonly describe: string;
  /** Number of words that follow its name; 0 for a flag. */
  readonly words: 0 | 1 | 2;
  readonly isList?: boolean;
  /** Its short name, `-o`. */
  readonly short?: string;
  /** The name of a positional argument in messages; absent for an option. */
  readonly argument?: string;
  /** True if it must be given. `fallback` is read where an option with a default is left out. */
  readonly isRequired?: boolean;
  readonly fallback?: string;
  /** Parses the words that were given, none of them empty; throws a UserError, which calls the option `name`. */
  read(words: readonly string[], name: string): T;
}

export type OptionTable = Readonly<Record<string, Option<unknown> | undefined>>;

export const flag = (describe: string): Option<boolean> => ({
  describe,
  words: 0,
  read: ([word]) => word !== undefined && word !== 'false',
});

/** An option of one word, undefined when left out; `parse` returns undefined for a word that is not `wanted`. */
export function wordOption<T>(
  describe: string,
  wanted: string,
  parse: (word: string) => T | undefined,
): Option<T | undefined> {
  return {
    describe,
    words: 1,
    read([word], name) {
      const value = word === undefined ? undefined : parse(word);
      if (word === undefined || value !== undefined) return value;
      throw configError(`${name} is ${JSON.stringify(word)}, wanted ${wanted}.`);
    },
  };
}

export const text = (describe: string) => wordOption(describe, 'a text', (word) => word);

const day = (describe: string) =>
  wordOption(describe, 'a day of the calendar as yyyy-MM-dd', (word) => (isDay(word) ? word : undefined));

/** A length of time, in ms. */
export const duration = (describe: string) => wordOption(describe, 'a time such as 30s, 20m or 1h', parseDuration);

export const whole = (describe: string, least = 0, most = 999_999_999) =>
  wordOption(describe, `a whole number from ${least} to ${most}`, (word) => {
    const number = /^\d{1,9}$/.test(word) ? Number(word) : -1;
    return number >= least && number <= most ? number : undefined;
  });

export const choice = <T extends string>(describe: string, choices: readonly T[]) =>
  wordOption(`${describe}: ${choices.join(', ')}`, `one of ${choices.join(', ')}`, (word) =>
    choices.find((one) => one === word),
  );

export const texts = (describe: string): Option<readonly string[]> => ({
  describe,
  words: 1,
  isList: true,
  read: (words) => words,
});

/** An option of two words, `TARGET PLACE`, that may be given several times. */
export const places = (describe: string): Option<readonly (readonly [target: string, place: string])[]> => ({
  describe,
  words: 2,
  isList: true,
  read: (words) => words.flatMap((word, i) => (i % 2 === 0 ? [[word, words[i + 1]] as const] : [])),
});

/** How a place of one of these targets is given, such as `duckdb FILE or parquet DIR`; `quote` is put around each. */
export function placeWords(targets: readonly Target[], quote = ''): string {
  const places = targets.map(({ name, place }) => `${quote}${name} ${place.name.toUpperCase()}${quote}`);
  return places.join(' or ');
}

/**
 * The target of a `TARGET PLACE` that was given with an option. The word behind it may be an id, which is not repeated.
 */
export function targetNamed<T extends Target>(option: string, name: string, targets: readonly T[]): T {
  const target = targets.find((one) => one.name === name);
  if (target !== undefined) return target;
  throw configError(`${option} names ${JSON.stringify(name)}, wanted ${placeWords(targets, '"')}.`);
}

/** `fallback` is written as a user would write it. */
export const withDefault = <T>(fallback: string, option: Option<T | undefined>): Option<T> =>
  ({ ...option, fallback }) as Option<T>;

export const required = <T>(option: Option<T | undefined>): Option<T> => ({ ...option, isRequired: true }) as Option<T>;

/** Makes an option a positional argument, the word after the command, which messages call `name`. */
export const argument = <T>(name: string, option: Option<T>): Option<T> => ({ ...option, argument: name });

export const CONFIG_OPTION = text('Source configuration (JSON); default dfinery.json');

/** `--json`; `what` names what it prints: `The plan`. */
export const jsonOption = (what: string) => flag(`${what} as one JSON object on stdout`);

export const DAY_OPTIONS = {
  from: day('First day, yyyy-MM-dd; with it exactly the days requested are read'),
  to: day('Last day, included'),
  fullRefresh: flag('Read every day again and merge; nothing is emptied'),
};

/** The options of commands that work on a target without calling the service. */
export const PLACE_OPTIONS = {
  lockWait: withDefault('30s', duration('How long to wait for a target in use')),
  spoolDir: text('Spool folder; default DFINERY_SPOOL_DIR, else the temporary folder of the system'),
  json: jsonOption('The result'),
};

/** The options of a command whose argument is the place of a target, such as `verify duckdb <file>`. */
export const optionsForPlace = ({ name, place }: Target) => ({
  place: argument(place.name, required(text(`What sync ${name} has loaded`))),
  ...PLACE_OPTIONS,
});

export function placeOptions(
  { lockWait, spoolDir }: Omit<ValuesOf<typeof PLACE_OPTIONS>, 'json'>,
  { clock, logger, signal, env }: Context,
): PlaceOptions {
  const folder = spoolDir ?? (env('DFINERY_SPOOL_DIR') || tmpdir());
  return { lockWaitMs: lockWait, spoolDir: folder, env, clock, logger, signal };
}

/** Prints the result of a command: one JSON object for scripts, else lines for people. */
export function printResult(result: object, lines: readonly string[], json: boolean, { terminal }: Context): void {
  for (const line of json ? [JSON.stringify(result)] : lines) terminal.result(line);
}
