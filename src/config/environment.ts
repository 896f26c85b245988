import { type Env, secretFrom, variableText } from '../base/env.ts';
import { configError, messageOf } from '../base/errors.ts';
import { isObject, jsonOf } from '../base/json.ts';
import { nearest } from './nearest.ts';
import { type Problem, refuse } from './problems.ts';

export interface Property {
  readonly type?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly airbyte_secret?: boolean;
}

export type ConfigSchema = {
  readonly required: readonly string[];
  readonly properties: Readonly<Record<string, Property>>;
};

const PREFIX = 'DFINERY_';
const FILE = '_FILE';
/** The secret of `--notify`, which is no key of the configuration. */
const NOTIFY_VARIABLE = `${PREFIX}NOTIFY_URL`;

export const variableOf = (key: string): string => `${PREFIX}${key.toUpperCase()}`;

/** Each configuration key as an environment variable, `DFINERY_` and the key in capitals. */
export const variablesOf = ({ properties }: ConfigSchema) =>
  Object.entries(properties).map(([key, property]) => ({ name: variableOf(key), key, property }));

type Variable = ReturnType<typeof variablesOf>[number];

/** Throws for an unknown variable with the program's prefix, which would be ignored. */
export function refuseUnknownNames(env: Env, schemas: readonly ConfigSchema[]): void {
  const variables = schemas.flatMap(variablesOf);
  const secrets = variables.filter(({ property }) => property.airbyte_secret).map(({ name }) => name);
  const files = [...secrets, NOTIFY_VARIABLE].map((name) => `${name}${FILE}`);
  const names = [...new Set([...variables.map(({ name }) => name), NOTIFY_VARIABLE, ...files])];
  const keys = names.map((name) => name.slice(PREFIX.length));
  const unknown = (env.names?.() ?? [])
    .filter((name) => name.toUpperCase().startsWith(PREFIX) && !names.includes(name))
    .sort()
    .map((name) => `${name} (did you mean ${PREFIX}${nearest(name.slice(PREFIX.length), keys)}?)`);
  if (unknown.length === 0) return;
  throw configError(`the environment has unknown variables: ${unknown.join(', ')}. Correct or unset them.`);
}

/**
 * Reads every key of the schema that the environment has, and the names of the variables that gave them; an empty
 * variable counts as not set.
 */
export function readEnvironment(schema: ConfigSchema, env: Env) {
  const values: Record<string, unknown> = {};
  const names = new Map<string, string>();
  const problems: Problem[] = [];
  for (const { name, key, property } of variablesOf(schema)) {
    const variable = readVariable({ name, key, property }, env, problems);
    if (variable === undefined) continue;
    const value = typedValue(variable.text, property.type);
    if (value === undefined)
      problems.push({ key, text: `${variable.name} is not usable, wanted ${FORMS[property.type ?? 'string']}` });
    else values[key] = value;
    names.set(key, variable.name);
  }
  refuse('the environment is not usable', problems);
  return { values, names };
}

/** The text of a variable or of the file that it names, and the name of what gave it. */
function readVariable({ name, key, property }: Variable, env: Env, problems: Problem[]) {
  try {
    if (property.airbyte_secret) return secretFrom(env, name);
    const text = variableText(env, name);
    if (property.type === 'array' && text !== undefined && !isJsonArray(text)) checkNames(separated(text), name);
    return text === undefined ? undefined : { name, text };
  } catch (error) {
    problems.push({ key, text: messageOf(error).replace(/\.$/, '') });
    return undefined;
  }
}

function checkNames(names: readonly string[], variable: string): void {
  if (!names.some((name) => /^["']|["']$/.test(name))) return;
  throw configError(`${variable} has quotes around a name, which belong to the name here: remove the quotes.`);
}

function typedValue(text: string, type: string | undefined): unknown {
  if (type === 'boolean') return text === 'true' ? true : text === 'false' ? false : undefined;
  if (type === 'integer') return /^-?\d{1,15}$/.test(text) ? Number(text) : undefined;
  if (type === 'array') return isJsonArray(text) ? json(text, Array.isArray) : separated(text);
  if (type === 'object') return json(text, isObject);
  return text;
}

const isJsonArray = (text: string): boolean => text.trimStart().startsWith('[');
const separated = (text: string): string[] => text.split(',').map((part) => part.trim());

function json(text: string, fits: (value: unknown) => boolean): unknown {
  const value = jsonOf(text);
  return fits(value) ? value : undefined;
}

/** The forms that a variable of each type may have. */
export const FORMS: Readonly<Record<string, string>> = {
  boolean: 'true or false',
  integer: 'a whole number',
  array: 'names with commas, or a JSON array',
  object: 'a JSON object',
  string: 'a text',
};
