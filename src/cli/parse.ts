import { configError, UserError } from '../base/errors.ts';
import { nearest } from '../config/nearest.ts';
import type { Option, OptionTable, ValuesOf } from './command.ts';

/** What was read of a command line. */
export interface Parsed<V> {
  /** The words that are neither options nor values of options. */
  readonly words: readonly string[];
  /** Of a command line with a problem, those that could be read. */
  readonly values: Partial<V>;
  /** The first thing that is wrong with it. */
  readonly problem: UserError | undefined;
}

/** `maxWait` as it is written: `--max-wait`; an argument as messages write it: `FILE`. */
export const nameOf = (key: string, { argument }: Option<unknown>): string =>
  argument?.toUpperCase() ?? `--${key.replace(/[A-Z]/g, (capital) => `-${capital.toLowerCase()}`)}`;

const OPTION = /^(--[^=]+|-[a-z])(?:=(.*))?$/s;

/**
 * Reads a command line under the options of a command, whose name is its first words. A value may begin with a dash, but
 * not with two: an option whose value is missing takes no other option for it.
 */
export function parseArguments<O extends OptionTable>(
  argv: readonly string[],
  table: O,
  command: readonly string[],
): Parsed<ValuesOf<O>> {
  const options = Object.entries(table).flatMap(([key, option]) =>
    option === undefined ? [] : [{ key, option, name: nameOf(key, option), words: [] as string[] }],
  );
  const problems: UserError[] = [];
  const refuse = (message: string) => void problems.push(configError(message));
  const help = `see ${['dfinery-elt', ...command].join(' ')} --help`;
  const words: string[] = [];
  const left = [...argv];
  for (let word = left.shift(); word !== undefined; word = left.shift()) {
    const [, name, inline] = OPTION.exec(word) ?? [];
    const found = options.find((one) => one.name === name || (name !== undefined && name === one.option.short));
    if (word === '--') words.push(...left.splice(0));
    else if (name === undefined) words.push(word);
    else if (found === undefined) {
      const near = nearest(
        name,
        options.map((one) => one.name),
        name.length / 3,
      );
      refuse(`there is no option ${name}${near === undefined ? '' : ` (did you mean ${near}?)`}: ${help}.`);
    } else {
      const { option, words: earlier } = found;
      const values = inline === undefined ? [] : [inline];
      while (values.length < option.words) values.push(/^--./.test(left[0] ?? '') ? '' : (left.shift() ?? ''));
      if (earlier.length > 0 && option.isList !== true) refuse(`${name} is given more than once.`);
      earlier.push(...(option.words === 0 ? [inline ?? 'true'] : values));
    }
  }
  const surplus = words.slice(command.length);
  options.find(({ option }) => option.argument !== undefined)?.words.push(...surplus.splice(0, 1));
  if (surplus.length > 0) refuse(`${JSON.stringify(surplus[0])} is a word too many: ${help}.`);
  const values: Record<string, unknown> = {};
  for (const { key, option, name, words: given } of options) {
    const { fallback, isRequired } = option;
    if (given.includes('')) refuse(`${name} is empty.`);
    else if (isRequired === true && given.length === 0) refuse(`${name} is missing: ${help}.`);
    else
      try {
        values[key] = option.read(given.length === 0 && fallback !== undefined ? [fallback] : given, name);
      } catch (error) {
        if (!(error instanceof UserError)) throw error;
        problems.push(error);
      }
  }
  return { words, values: values as Partial<ValuesOf<O>>, problem: problems[0] };
}
