import { FORMS, type Property, variablesOf } from '../config/environment.ts';
import { GLOBAL_OPTIONS, type Option } from './command.ts';
import { COMMANDS } from './commands/commands.ts';
import { CONFIG_SCHEMAS } from './configuration.ts';
import { declare, newParser } from './parse.ts';

const MAX_COLUMNS = 110;
const PLACES =
  'TARGET PLACE: duckdb FILE, parquet DIR, delta DIR or delta s3://BUCKET/PREFIX; of sync also arrow FILE or arrow -.';

/** The help of a command; without a name, of the program. */
export async function helpOf(name: string | undefined, columns: number): Promise<string> {
  const page = newParser().wrap(Math.min(columns, MAX_COLUMNS));
  const hint = ({ describe, isRequired, fallback }: Option<unknown>) =>
    `${describe}${isRequired ? ' [required]' : fallback === undefined ? '' : ` [${fallback}]`}`;
  if (name === undefined) {
    page.usage('$0 COMMAND').epilogue(PLACES);
    for (const [word, { words, summary }] of Object.entries(COMMANDS)) page.command(`${word} ${words}`.trim(), summary);
    page.command('help config', 'List the variables with their meaning');
    page.command('completion', 'Print a script that completes commands');
    return declare(page, GLOBAL_OPTIONS, hint).getHelp();
  }
  const { words, summary, load } = COMMANDS[name];
  const { options, examples, page: document } = (await load()).command;
  page.usage(`${`$0 ${name} ${words}`.trim()}\n\n${summary}.`);
  for (const line of examples) page.example(`$0 ${line}`, '');
  const places = words.includes('TARGET') ? `${PLACES}\n` : '';
  page.epilogue(`${places}More: docs/${document}. Variables and keys: dfinery-elt help config.`);
  return declare(page, { ...options, ...GLOBAL_OPTIONS }, hint).getHelp();
}

const INTRODUCTION =
  'Each key of dfinery.json is also a variable, which wins over the file. Lists are names with commas, or JSON. A ' +
  'secret may also stand in a file that the variable + _FILE names.';

/** `help config`: every variable with its form, its default and its meaning. */
export function configHelp(columns: number): string[] {
  const width = Math.min(columns, MAX_COLUMNS);
  const isShown = new Set<string>();
  const [source, local, erasure] = CONFIG_SCHEMAS.map(({ properties, required }) =>
    variablesOf({ properties, required })
      .filter(({ key }) => !isShown.has(key) && isShown.add(key))
      .flatMap(({ name, key, property }) => [
        `  ${name}  ${formOf(property, required.includes(key))}`,
        ...wrapped(property.description ?? '', width, '      '),
      ]),
  );
  return [
    ...wrapped(INTRODUCTION, width),
    '',
    ...source,
    ...local,
    '',
    'In the object erasure of dfinery.json:',
    ...erasure,
  ];
}

export function formOf(
  { type = 'string', enum: choices, airbyte_secret, default: standard }: Property,
  isRequired: boolean,
) {
  const form = airbyte_secret ? 'a secret' : (choices?.join(' | ') ?? FORMS[type]);
  const isEmpty = ['[]', '{}', undefined].includes(JSON.stringify(standard));
  return `(${form}${isRequired ? '; required' : isEmpty ? '' : `; ${String(standard)}`})`;
}

function wrapped(text: string, width: number, indent = ''): string[] {
  const lines: string[] = [];
  let line = indent;
  for (const word of text.split(' ')) {
    if (line.trim() !== '' && line.length + word.length + 1 > width) {
      lines.push(line);
      line = indent;
    }
    line += line.trim() === '' ? word : ` ${word}`;
  }
  return [...lines, line];
}
