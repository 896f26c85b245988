import yargs from 'yargs';
import { commandAt, type OptionTable, targetsOf } from './command.ts';
import { COMMANDS } from './commands/index.ts';
import { optionName } from './parse.ts';

const EPILOGUE = [
  'Exit: 0 done; 1 a defect, or verify found a difference; 2 usage or configuration; 3 try again later; ' +
    '4 days are lost at the service; 5 a deletion guard stopped the run.',
  'Tokens come from the configuration file, DFINERY_EXPORT_TOKEN, DFINERY_IMPORT_TOKEN, or the file that the same ' +
    'name + _FILE names; never from the command line.',
].join('\n');
const MAX_COLUMNS = 110;

/**
 * The help of the command of these words, of all commands that begin with the first of them, or of the program. yargs
 * lays it out; no command line is read by it, so that no command waits for its fifty files.
 */
export async function helpOf(words: readonly string[], global: OptionTable, columns: number): Promise<string> {
  const names = Object.keys(COMMANDS).filter((name) => name === words[0]);
  const commands = names.length > 0 ? (await COMMANDS[names[0]]()).commands : [];
  const command = commandAt(words, commands);
  const page = yargs().detectLocale(false).help(false).version(false).scriptName('dfinery-elt');
  page.wrap(Math.min(columns, MAX_COLUMNS));
  const variables = (command ?? commands[0])?.epilogue?.();
  page.epilogue(variables === undefined ? EPILOGUE : `${variables}\n\n${EPILOGUE}`);
  for (const [key, option] of Object.entries({ ...command?.options, ...global })) {
    if (option === undefined || option.argument !== undefined) continue;
    const { words: count, short, describe, isRequired, fallback } = option;
    const note = isRequired ? ' [required]' : fallback === undefined ? '' : ` [${fallback}]`;
    const type = count === 0 ? 'boolean' : 'string';
    const alias = short === undefined ? [] : short.slice(1);
    page.option(optionName(key, option).slice(2), { type, alias, describe: describe + note });
  }
  if (command !== undefined) return page.usage(`$0 ${command.usage}\n\n${command.summary}`).getHelp();
  for (const { usage, summary } of commands) page.command(usage, summary);
  if (commands.length > 0) return page.usage(`$0 ${words[0]} <target>`).getHelp();
  for (const [name, load] of Object.entries(COMMANDS)) {
    const { commands } = await load();
    const [{ usage, summary, family }] = commands;
    const targets = targetsOf(commands);
    const all = `${family}: ${targets.slice(0, -1).join(', ')} or ${targets.at(-1)}`;
    if (family === undefined) page.command(usage, summary);
    else page.command(name, all);
  }
  return page.usage('$0 <command>').getHelp();
}
