// This folder: the command line. A run goes from main.ts through this file into one file of `commands/`; command.ts
// says what a command and an option are. The other folders hold parts of single commands.

import { configError, EXIT, type ExitCode, type UserError } from '../base/errors.ts';
import { LOG_LEVELS } from '../base/log.ts';
import { VERSION } from '../base/version.ts';
import { refuseUnknownNames } from '../config/environment.ts';
import { type Command, choice, flag, type OptionTable, withDefault, wordsOf } from './command.ts';
import { COMMANDS } from './commands/index.ts';
import { contextOf, type Io } from './context.ts';
import { outcomeOf } from './outcome.ts';
import { configurationKeyIn, parseCommandLine, parserOf, wordsIn } from './parse.ts';
import { holdResults, LOG_FORMATS, printableTerminal } from './terminal.ts';

const GLOBAL_OPTIONS = {
  logLevel: withDefault('info', choice('Least severity on stderr', LOG_LEVELS)),
  logFormat: withDefault('text', choice('Log lines on stderr', LOG_FORMATS)),
  help: flag('Show this help'),
  version: flag('Show the version'),
};

/** Runs one command line and returns its exit code; never throws. */
export async function runCommandLine(argv: readonly string[], system: Io): Promise<ExitCode> {
  const io = { ...system, terminal: printableTerminal(system.terminal) };
  const { values: global } = parseCommandLine(argv, GLOBAL_OPTIONS, []);
  if (global.version === true) {
    io.terminal.result(VERSION);
    return EXIT.done;
  }
  const { words, commands } = await commandsIn(argv);
  if (global.help === true || words[0] === 'help' || words.at(-1) === 'help') {
    const help = await helpOf(words[0] === 'help' ? words.slice(1) : words);
    for (const line of help.split('\n')) io.terminal.result(line);
    return EXIT.done;
  }
  const known = commandAt(words, commands);
  // For an unknown target another command of the same word is used, so that its options and its report of failures
  // still apply.
  const command = known ?? commands[0];
  const options: OptionTable & typeof GLOBAL_OPTIONS = { ...command?.options, ...GLOBAL_OPTIONS };
  const { values, problem } = parseCommandLine(argv, options, command ? wordsOf(command) : words);
  const { logLevel = 'info', logFormat = 'text', json } = values;
  const held = json === true ? holdResults(io.terminal, io.clock) : undefined;
  const context = contextOf({ ...io, terminal: held?.terminal ?? io.terminal }, { logLevel, logFormat });
  try {
    if (known === undefined) throw configurationKeyIn(argv, options) ?? unknownCommand(words, commands);
    if (problem !== undefined) throw problem;
    refuseUnknownNames(io.env);
    return await known.run(values, context);
  } catch (error) {
    const outcome = outcomeOf(error, context.signal);
    outcome.log(context.logger);
    const { exit, message } = outcome;
    const failure = { v: 1, kind: 'failure', exit, error: context.redactor.mask(message) };
    if (command?.failed !== undefined) await command.failed(outcome, values, context);
    else if (json === true) context.terminal.result(JSON.stringify(failure));
    return exit;
  } finally {
    await held?.release();
  }
}

/**
 * The words of a command line from its command on, without options and their values, and the commands that begin with
 * the first.
 */
async function commandsIn(argv: readonly string[]): Promise<{ words: string[]; commands: readonly Command[] }> {
  const all = wordsIn(argv, GLOBAL_OPTIONS);
  // A word before the command may be the value of an option.
  const name = all[0] === 'help' ? undefined : all.find((word) => Object.hasOwn(COMMANDS, word));
  if (name === undefined) return { words: all, commands: [] };
  const { commands } = await COMMANDS[name]();
  const options: OptionTable = Object.assign({}, ...commands.map((one) => one.options), GLOBAL_OPTIONS);
  const words = wordsIn(argv, options);
  return { words: words.slice(words.indexOf(name)), commands };
}

const commandAt = (words: readonly string[], commands: readonly Command[]): Command | undefined =>
  commands.find((one) => wordsOf(one).every((word, i) => word === words[i]));

/** Names the first word that is no command, or the second that is no target of it, and what there is. */
function unknownCommand([first, second]: readonly string[], commands: readonly Command[]): UserError {
  const isCommand = commands.length > 0;
  const names = isCommand ? targetsOf(commands) : Object.keys(COMMANDS);
  const wanted = `wanted ${names.join(', ')}`;
  if (first === undefined) return configError(`which command? See dfinery-elt --help; ${wanted}.`);
  if (!isCommand) return configError(`there is no command ${JSON.stringify(first)}: ${wanted}.`);
  if (second === undefined) return configError(`${first} needs a target: ${wanted}.`);
  return configError(`${first} knows no ${JSON.stringify(second)}: ${wanted}.`);
}

const targetsOf = (commands: readonly Command[]): string[] => commands.flatMap((one) => wordsOf(one).slice(1));

const EPILOGUE = [
  'Exit: 0 done; 1 a defect, or verify found a difference; 2 usage or configuration; 3 try again later;',
  '4 days are lost at the service; 5 a deletion guard stopped the run.',
  'Tokens come from the configuration file, DFINERY_EXPORT_TOKEN, DFINERY_IMPORT_TOKEN, or the file that the same',
  'name + _FILE names; never from the command line.',
].join('\n');
const HELP_COLUMNS = 110;

/** The help of the command of these words, of all commands that begin with the first of them, or of the program. */
async function helpOf(words: readonly string[]): Promise<string> {
  const names = Object.keys(COMMANDS).filter((name) => name === words[0]);
  const commands = names.length > 0 ? (await COMMANDS[names[0]]()).commands : [];
  const command = commandAt(words, commands);
  const parser = parserOf({ ...command?.options, ...GLOBAL_OPTIONS })
    .scriptName('dfinery-elt')
    .wrap(HELP_COLUMNS)
    .epilogue((command ?? commands[0])?.epilogue?.() ?? EPILOGUE);
  if (command !== undefined) return parser.usage(`$0 ${command.usage}\n\n${command.summary}`).getHelp();
  for (const { usage, summary } of commands) parser.command(usage, summary);
  if (commands.length > 0) return parser.usage(`$0 ${words[0]} <target>`).getHelp();
  for (const [name, load] of Object.entries(COMMANDS)) {
    const { commands } = await load();
    const [{ usage, summary, family }] = commands;
    const targets = targetsOf(commands);
    const all = `${family}: ${targets.slice(0, -1).join(', ')} or ${targets.at(-1)}`;
    if (family === undefined) parser.command(usage, summary);
    else parser.command(name, all);
  }
  return parser.usage('$0 <command>').getHelp();
}
