import type { OptionTable } from './command.ts';
import { COMMANDS, commandAt, FAMILIES } from './commands/index.ts';
import { nameOf } from './parse.ts';
import { wrapped } from './table.ts';

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
  const head = (usage: string, ...rest: string[]) => [`dfinery-elt ${usage}`, ...rest].join('\n');
  const options = section('Options', optionRows({ ...(entry && command?.options), ...globals }));
  const end = command?.epilogue?.() ?? EPILOGUE;
  if (entry !== undefined) return [head(entry.usage), entry.summary, options, end].join('\n\n');
  const listed = family.length > 0 ? family : undefined;
  const commands = section('Commands', listed ? listed.map(({ usage, summary }) => [usage, summary]) : allCommands());
  return [head(listed ? `${words[0]} <target>` : '<command>'), commands, options, end].join('\n\n');
}

/** Commands that name a target are told in one line. */
function allCommands(): Row[] {
  const rows = COMMANDS.map(({ usage, summary }): Row => {
    const [word] = usage.split(' ');
    return FAMILIES[word] === undefined ? [usage, summary] : [word, FAMILIES[word]];
  });
  return rows.filter(([usage], i) => rows.findIndex(([other]) => other === usage) === i);
}

const optionRows = (options: OptionTable): Row[] =>
  Object.entries(options).flatMap(([key, option]): Row[] => {
    if (option === undefined) return [];
    const name = [option.short, nameOf(key, option)].filter((text) => text !== undefined).join(', ');
    const note = option.isRequired ? ' [required]' : option.fallback === undefined ? '' : ` [${option.fallback}]`;
    return [[name, option.describe + note]];
  });

type Row = readonly [name: string, about: string];

/** Rows under a title, in two columns; the second is wrapped. */
function section(title: string, rows: readonly Row[]): string {
  const width = Math.max(...rows.map(([name]) => name.length)) + 4;
  const lines = rows.flatMap(([name, about]) =>
    wrapped(about, COLUMNS - width).map((line, i) => `${(i === 0 ? `  ${name}` : '').padEnd(width)}${line}`),
  );
  return [`${title}:`, ...lines].join('\n');
}
