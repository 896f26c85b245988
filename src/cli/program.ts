// This folder: the command line. A run goes from main.ts through this file into one file of `commands/`; command.ts
// says what a command and an option are. The other folders hold parts of single commands.

import { configError, EXIT, type ExitCode, type UserError } from '../base/errors.ts';
import { LOG_LEVELS } from '../base/log.ts';
import { VERSION } from '../base/version.ts';
import { refuseUnknownNames } from '../config/environment.ts';
import { type Command, choice, commandAt, flag, type OptionTable, targetsOf, withDefault, wordsOf } from './command.ts';
import { COMMANDS } from './commands/index.ts';
import { contextOf, type Io } from './context.ts';
import { failureOf } from './failure.ts';
import { configurationKeyIn, divide, parseCommandLine, unknownOptionBefore } from './parse.ts';
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
    const { helpOf } = await import('./help.ts');
    const help = await helpOf(words[0] === 'help' ? words.slice(1) : words, GLOBAL_OPTIONS, io.terminal.columns);
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
    if (known === undefined) {
      const unknown = words.at(commands.length > 0 ? 1 : 0);
      throw (
        configurationKeyIn(divide(argv, options).options, options) ??
        unknownOptionBefore(unknown, argv, options) ??
        unknownCommand(words, commands)
      );
    }
    if (problem !== undefined) throw problem;
    refuseUnknownNames(io.env);
    return await known.run(values, context);
  } catch (error) {
    const failure = failureOf(error, context.signal);
    failure.log(context.logger);
    const { exit, message } = failure;
    const result = { v: 1, kind: 'failure', exit, error: context.redactor.mask(message) };
    if (command?.failed !== undefined) await command.failed(failure, values, context);
    else if (json === true) context.terminal.result(JSON.stringify(result));
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
  const { words: all } = divide(argv, GLOBAL_OPTIONS);
  // A word before the command may be the value of an option.
  const name = all[0] === 'help' ? undefined : all.find((word) => Object.hasOwn(COMMANDS, word));
  if (name === undefined) return { words: all, commands: [] };
  const { commands } = await COMMANDS[name]();
  const options: OptionTable = Object.assign({}, ...commands.map((one) => one.options), GLOBAL_OPTIONS);
  const { words } = divide(argv, options);
  const at = words.indexOf(name);
  // It is the value of an option of its own command: no word is a command, and those that are left are not repeated.
  return { words: at < 0 ? [] : words.slice(at), commands };
}

/** Names the first word that is no command, or the second that is no target of it, and what there is. */
function unknownCommand([first, second]: readonly string[], commands: readonly Command[]): UserError {
  const isCommand = first !== undefined && commands.length > 0;
  const names = isCommand ? targetsOf(commands) : Object.keys(COMMANDS);
  const wanted = `wanted ${names.join(', ')}`;
  if (first === undefined) return configError(`which command? See dfinery-elt --help; ${wanted}.`);
  if (!isCommand) return configError(`there is no command ${JSON.stringify(first)}: ${wanted}.`);
  if (second === undefined) return configError(`${first} needs a target: ${wanted}.`);
  return configError(`${first} knows no ${JSON.stringify(second)}: ${wanted}.`);
}
