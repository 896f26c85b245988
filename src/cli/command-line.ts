// yargs splits the words behind a command into options and arguments, and writes the help. This file checks their values:
// the messages of yargs repeat words, which may be ids or secrets. Of `load duckdb a.duckdb a.csv --day 2026-01-17 -q`:
//
//   command     load, the first word
//   arguments   target, place and file, which the other words give in their order
//   options     day with its word, quiet with `true`, and those that are left out, with no word

import yargs, { type Argv } from 'yargs';
import { configError, UserError } from '../base/errors.ts';
import { nearest } from '../config/nearest.ts';
import {
  type Command,
  GLOBAL_OPTIONS,
  kebabCase,
  type OptionTable,
  type OptionValues,
  optionName,
  pathOption,
  textOption,
  unknownNameError,
} from './command.ts';
import { COMMANDS } from './commands/commands.ts';
import { CONFIG_KEYS } from './configuration.ts';

export type NamedCommand = Command & { readonly name: string };

/** What a page of help is about. */
export type HelpTopic = 'program' | 'version' | NamedCommand;

type RunValues = OptionValues<OptionTable & typeof GLOBAL_OPTIONS>;

/** What a line asks for. Of a wrong one there are the values that are right, which say how to tell of it. */
export type CommandLine =
  | { readonly kind: 'help'; readonly topic: HelpTopic }
  | { readonly kind: 'run'; readonly command: NamedCommand; readonly values: RunValues }
  | { readonly kind: 'wrong'; readonly problem: UserError; readonly values: Partial<RunValues> };

const PARSER_SETTINGS = {
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
    .parserConfiguration(PARSER_SETTINGS);

/** Tells yargs the options of a command, with their text in the help. */
export function declareOptions<T>(parser: Argv<T>, options: OptionTable): Argv<T> {
  for (const [key, { wordCount, heading = 'Options', short, description: describe }] of Object.entries(options)) {
    const alias = short === undefined ? {} : { alias: short };
    const type = wordCount === 0 ? 'boolean' : 'string';
    // With the number of words, a `-` alone is a word, and `--dry-run=1` is refused. It would count as false.
    parser.option(kebabCase(key), { type, describe, group: `${heading}:`, nargs: wordCount, ...alias });
  }
  return parser;
}

/** Reads a line: splits it, parses its values, and finds out what is wrong with it, if anything. */
export async function parseCommandLine(argv: readonly string[]): Promise<CommandLine> {
  // `help sync` is `sync --help`.
  const [name = '--help', ...line] = argv[0] === 'help' ? [...argv.slice(1), '--help'] : argv;
  const command = await loadCommand(name);
  const options = optionsOf(command);
  const { optionWords, words, wordCountProblem } = await splitWords(command ? line : [name, ...line], options);
  const commandArguments = command === undefined ? [] : argumentsOf(command, words);
  const commandOptions = Object.entries(options).map(([key, option]) => {
    return { key, option, name: optionName(key), words: [optionWords[key] ?? []].flat().map(String) };
  });
  const { values, valueProblem } = parseValues([...commandArguments, ...commandOptions]);
  if (command === undefined && !name.startsWith('-'))
    return wrongLine(unknownNameError('command', name, Object.keys(COMMANDS)), values);
  if (values.version === true) return { kind: 'help', topic: 'version' };
  if (values.help === true) return { kind: 'help', topic: command ?? 'program' };
  if (command === undefined) {
    const laterCommand = line.find((word) => Object.hasOwn(COMMANDS, word)) ?? 'COMMAND';
    return wrongLine(configError(`the command comes first: dfinery-elt ${laterCommand}, then its options.`), values);
  }
  // The word may be an id or a secret, and cannot be shown.
  const surplusProblem = words.length > commandArguments.length ? configError('there is a word too many.') : undefined;
  // A wrong number of words makes names seem unknown, and an unknown name values wrong.
  const problem = wordCountProblem ?? unknownOptionError(optionWords, options) ?? valueProblem ?? surplusProblem;
  if (problem !== undefined) return wrongLine(problem, values, `${name} `);
  return { kind: 'run', command, values: values as RunValues };
}

/** `helpWords`: what stands before --help for the page that says what is right. */
const wrongLine = ({ message }: UserError, values: Partial<RunValues>, helpWords = ''): CommandLine => {
  return { kind: 'wrong', problem: configError(`${message} See dfinery-elt ${helpWords}--help.`), values };
};

async function loadCommand(name: string): Promise<NamedCommand | undefined> {
  return Object.hasOwn(COMMANDS, name) ? { name, ...(await COMMANDS[name].load()).command } : undefined;
}

/** The values by key, without those that are given in a wrong way, and the first problem with one of these. */
function parseValues(options: readonly OptionWithWords[]) {
  const values: Record<string, unknown> = {};
  let valueProblem: UserError | undefined;
  for (const option of options) {
    try {
      values[option.key] = parseOption(option);
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      valueProblem ??= error;
    }
  }
  return { values, valueProblem };
}

export const optionsOf = (command?: Command): OptionTable => ({ ...command?.options, ...GLOBAL_OPTIONS });

/** What yargs makes of a line with these options: the words of each by its key, and the words that belong to none. */
async function splitWords(argv: readonly string[], options: OptionTable) {
  let wordCountProblem: UserError | undefined;
  const parser = newParser().fail((message) => {
    // yargs tells the name of the option with too few words, or of the flag with one. It reads the others all the same.
    wordCountProblem = wordCountError(message.replace(/^.*: /, ''), options);
  });
  const { _: words, $0: _, ...optionWords } = await declareOptions(parser, options).parseAsync(argv);
  return { optionWords, words: words.map(String), wordCountProblem };
}

const PLACE_ARGUMENTS = { target: textOption('A target'), place: pathOption('A place of it') };

/** The arguments of a command with their words. TARGET PLACE are left out where no word remains for them. */
function argumentsOf({ targets, arguments: otherArguments = {} }: Command, words: readonly string[]) {
  const hasPlace = targets !== undefined && words.length > Object.keys(otherArguments).length;
  const table: OptionTable = hasPlace ? { ...PLACE_ARGUMENTS, ...otherArguments } : otherArguments;
  return Object.entries(table).map(([key, option], i) => {
    return { key, option, name: key.toUpperCase(), words: words.slice(i, i + 1) };
  });
}

function wordCountError(writtenName: string, options: OptionTable): UserError {
  const isWritten = (key: string) => kebabCase(key) === kebabCase(writtenName) || options[key].short === writtenName;
  const key = Object.keys(options).find(isWritten) ?? writtenName;
  const name = optionName(key);
  const noValue = `has no value: write ${name}=… for one that begins with a dash`;
  const problems = { 0: 'takes no word', 1: noValue, 2: 'takes two words: TARGET PLACE' };
  return configError(`${name} ${problems[options[key]?.wordCount ?? 1]}.`);
}

/** An option or argument with its name in messages, and its words in a line; none if it is left out. */
type OptionWithWords = ReturnType<typeof argumentsOf>[number];

/** Gives the value. Throws a UserError for an option that is given in a wrong way. */
function parseOption({ option, name, words }: OptionWithWords): unknown {
  if (words.includes('')) throw configError(`${name} is empty.`);
  if (option.wordCount === 1 && words.length > 1) throw configError(`${name} is given more than once.`);
  return option.parse(words, name);
}

/** The failure of the first option that the command does not have, with the one that was probably meant. */
function unknownOptionError(optionWords: object, options: OptionTable): UserError | undefined {
  const key = Object.keys(optionWords).find((key) => !Object.hasOwn(options, key));
  if (key === undefined) return undefined;
  const name = key.length === 1 ? `-${key}` : optionName(key);
  const near = nearest(name, Object.keys(options).map(optionName));
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
