import destinationSchema from '../../schemas/destination-config.json' with { type: 'json' };
import sourceSchema from '../../schemas/source-config.json' with { type: 'json' };
import { type ConfigSchema, type Property, variablesOf } from '../config/environment.ts';
import { tableLines } from './table.ts';

const SHORT: Readonly<Record<string, string>> = {
  boolean: 'true | false',
  integer: 'whole number',
  number: 'number',
  array: 'a,b or JSON',
  object: 'JSON object',
  string: 'text',
};

function formOf({ type, enum: choices, airbyte_secret }: Property): string {
  if (airbyte_secret) return 'secret; also …_FILE';
  return choices === undefined ? (SHORT[type ?? 'string'] ?? 'text') : choices.join(' | ');
}

const defaultOf = (value: unknown): string => {
  if (value === undefined || (typeof value === 'object' && JSON.stringify(value).length === 2)) return '';
  return String(value);
};

function help(schema: ConfigSchema): string {
  const rows = variablesOf(schema).map(({ name, key, property }) => [
    name,
    formOf(property),
    schema.required.includes(key) ? 'required' : defaultOf(property.default),
  ]);
  return [
    'Each configuration key is an environment variable too, and wins there over the file; without a file they are enough:',
    ...tableLines(['variable', 'value', 'default'], rows),
  ].join('\n');
}

/** The end of the help of commands that read the source configuration. */
export const sourceEnvironmentHelp = (): string => help(sourceSchema);

/** The end of the help of `forget`. */
export const destinationEnvironmentHelp = (): string => help(destinationSchema);
