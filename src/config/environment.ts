import destination from '../../schemas/destination-config.json' with { type: 'json' };
import source from '../../schemas/source-config.json' with { type: 'json' };
import { type Env, secretFrom } from '../base/env.ts';
import { configError, messageOf } from '../base/errors.ts';
import { isObject, jsonOf } from '../base/json.ts';
import { nearest } from './nearest.ts';
import { type Problem, refuse, shown } from './problems.ts';

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

export const variableOf = (key: string): string => `${PREFIX}${key.toUpperCase()}`;

/** Each configuration key as an environment variable, `DFINERY_` and the key in capitals. */
export const variablesOf = ({ properties }: ConfigSchema) =>
  Object.entries(properties).map(([key, property]) => ({ name: variableOf(key), key, property }));

type Variable = ReturnType<typeof variablesOf>[number];

/** Secrets that commands read beside the configuration; each also as `_FILE`. */
const OTHER_SECRETS = ['DFINERY_LEDGER_KEY', 'DFINERY_NOTIFY_URL', 'DFINERY_SUPPRESSION_KEY'];
/** Variables of the examples. The command line inherits them there, but does not read them. */
const EXAMPLE_NAMES = ['CLI', 'CONFIG', 'TARGET', 'IMAGE', 'DATA', 'DOCKER_URL', 'DOCKER_NETWORK', 'DUCKDB'].map(
  (name) => `${PREFIX}${name}`,
);
/** Variables that Kubernetes sets in every pod of a namespace with a service called dfinery…. */
const OF_KUBERNETES = /_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$/;

/**
 * How to give a configuration key that was written as an option, `--lookback-days`; undefined if there is none.
 */
export function configurationHint(option: string): string | undefined {
  const found = allVariables().find(({ key }) => key === option.replace(/^--/, '').replaceAll('-', '_'));
  if (found === undefined) return undefined;
  const { name, key, property } = found;
  if (!property.airbyte_secret) return `${key} is a key of the configuration file, or set ${name}.`;
  return `the command line is visible to other users, so set ${name}, or ${name}${FILE} to the path of a file that holds the secret.`;
}

const allVariables = (): Variable[] => [...variablesOf(source), ...variablesOf(destination)];

function knownNames(): string[] {
  const variables = allVariables();
  const secrets = variables.filter(({ property }) => property.airbyte_secret).map(({ name }) => name);
  const files = [...secrets, ...OTHER_SECRETS].map((name) => `${name}${FILE}`);
  return [...new Set([...variables.map(({ name }) => name), ...OTHER_SECRETS, ...files, ...EXAMPLE_NAMES])];
}

/** Throws for an unknown variable with the program's prefix, which would be ignored. */
export function refuseUnknownNames(env: Env): void {
  const known = knownNames();
  const unknownNames = (env.names?.() ?? []).filter(
    (name) => name.toUpperCase().startsWith(PREFIX) && !known.includes(name) && !OF_KUBERNETES.test(name),
  );
  if (unknownNames.length === 0) return;
  const keys = known.map((name) => name.slice(PREFIX.length));
  const named = unknownNames
    .sort()
    .map((name) => `${name} (did you mean ${PREFIX}${nearest(name.slice(PREFIX.length), keys)}?)`);
  throw configError(`the environment has unknown variables: ${named.join(', ')}. Correct or unset them.`);
}

/**
 * Reads every key of the schema that the environment has, and the names of the variables that gave them; an empty
 * variable counts as not set.
 */
export function readEnvironment(schema: ConfigSchema, env: Env) {
  const values: Record<string, unknown> = {};
  const names = new Map<string, string>();
  const problems: Problem[] = [];
  for (const variable of variablesOf(schema)) {
    const found = readVariable(variable, env, problems);
    if (found === undefined) continue;
    const value = typedValue(found.text, variable.property.type);
    if (value === undefined) problems.push(invalidValue(found.name, found.text, variable));
    else values[variable.key] = value;
    names.set(variable.key, found.name);
  }
  const secrets = variablesOf(schema).flatMap(({ key, property }) => (property.airbyte_secret ? [values[key]] : []));
  refuse('the environment is not usable', { problems, further: [], unknown: [], secrets });
  return { values, names };
}

/** The text of a variable or of the file that it names, and the name of what gave it. */
function readVariable({ name, key, property }: Variable, env: Env, problems: Problem[]) {
  if (!property.airbyte_secret) {
    const text = env(name) || undefined;
    return text === undefined ? undefined : { name, text };
  }
  try {
    return secretFrom(env, name);
  } catch (error) {
    problems.push({ key, text: messageOf(error).replace(/\.$/, '') });
    return undefined;
  }
}

function typedValue(text: string, type: string | undefined): unknown {
  if (type === 'boolean') return text === 'true' ? true : text === 'false' ? false : undefined;
  if (type === 'integer') return /^-?\d{1,15}$/.test(text) ? Number(text) : undefined;
  if (type === 'number') return /^-?\d{1,15}(\.\d{1,15})?$/.test(text) ? Number(text) : undefined;
  if (type === 'array') return text.trimStart().startsWith('[') ? json(text, Array.isArray) : separated(text);
  if (type === 'object') return json(text, isObject);
  return text;
}

const separated = (text: string): string[] => text.split(',').map((part) => part.trim());

function json(text: string, fits: (value: unknown) => boolean): unknown {
  const value = jsonOf(text);
  return fits(value) ? value : undefined;
}

/** The forms that a variable of each type may have. */
export const FORMS: Readonly<Record<string, string>> = {
  boolean: 'true or false',
  integer: 'a whole number',
  number: 'a number',
  array: 'names with commas or JSON array',
  object: 'a JSON object',
  string: 'a text',
};

const invalidValue = (name: string, text: string, { key, property }: Variable): Problem => ({
  key,
  text: `${name} is ${shown(text)}, wanted ${FORMS[property.type ?? 'string']}`,
});
