// yargs splits a command line into options and words, and writes the help. This file checks their values: the messages
// of yargs repeat words, which may be ids or secrets.

import yargs, { type Argv } from 'yargs';
import { credentialsError, hasCredentials } from '../base/address.ts';
import { configError, UserError } from '../base/errors.ts';
import { nearest } from '../config/nearest.ts';
import {
  type Command,
  dashedOptionNames,
  GLOBAL_OPTIONS,
  kebabCase,
  type Option,
  type OptionTable,
  type OptionValues,
  optionName,
  unknownNameError,
} from './command.ts';
import { COMMANDS } from './commands/commands.ts';
import { CONFIG_KEYS } from './configuration.ts';

export type NamedCommand = Command & { readonly name: string };

export interface CommandLine {
  /** Undefined if no known one is named. */
  readonly command: NamedCommand | undefined;
  /** What is wrong with the line, if anything: then `values` say only how to tell of it. */
  readonly problem: UserError | undefined;
  readonly values: OptionValues<OptionTable & typeof GLOBAL_OPTIONS>;
}

const PARSER = {
  'boolean-negation': false,
  'dot-notation': false,
  'greedy-arrays': false,
  'parse-numbers': false,
  'parse-positional-numbers': false,
  'strip-aliased': true,
  'strip-dashed': true,
};

export const newParser = () =>
  yargs()
    .scriptName('dfinery-elt')
    .detectLocale(false)
    .help(false)
    .version(false)
    .exitProcess(false)
    .parserConfiguration(PARSER);

/** Tells yargs the options of a command, with their text in the help. */
export function declareOptions<T>(parser: Argv<T>, table: OptionTable): Argv<T> {
  for (const [key, option] of Object.entries(table)) {
    if (option.isArgument === true) continue;
    const { wordCount, heading = 'Options', short, isRequired, defaultWord } = option;
    const hint = isRequired ? ' [required]' : defaultWord === undefined ? '' : ` [${defaultWord}]`;
    const texts = { describe: `${option.description}${hint}`, group: `${heading}:` };
    // With a number of words, a `-` alone is a word, and no option.
    const nargs = wordCount === 0 ? {} : { nargs: wordCount };
    const alias = short === undefined ? {} : { alias: short };
    parser.option(kebabCase(key), { type: wordCount === 0 ? 'boolean' : 'string', ...texts, ...nargs, ...alias });
  }
  return parser;
}

export async function parseCommandLine(argv: readonly string[]): Promise<CommandLine> {
  // 1. Find the command, which says how many words each option takes. Options of all commands may come before it: of
  //    `--config a.json sync duckdb f.duckdb` the first split has the words sync, duckdb and f.duckdb.
  const { words: leadingWords } = await splitWords(argv, GLOBAL_OPTIONS);
  const firstWord = leadingWords[0] ?? argv[0] ?? '';
  const entry = Object.hasOwn(COMMANDS, firstWord) ? COMMANDS[firstWord] : undefined;
  const command = entry && { name: firstWord, ...(await entry.load()).command };

  // 2. Split the line again, with the options of the command.
  const table: OptionTable = { ...command?.options, ...GLOBAL_OPTIONS };
  const { options, words, problem: wordProblem } = await splitWords(argv, table);
  const argumentWords = command === undefined ? words : words.slice(1);
  const problems = [wordProblem, unknownOptionError(options, table)];
  if (command === undefined && words.length > 0)
    problems.push(unknownNameError('command', words[0], Object.keys(COMMANDS)));

  // 3. Read the value of each option and argument.
  const wordOfArgument = wordsByArgument(table, argumentWords);
  const values: Record<string, unknown> = {};
  for (const [key, option] of Object.entries(table)) {
    try {
      values[key] = readOption(option, optionName(key, option), wordOfArgument.get(key) ?? options[key]);
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      problems.push(error);
    }
  }
  // It may be an id or a secret, so that no log may show it.
  if (command !== undefined && argumentWords.length > wordOfArgument.size)
    problems.push(configError('there is a word too many.'));

  // 4. Tell the first problem.
  const firstProblem = problems.find((problem) => problem !== undefined);
  const helpHint = `See dfinery-elt ${command === undefined ? '' : `${command.name} `}--help.`;
  const problem = firstProblem?.withMessage(`${firstProblem.message} ${helpHint}`);
  return { command, problem, values: values as CommandLine['values'] };
}

/** What yargs makes of a command line: each option with its words, and the words that belong to none. */
async function splitWords(argv: readonly string[], table: OptionTable) {
  try {
    const { _: positional, $0: _, ...options } = await declareOptions(newParser().fail(false), table).parseAsync(argv);
    return { options, words: positional.map(String), problem: undefined };
  } catch (error) {
    // yargs tells the name of the option after which words are missing.
    if (!(error instanceof Error) || error.name !== 'YError') throw error;
    const options: Record<string, unknown> = { json: argv.includes('--json') };
    return { options, words: [], problem: missingWordError(error.message.replace(/^.*: /, ''), table) };
  }
}

/** The arguments with their words, if any. Those with a default in the configuration are left out together. */
function wordsByArgument(table: OptionTable, words: readonly string[]): Map<string, string | undefined> {
  const keys = Object.keys(table).filter((key) => table[key].isArgument);
  const neededKeys = keys.filter((key) => !table[key].hasConfigDefault);
  const takenKeys = words.length <= neededKeys.length ? neededKeys : keys;
  return new Map(takenKeys.map((key, i) => [key, words[i]]));
}

function missingWordError(writtenName: string, table: OptionTable): UserError {
  const entry = Object.entries(table).find(
    ([key, { short }]) => kebabCase(key) === writtenName || short === writtenName,
  );
  const [key, option] = entry ?? [writtenName];
  return configError(`--${kebabCase(key)} ${option?.wordCount === 2 ? 'takes two words: TARGET PLACE' : 'is empty'}.`);
}

/** The value of an option. Throws a UserError for one that is given in a wrong way. */
function readOption(option: Option<unknown>, name: string, raw: unknown): unknown {
  const { wordCount, isRequired, isExternalId, defaultWord } = option;
  const words = (raw === undefined ? [] : [raw].flat()).map(String);
  // Messages, logs and notifications repeat addresses.
  if (isExternalId !== true && words.some(hasCredentials)) throw credentialsError(name);
  if (words.includes('')) throw configError(`${name} is empty.`);
  if (wordCount === 1 && words.length > 1) throw configError(`${name} is given more than once.`);
  if (isRequired && words.length === 0) throw configError(`${name} is missing.`);
  if (words.length === 0 && defaultWord !== undefined) return option.read([defaultWord], name);
  // Of a flag that is given twice the last one counts.
  return option.read(wordCount === 0 ? words.slice(-1) : words, name);
}

/** The failure of the first option that the table does not have, with the one that was probably meant. */
function unknownOptionError(options: object, table: OptionTable): UserError | undefined {
  const key = Object.keys(options).find((key) => !Object.hasOwn(table, key) || table[key].isArgument);
  if (key === undefined) return undefined;
  const name = key.length === 1 ? `-${key}` : `--${kebabCase(key)}`;
  const near = nearest(name, dashedOptionNames(table));
  const hint = keyHint(name) ?? (near && `did you mean ${near}?`);
  return configError(`there is no option ${name}${hint === undefined ? '.' : `: ${hint}`}`);
}

/** How to give a key of the configuration that was written as an option, `--lookback-days`. */
function keyHint(option: string): string | undefined {
  const key = option.slice(2).replaceAll('-', '_');
  const configKey = CONFIG_KEYS.find((candidate) => candidate.key === key);
  if (configKey === undefined) return undefined;
  const { variableName, schema } = configKey;
  if (!schema.airbyte_secret) return `write ${key} into the configuration file, or set ${variableName}.`;
  return `other users see the command line, so set ${variableName}, or ${variableName}_FILE to the path of a file that holds it.`;
}
