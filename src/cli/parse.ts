import yargs, { type Argv } from 'yargs';
import { configError, UserError } from '../base/errors.ts';
import { configurationHint } from '../config/environment.ts';
import { nearest } from '../config/nearest.ts';
import type { Option, OptionTable, ValuesOf } from './command.ts';

/** What was read of a command line. */
export interface Parsed<V> {
  /** Of a command line with a problem, those that could be read. */
  readonly values: Partial<V>;
  /** The first thing that is wrong with it. */
  readonly problem: UserError | undefined;
}

/** `maxWait` as it is written: `max-wait`. */
const dashed = (key: string): string => key.replace(/[A-Z]/g, (capital) => `-${capital.toLowerCase()}`);

/** `maxWait` as messages write it: `--max-wait`; an argument: `FILE`. */
export const optionName = (key: string, { argument }: Option<unknown>): string =>
  argument?.toUpperCase() ?? `--${dashed(key)}`;

/** A parser that knows these options; it neither prints nor ends the process. */
export function parserOf(table: OptionTable): Argv {
  const parser = yargs().detectLocale(false).exitProcess(false).help(false).version(false);
  for (const [key, option] of Object.entries(table)) {
    if (option === undefined || option.argument !== undefined) continue;
    const { words, short, describe, isRequired, fallback } = option;
    const note = isRequired ? ' [required]' : fallback === undefined ? '' : ` [${fallback}]`;
    const kind = words === 0 ? ({ type: 'boolean' } as const) : ({ type: 'string', nargs: words } as const);
    parser.option(dashed(key), { ...kind, describe: describe + note, ...(short && { alias: short.slice(1) }) });
  }
  return parser;
}

const PARSING = {
  'parse-numbers': false,
  'parse-positional-numbers': false,
  'boolean-negation': false,
  'camel-case-expansion': false,
  'dot-notation': false,
  // A value may begin with a dash; one that looks like an option is refused below.
  'nargs-eats-options': true,
};

/** The words of a command line that are neither options nor, as far as these options are known, their values. */
export function wordsIn(argv: readonly string[], known: OptionTable): string[] {
  const parser = parserOf(known).parserConfiguration({ ...PARSING, 'unknown-options-as-args': true });
  return parsedBy(parser, argv)._.filter((word) => !/^-./.test(word));
}

/** Reads a command line under the options of a command, whose name is its first words. */
export function parseArguments<O extends OptionTable>(
  argv: readonly string[],
  table: O,
  command: readonly string[],
): Parsed<ValuesOf<O>> {
  const problems: UserError[] = [];
  const refuse = (message: string) => void problems.push(configError(message));
  const help = `see ${['dfinery-elt', ...command].join(' ')} --help`;
  const {
    _: words,
    $0: _name,
    ...given
  } = parsedBy(parserOf(table).parserConfiguration(PARSING), argv, (message) => {
    const [, short] = /following: (.+)/.exec(message) ?? [];
    refuse(short === undefined ? `${message}: ${help}.` : `--${short} is empty.`);
  });
  const misplaced = configurationKeyIn(argv, table);
  if (misplaced !== undefined) problems.unshift(misplaced);
  const surplus = words.slice(command.length);
  const values: Record<string, unknown> = {};
  for (const [key, option] of Object.entries(table)) {
    if (option === undefined) continue;
    const { words: count, argument, isList, isRequired, fallback, short } = option;
    const value = argument === undefined ? given[dashed(key)] : surplus.splice(0, 1);
    for (const name of [dashed(key), short?.slice(1)]) if (name !== undefined) delete given[name];
    const texts = value === undefined ? [] : [value].flat().map(String);
    const name = optionName(key, option);
    // Of an option that is given twice the first value is read, and a flag with a value is on: scripts are told of the failure
    // where they asked for it.
    if (isList !== true && timesGiven(argv, [name, short]) > 1) refuse(`${short ?? name} is given more than once.`);
    if (texts.some((text) => text === '' || (text.startsWith('--') && !argv.includes(`${name}=${text}`))))
      refuse(`${name} is empty.`);
    else if (isRequired === true && texts.length === 0) refuse(`${name} is missing: ${help}.`);
    else if (count === 0 && argv.some((word) => word.startsWith(`${name}=`) && !/=(true|false)$/.test(word))) {
      refuse(`${name} takes no value.`);
      values[key] = true;
    } else
      try {
        values[key] = option.read(texts.length === 0 && fallback !== undefined ? [fallback] : texts, name);
      } catch (error) {
        if (!(error instanceof UserError)) throw error;
        problems.push(error);
      }
  }
  // Where a command takes an ID, such a word may be one, which no log may show.
  const tooMany =
    'id' in table
      ? 'there is a word too many (an ID is given with --id)'
      : `${JSON.stringify(surplus[0])} is a word too many`;
  if (surplus.length > 0) refuse(`${tooMany}: ${help}.`);
  const known = dashedNames(table);
  for (const name of Object.keys(given).map((key) => (key.length === 1 ? `-${key}` : `--${key}`))) {
    const near = nearest(name, known, name.length / 3);
    refuse(`there is no option ${name}${near === undefined ? '' : ` (did you mean ${near}?)`}: ${help}.`);
  }
  return { values: values as Partial<ValuesOf<O>>, problem: problems[0] };
}

/**
 * Refuses a configuration key that was written as an option; undefined if there is none. It is told before anything else that is
 * wrong: the word beside it may be a secret, which no message may repeat.
 */
export function configurationKeyIn(argv: readonly string[], table: OptionTable): UserError | undefined {
  for (const name of beforeDashes(argv).map((word) => word.split('=', 1)[0])) {
    if (!name.startsWith('--') || dashedNames(table).includes(name)) continue;
    const hint = configurationHint(name, 'config' in table);
    if (hint !== undefined) return configError(`there is no option ${name}: ${hint}.`);
  }
  return undefined;
}

const dashedNames = (table: OptionTable): string[] =>
  Object.entries(table).flatMap(([key, option]) => (option ? [optionName(key, option)] : []));

interface ParsedWords extends Record<string, unknown> {
  readonly _: string[];
}

function parsedBy(parser: Argv, argv: readonly string[], fail: (message: string) => void = () => {}): ParsedWords {
  // Names that every object has, such as --constructor, end yargs itself.
  const inherited = argv.filter((word) => word.startsWith('--') && word.slice(2).split('=', 1)[0] in Object.prototype);
  for (const word of inherited) fail(`there is no option ${word}`);
  const own = argv.filter((word) => !inherited.includes(word));
  const { _: words, ...rest } = parser.fail((message, error) => fail(message ?? error.message)).parseSync(own);
  return { ...rest, _: words.map(String) };
}

/** How often an option stands on a command line, before a `--`. */
function timesGiven(argv: readonly string[], names: readonly (string | undefined)[]): number {
  return beforeDashes(argv).filter((word) => names.includes(word.split('=', 1)[0])).length;
}

/** The words before a `--`, after which there are no options. */
function beforeDashes(argv: readonly string[]): readonly string[] {
  const end = argv.indexOf('--');
  return end === -1 ? argv : argv.slice(0, end);
}
