import yargs, { type Argv } from 'yargs';
import { configError, UserError } from '../base/errors.ts';
import { configurationHint } from '../config/environment.ts';
import { nearest } from '../config/nearest.ts';
import type { Option, OptionTable, ValuesOf } from './command.ts';

interface ParsedOptions<V> {
  /** The values; if the command line has a problem, those that could be read. */
  readonly values: Partial<V>;
  readonly problem: UserError | undefined;
}

/** `max-wait` for `maxWait`. */
const dashed = (key: string): string => key.replace(/[A-Z]/g, (capital) => `-${capital.toLowerCase()}`);

/** The name of an option in messages: `--max-wait` for `maxWait`, `FILE` for an argument. */
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
export const wordsIn = (argv: readonly string[], known: OptionTable): string[] =>
  parsedBy(known, argv, { 'unknown-options-as-args': true }).words.filter((word) => !/^-./.test(word));

/** Reads a command line under the options of a command, whose name is its first words. */
export function parseCommandLine<O extends OptionTable>(
  argv: readonly string[],
  table: O,
  command: readonly string[],
): ParsedOptions<ValuesOf<O>> {
  const problems: UserError[] = [];
  const refuse = (message: string) => void problems.push(configError(message));
  const help = `see ${['dfinery-elt', ...command].join(' ')} --help`;
  const misplaced = configurationKeyIn(argv, table);
  if (misplaced !== undefined) problems.push(misplaced);
  const { words, given, unknown } = parsedBy(table, argv);
  for (const name of unknown) {
    const near = nearest(name, namesOf(table), name.length / 3);
    refuse(`there is no option ${name}${near === undefined ? '' : ` (did you mean ${near}?)`}: ${help}.`);
  }
  const surplus = words.slice(command.length);
  const values: Record<string, unknown> = {};
  for (const [key, option] of Object.entries(table)) {
    if (option === undefined) continue;
    const { words: count, argument, isList, isRequired, fallback, short } = option;
    const name = optionName(key, option);
    const texts = argument === undefined ? (given.get(name) ?? []) : surplus.splice(0, 1);
    // An option that is given twice has its first value, and a flag that is given a value is on: `--json` and `--xcom`
    // must take effect, so that scripts are told of the failure.
    const times = beforeDashes(argv).filter((word) => [name, short].includes(nameIn(word))).length;
    if (isList !== true && times > 1) refuse(`${short ?? name} is given more than once.`);
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
  // Where a command takes an id, the surplus word may be one, so that no log may show it.
  const tooMany =
    'id' in table
      ? 'there is a word too many (an ID is given with --id)'
      : `${JSON.stringify(surplus[0])} is a word too many`;
  if (surplus.length > 0) refuse(`${tooMany}: ${help}.`);
  return { values: values as Partial<ValuesOf<O>>, problem: problems[0] };
}

/**
 * The failure of a configuration key that was written as an option. It is reported before any other: the next word may
 * be a secret, which no message may repeat.
 */
export function configurationKeyIn(argv: readonly string[], table: OptionTable): UserError | undefined {
  for (const name of beforeDashes(argv).map(nameIn)) {
    if (!name.startsWith('--') || namesOf(table).includes(name)) continue;
    const hint = configurationHint(name, 'config' in table);
    if (hint !== undefined) return configError(`there is no option ${name}: ${hint}.`);
  }
  return undefined;
}

/** The name of an option whose value stands in the same word, as in `--name=value`. */
const nameIn = (word: string): string => word.split('=', 1)[0];

const namesOf = (table: OptionTable): string[] =>
  Object.entries(table).flatMap(([key, option]) => (option ? [optionName(key, option)] : []));

function parsedBy(table: OptionTable, argv: readonly string[], more: Readonly<Record<string, boolean>> = {}) {
  // Names that every object has, such as --constructor, end yargs itself.
  const inherited = argv.filter((word) => word.startsWith('--') && nameIn(word).slice(2) in Object.prototype);
  const own = argv.filter((word) => !inherited.includes(word));
  const parser = parserOf(table).parserConfiguration({ ...PARSING, ...more });
  const { _: words, $0: _, ...rest } = parser.fail(() => {}).parseSync(own);
  const known = Object.values(table)
    .flatMap((option) => option?.short ?? [])
    .concat(namesOf(table));
  // A missing value is undefined here, and is read as an empty text.
  const given = new Map(
    Object.entries(rest).map(([name, value]) => [
      name.length === 1 ? `-${name}` : `--${name}`,
      [value].flat().map((one) => String(one ?? '')),
    ]),
  );
  const unknown = [...inherited.map(nameIn), ...given.keys()].filter((name) => !known.includes(name));
  return { words: words.map(String), given, unknown };
}

/** The words before a `--`, after which there are no options. */
function beforeDashes(argv: readonly string[]): readonly string[] {
  const end = argv.indexOf('--');
  return end === -1 ? argv : argv.slice(0, end);
}
