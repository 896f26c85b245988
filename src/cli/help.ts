import type { Argv } from 'yargs';
import { VERSION } from '../base/version.ts';
import { variableFormOf } from '../config/environment.ts';
import type { ConfigKey } from '../config/keys.ts';
import { declareOptions, type HelpTopic, type NamedCommand, newParser, optionsOf } from './command-line.ts';
import { COMMANDS } from './commands/commands.ts';
import { ERASURE_KEYS, FILE_KEYS } from './configuration.ts';
import { placeUsage } from './places.ts';
import { wrappedLines } from './terminal/layout.ts';

const MAX_COLUMNS = 110;

/** The lines of a page, of at most so many columns. */
export async function helpLines(topic: HelpTopic, columns: number): Promise<string[]> {
  const width = Math.min(columns, MAX_COLUMNS);
  if (topic === 'version') return [VERSION];
  if (topic === 'config') return configHelp(width);
  const parser = newParser().wrap(width);
  if (topic === 'program') describeProgram(parser);
  else describeCommand(parser, topic);
  const options = optionsOf(topic === 'program' ? undefined : topic);
  return (await declareOptions(parser, options).getHelp()).split('\n');
}

function describeProgram(parser: Argv): void {
  parser.usage('$0 COMMAND').epilogue('Options of a command: dfinery-elt COMMAND --help.');
  for (const [name, { usage, summary }] of Object.entries(COMMANDS)) parser.command(`${name} ${usage}`.trim(), summary);
  parser.command('help config', 'List the variables with their meaning');
}

function describeCommand(parser: Argv, { name, targets, examples, docsPage }: NamedCommand): void {
  const { usage, summary } = COMMANDS[name];
  parser.usage(`${`$0 ${name} ${usage}`.trim()}\n\n${summary}.`);
  for (const line of examples) parser.example(`$0 ${line}`, '');
  const places = targets?.map((target) => placeUsage([target])).join(', ');
  const placeLines = places ? `TARGET PLACE: ${places}.\nDefault: target and place of dfinery.json.\n` : '';
  parser.epilogue(`${placeLines}More: docs/${docsPage}. Variables and keys: dfinery-elt help config.`);
}

const INTRODUCTION =
  'Each key of dfinery.json is also a variable, which wins over the file. Lists are names with commas, or JSON. A ' +
  'secret may also stand in a file that the variable + _FILE names.';

/** `help config`: every variable with its form, its default and its meaning. */
function configHelp(width: number): string[] {
  const linesOf = (configKeys: readonly ConfigKey[]) =>
    configKeys.flatMap((configKey) => [
      `  ${configKey.variableName}  ${describeForm(configKey)}`,
      ...wrappedLines(configKey.schema.description ?? '', width, '      '),
    ]);
  return [
    ...wrappedLines(INTRODUCTION, width),
    '',
    ...linesOf(FILE_KEYS),
    '',
    'In the object erasure of dfinery.json:',
    ...linesOf(ERASURE_KEYS),
  ];
}

export function describeForm({ schema, isRequired }: ConfigKey): string {
  const { enum: choices, airbyte_secret, default: defaultValue } = schema;
  const form = airbyte_secret ? 'a secret' : (choices?.join(' | ') ?? variableFormOf(schema).form);
  const isEmpty = ['[]', '{}', undefined].includes(JSON.stringify(defaultValue));
  return `(${form}${isRequired ? '; required' : isEmpty ? '' : `; ${String(defaultValue)}`})`;
}
