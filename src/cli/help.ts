import type { Argv } from 'yargs';
import type { OptionTable } from './command.ts';
import { COMMANDS, commandAt, wordsOf } from './commands/index.ts';
import { parserOf } from './parse.ts';

const EPILOGUE = [
  'Exit: 0 done; 1 a defect, or verify found a difference; 2 usage or configuration; 3 try again later;',
  '4 days are lost at the service; 5 a deletion guard stopped the run.',
  'Tokens come from the configuration file, DFINERY_EXPORT_TOKEN, DFINERY_IMPORT_TOKEN, or the file that the same',
  'name + _FILE names; never from the command line.',
].join('\n');
const COLUMNS = 110;

/** The help of the command of these words, of all commands that begin with the first of them, or of the program. */
export async function helpOf(words: readonly string[], globals: OptionTable): Promise<string> {
  const entry = commandAt(words);
  const family = COMMANDS.filter(({ usage }) => usage.startsWith(`${words[0]} `));
  const command = await (entry ?? family[0])?.load();
  const parser = parserOf({ ...(entry && command?.options), ...globals })
    .scriptName('dfinery-elt')
    .wrap(COLUMNS)
    .epilogue(command?.epilogue?.() ?? EPILOGUE);
  if (entry !== undefined) return parser.usage(`$0 ${entry.usage}\n\n${entry.summary}`).getHelp();
  const listed = family.length > 0 ? family.map(({ usage, summary }) => [usage, summary] as const) : allCommands();
  return withCommands(parser.usage(`$0 ${family.length > 0 ? `${words[0]} <target>` : '<command>'}`), listed).getHelp();
}

type Row = readonly [usage: string, summary: string];

const withCommands = (parser: Argv, rows: readonly Row[]): Argv =>
  rows.reduce((all, [usage, summary]) => all.command(usage, summary), parser);

/** Commands that name a target are told in one line. */
function allCommands(): Row[] {
  const rows = COMMANDS.map((entry): Row => {
    const { usage, summary, family } = entry;
    return family === undefined ? [usage, summary] : [wordsOf(entry)[0], family];
  });
  return rows.filter(([usage], i) => rows.findIndex(([other]) => other === usage) === i);
}
