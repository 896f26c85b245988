// This folder: the command line. A run goes from main.ts through this file into one file of `commands/`; command.ts says what a
// command and an option are. The other folders hold parts of single commands.

import { configError, EXIT, type ExitCode, type UserError } from '../base/errors.ts';
import { LOG_LEVELS } from '../base/log.ts';
import { VERSION } from '../base/version.ts';
import { choice, flag, type OptionTable, printFailure, withDefault } from './command.ts';
import { COMMANDS, commandAt, wordsOf } from './commands/index.ts';
import { contextOf, type Io } from './context.ts';
import { outcomeOf } from './outcome.ts';
import { configurationKeyIn, parseArguments, parserOf, wordsIn } from './parse.ts';
import { holdResults, LOG_FORMATS, printableTerminal } from './terminal.ts';

/** The options of every command. */
const GLOBAL_OPTIONS = {
  logLevel: withDefault('info', choice('Least severity on stderr', LOG_LEVELS)),
  logFormat: withDefault('text', choice('Log lines on stderr', LOG_FORMATS)),
  help: flag('Show this help'),
  version: flag('Show the version'),
};

/** Runs one command line and returns its exit code; never throws. */
export async function runCommandLine(argv: readonly string[], system: Io): Promise<ExitCode> {
  const io = { ...system, terminal: printableTerminal(system.terminal) };
  const { values: global } = parseArguments(argv, GLOBAL_OPTIONS, []);
  if (global.version === true) {
    io.terminal.result(VERSION);
    return EXIT.done;
  }
  const words = await commandWords(argv);
  if (global.help === true || words[0] === 'help' || words.at(-1) === 'help') {
    const help = await helpOf(words[0] === 'help' ? words.slice(1) : words);
    for (const line of help.split('\n')) io.terminal.result(line);
    return EXIT.done;
  }
  const known = commandAt(words);
  // For an unknown target a command of the same word is loaded, so that its options and its report of failures still apply.
  const entry = known ?? COMMANDS.find((one) => wordsOf(one)[0] === words[0]);
  const command = await entry?.load();
  const options: OptionTable & typeof GLOBAL_OPTIONS = { ...command?.options, ...GLOBAL_OPTIONS };
  const { values, problem } = parseArguments(argv, options, entry ? wordsOf(entry) : words);
  const { logLevel = 'info', logFormat = 'text', json } = values;
  const held = json === true ? holdResults(io.terminal, io.clock) : undefined;
  const context = contextOf({ ...io, terminal: held?.terminal ?? io.terminal }, { logLevel, logFormat });
  try {
    if (command === undefined || known === undefined) throw configurationKeyIn(argv, options) ?? unknownCommand(words);
    if (problem !== undefined) throw problem;
    (await import('../config/environment.ts')).refuseUnknownNames(io.env);
    return await command.run(values, context);
  } catch (error) {
    const outcome = outcomeOf(error, context.signal);
    outcome.log(context.logger);
    await (command?.failed ?? printFailure)(outcome, values, context);
    return outcome.exit;
  } finally {
    await held?.release();
  }
}

/** The words of a command line from its command on, without options and their values, wherever those stand. */
async function commandWords(argv: readonly string[]): Promise<string[]> {
  const all = wordsIn(argv, GLOBAL_OPTIONS);
  if (all[0] === 'help') return all;
  // What stands before the command may be the value of one of its options.
  const name = all.find((word) => COMMANDS.some((one) => wordsOf(one)[0] === word));
  if (name === undefined) return all;
  const commands = await Promise.all(COMMANDS.filter((one) => wordsOf(one)[0] === name).map((one) => one.load()));
  const options: OptionTable = Object.assign({}, ...commands.map((one) => one.options), GLOBAL_OPTIONS);
  const words = wordsIn(argv, options);
  return words.slice(words.indexOf(name));
}

/** Names the first word that is no command, or the second that is no target of it, and what there is. */
function unknownCommand([first, second]: readonly string[]): UserError {
  const commands = COMMANDS.map(wordsOf);
  const targets = commands.flatMap(([word, target]) => (word === first && target !== undefined ? [target] : []));
  const names = targets.length > 0 ? targets : [...new Set(commands.map(([word]) => word))];
  const wanted = `wanted ${names.join(', ')}`;
  if (first === undefined) return configError(`which command? See dfinery-elt --help; ${wanted}.`);
  if (targets.length === 0) return configError(`there is no command ${JSON.stringify(first)}: ${wanted}.`);
  if (second === undefined) return configError(`${first} needs a target: ${wanted}.`);
  return configError(`${first} knows no ${JSON.stringify(second)}: ${wanted}.`);
}

const EPILOGUE = [
  'Exit: 0 done; 1 a defect, or verify found a difference; 2 usage or configuration; 3 try again later;',
  '4 days are lost at the service; 5 a deletion guard stopped the run.',
  'Tokens come from the configuration file, DFINERY_EXPORT_TOKEN, DFINERY_IMPORT_TOKEN, or the file that the same',
  'name + _FILE names; never from the command line.',
].join('\n');
const HELP_COLUMNS = 110;

/** The help of the command of these words, of all commands that begin with the first of them, or of the program. */
async function helpOf(words: readonly string[]): Promise<string> {
  const entry = commandAt(words);
  const ofVerb = COMMANDS.filter((one) => wordsOf(one)[0] === words[0]);
  const command = await (entry ?? ofVerb[0])?.load();
  const parser = parserOf({ ...(entry && command?.options), ...GLOBAL_OPTIONS })
    .scriptName('dfinery-elt')
    .wrap(HELP_COLUMNS)
    .epilogue(command?.epilogue?.() ?? EPILOGUE);
  if (entry !== undefined) return parser.usage(`$0 ${entry.usage}\n\n${entry.summary}`).getHelp();
  const listed = new Map(ofVerb.map(({ usage, summary }) => [usage, summary]));
  // Commands that name a target are told in one line.
  if (listed.size === 0)
    for (const one of COMMANDS) listed.set(one.family ? wordsOf(one)[0] : one.usage, one.family ?? one.summary);
  for (const [usage, summary] of listed) parser.command(usage, summary);
  return parser.usage(`$0 ${ofVerb.length > 0 ? `${words[0]} <target>` : '<command>'}`).getHelp();
}
