import type { Argv } from 'yargs';
import { VERSION } from '../base/version.ts';
import { declareOptions, type HelpTopic, type NamedCommand, newParser, optionsOf } from './command-line.ts';
import { COMMANDS } from './commands/commands.ts';
import { placeUsage } from './places.ts';

const MAX_COLUMNS = 110;

/** The lines of a page, of at most so many columns. */
export async function helpLines(topic: HelpTopic, columns: number): Promise<string[]> {
  const width = Math.min(columns, MAX_COLUMNS);
  if (topic === 'version') return [VERSION];
  const parser = newParser().wrap(width);
  if (topic === 'program') describeProgram(parser);
  else describeCommand(parser, topic);
  const options = optionsOf(topic === 'program' ? undefined : topic);
  return (await declareOptions(parser, options).getHelp()).split('\n');
}

function describeProgram(parser: Argv): void {
  parser.usage('$0 COMMAND').epilogue('Options of a command: dfinery-elt COMMAND --help.');
  for (const [name, { usage, summary }] of Object.entries(COMMANDS)) parser.command(`${name} ${usage}`.trim(), summary);
}

function describeCommand(parser: Argv, { name, targets, examples, docsPage }: NamedCommand): void {
  const { usage, summary } = COMMANDS[name];
  parser.usage(`${`$0 ${name} ${usage}`.trim()}\n\n${summary}.`);
  for (const line of examples) parser.example(`$0 ${line}`, '');
  const places = targets?.map((target) => placeUsage([target])).join(', ');
  const placeLines = places ? `TARGET PLACE: ${places}.\nDefault: target and place of dfinery.json.\n` : '';
  parser.epilogue(`${placeLines}More: docs/${docsPage}. Keys and variables: docs/configuration.md.`);
}
