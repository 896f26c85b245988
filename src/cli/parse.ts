import { configError, UserError } from '../base/errors.ts';
import { configurationHint } from '../config/environment.ts';
import { nearest } from '../config/nearest.ts';
import type { Option, OptionTable, ValuesOf } from './command.ts';

interface ParsedOptions<V> {
  /** The values; if the command line has a problem, those that could be read. */
  readonly values: Partial<V>;
  readonly problem: UserError | undefined;
}

/** The name of an option in messages: `--max-wait` for `maxWait`, `FILE` for an argument. */
export const optionName = (key: string, { argument }: Option<unknown>): string =>
  argument?.toUpperCase() ?? `--${key.replace(/[A-Z]/g, (capital) => `-${capital.toLowerCase()}`)}`;

/** An option as a command line has it. */
interface GivenOption {
  /** The name as it was written: `-o` or `--output`. */
  readonly name: string;
  /** Its key in the table; undefined for an unknown option. */
  readonly key?: string | undefined;
  /**
   * The words of its value, fewer than it needs where the next option follows too soon. A flag has `true` or `false`.
   */
  readonly value: readonly string[];
  /** True if it lacks a word of its value; a flag needs none. */
  readonly isEmpty: boolean;
}

/** `--name`, `--name=value`, `-n`, `-n=value` and `-nvalue`. */
const OPTION = /^(--[^=]*|-[^-])(?:=(.*)|(.+))?$/s;
/**
 * The next words that belong to an option of one word or two, and to a flag. A value may begin with one dash, and with
 * two before a blank, as a comment of SQL does.
 */
const VALUE = /^(?!--(?!\s))/;
const TRUTH = /^(true|false)$/;

/** Divides a command line into the options, with their values where the table has them, and all other words. */
export function divide(argv: readonly string[], table: OptionTable) {
  const words: string[] = [];
  const options: GivenOption[] = [];
  const rest = [...argv];
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    const [, name, afterSign, afterLetter] = OPTION.exec(word) ?? [];
    if (word === '--') words.push(...rest.splice(0));
    else if (name === undefined) words.push(word);
    else {
      const [key, option] = optionAt(name, table);
      const count = option?.words ?? 0;
      const value = [afterSign ?? afterLetter ?? []].flat();
      const isValue = (next = '--') => (count === 0 ? TRUTH : VALUE).test(next);
      while (value.length < Math.max(1, count) && isValue(rest[0])) value.push(...rest.splice(0, 1));
      const isEmpty = count > 0 && (value.length < count || value.includes(''));
      options.push({ name, key, value: count === 0 && value.length === 0 ? ['true'] : value, isEmpty });
    }
  }
  return { words, options };
}

function optionAt(name: string, table: OptionTable): readonly [string, Option<unknown>] | readonly [] {
  for (const [key, option] of Object.entries(table)) {
    if (option === undefined || option.argument !== undefined) continue;
    if (name === option.short || name === optionName(key, option)) return [key, option];
  }
  return [];
}

/** Reads a command line under the options of a command, whose name is its first words. */
export function parseCommandLine<O extends OptionTable>(
  argv: readonly string[],
  table: O,
  command: readonly string[],
): ParsedOptions<ValuesOf<O>> {
  const help = `see ${['dfinery-elt', ...command].join(' ')} --help`;
  const { words, options } = divide(argv, table);
  const surplus = words.slice(command.length);
  const values: Record<string, unknown> = {};
  const problems = [configurationKeyIn(options, table), unknownOption(options, table, help)];
  for (const [key, option] of Object.entries(table)) {
    if (option === undefined) continue;
    const { argument, isList, fallback } = option;
    const name = optionName(key, option);
    const given =
      argument === undefined
        ? options.filter((one) => one.key === key)
        : surplus.splice(0, 1).map((word) => ({ name, value: [word], isEmpty: word === '' }));
    problems.push(problemOf(given, name, option, help));
    // Of an option that is given twice the first value is read: `--json` and `--xcom` must take effect, so that scripts
    // are told of the failure.
    const texts = (isList === true ? given : given.slice(0, 1)).filter(({ isEmpty }) => !isEmpty);
    const read = texts.length === 0 && fallback !== undefined ? [fallback] : texts.flatMap(({ value }) => value);
    try {
      values[key] = option.read(read, name);
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      problems.push(error);
    }
  }
  // Where a command takes an id, the surplus word may be one, so that no log may show it.
  const tooMany =
    'id' in table
      ? 'there is a word too many (an ID is given with --id)'
      : `${JSON.stringify(surplus[0])} is a word too many`;
  if (surplus.length > 0) problems.push(configError(`${tooMany}: ${help}.`));
  return { values: values as Partial<ValuesOf<O>>, problem: problems.find((problem) => problem !== undefined) };
}

/**
 * The failure of the first option that the table does not have, with the one that was probably meant. What follows an
 * option without a value is left out: it may be that value, such as an id, which no message may repeat.
 */
function unknownOption(options: readonly GivenOption[], table: OptionTable, help: string): UserError | undefined {
  const unknown = options.find(({ key }, i) => key === undefined && options[i - 1]?.isEmpty !== true);
  if (unknown === undefined) return undefined;
  const { name } = unknown;
  const known = Object.entries(table).flatMap(([key, option]) => (option ? [optionName(key, option)] : []));
  const near = nearest(name, known, name.length / 3);
  return configError(`there is no option ${name}${near === undefined ? '' : ` (did you mean ${near}?)`}: ${help}.`);
}

/**
 * The failure of an unknown option right before a word that is no command or no target. The word is perhaps its value,
 * such as a secret, which no message may repeat.
 */
export function unknownOptionBefore(
  word: string | undefined,
  argv: readonly string[],
  table: OptionTable,
): UserError | undefined {
  const before = argv.filter((_, i) => argv[i + 1] === word);
  return unknownOption(divide(before, table).options, table, 'see dfinery-elt --help');
}

/** The failure of an option that is given in a wrong way, whatever its value means. */
function problemOf(
  given: readonly GivenOption[],
  name: string,
  option: Option<unknown>,
  help: string,
): UserError | undefined {
  if (given.length > 1 && option.isList !== true) return configError(`${given[0].name} is given more than once.`);
  const empty = given.find(({ isEmpty }) => isEmpty);
  if (empty !== undefined) {
    const isPart = empty.value.some((word) => word !== '');
    return configError(isPart ? `${name} lacks a word: wanted a target and its place.` : `${name} is empty.`);
  }
  if (given.length === 0 && option.isRequired === true) return configError(`${name} is missing: ${help}.`);
  const isTruth = given.every(({ value: [word] }) => TRUTH.test(word));
  return option.words > 0 || isTruth ? undefined : configError(`${name} takes no value.`);
}

/**
 * The failure of a configuration key that was written as an option. It is reported before any other: the next word may
 * be a secret, which no message may repeat.
 */
export function configurationKeyIn(options: readonly GivenOption[], table: OptionTable): UserError | undefined {
  for (const { name, key } of options) {
    if (key !== undefined || !name.startsWith('--')) continue;
    const hint = configurationHint(name, 'config' in table);
    if (hint !== undefined) return configError(`there is no option ${name}: ${hint}.`);
  }
  return undefined;
}
