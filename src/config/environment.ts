import { type Env, secretFrom, variableText } from '../base/env.ts';
import { configError, UserError } from '../base/errors.ts';
import { isObject, parseJsonOfKind } from '../base/json.ts';
import { nearest } from './nearest.ts';
import type { Problem } from './problems.ts';

interface KeySchema {
  readonly type?: string;
  /** `uri` is an address to which something is sent. */
  readonly format?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly airbyte_secret?: boolean;
}

export type ConfigSchema = {
  readonly required: readonly string[];
  readonly properties: Readonly<Record<string, KeySchema>>;
};

/** A configuration key as an environment variable, `DFINERY_` and the key in capitals. */
export interface Variable {
  readonly name: string;
  readonly key: string;
  readonly keySchema: KeySchema;
  readonly isRequired: boolean;
}

const PREFIX = 'DFINERY_';

export const variableNameOf = (key: string): string => `${PREFIX}${key.toUpperCase()}`;

export const variablesOf = ({ properties, required }: ConfigSchema): Variable[] =>
  Object.entries(properties).map(([key, keySchema]) => {
    return { name: variableNameOf(key), key, keySchema, isRequired: required.includes(key) };
  });

/** Throws for an unknown variable with the program's prefix, which would be ignored. */
export function refuseUnknownVariables(env: Env, variables: readonly Variable[]): void {
  const secrets = variables.filter(({ keySchema }) => keySchema.airbyte_secret).map(({ name }) => name);
  const names = [...variables.map(({ name }) => name), ...secrets.map((name) => `${name}_FILE`)];
  const suffixes = names.map((name) => name.slice(PREFIX.length));
  const unknownNames: string[] = [];
  for (const name of Object.keys(env).sort()) {
    if (!name.toUpperCase().startsWith(PREFIX) || names.includes(name)) continue;
    const nearName = nearest(name.slice(PREFIX.length), suffixes, Number.POSITIVE_INFINITY);
    unknownNames.push(`${name} (did you mean ${PREFIX}${nearName}?)`);
  }
  if (unknownNames.length === 0) return;
  throw configError(`the environment has unknown variables: ${unknownNames.join(', ')}. Correct or unset them.`);
}

/**
 * The values of those variables that are set, by key. `variableNames`: the variables that gave them. `problems`: those
 * that cannot be used. An empty variable counts as not set.
 */
export function readVariables(variables: readonly Variable[], env: Env) {
  const values: Record<string, unknown> = {};
  const variableNames = new Map<string, string>();
  const problems: Problem[] = [];
  for (const { name, key, keySchema } of variables) {
    try {
      const variable = keySchema.airbyte_secret ? secretFrom(env, name) : { name, text: variableText(env, name) };
      if (variable?.text === undefined) continue;
      const { form, parse } = VARIABLE_FORMS[keySchema.type ?? 'string'];
      values[key] = parse(variable.text);
      variableNames.set(key, variable.name);
      if (values[key] === undefined) problems.push({ key, text: `${variable.name} is not usable, wanted ${form}` });
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      problems.push({ key, text: error.message.replace(/\.$/, '') });
    }
  }
  return { values, variableNames, problems };
}

/** The form that a variable of each type has. `parse` returns undefined for a text of another form. */
export const VARIABLE_FORMS: Readonly<Record<string, { readonly form: string; parse(text: string): unknown }>> = {
  boolean: { form: 'true or false', parse: (text) => (text === 'true' ? true : text === 'false' ? false : undefined) },
  integer: { form: 'a whole number', parse: (text) => (/^-?\d{1,15}$/.test(text) ? Number(text) : undefined) },
  array: { form: 'names with commas, without quotes, or a JSON array', parse: namesIn },
  object: { form: 'a JSON object', parse: (text) => parseJsonOfKind(isObject, text) },
  string: { form: 'a text', parse: (text) => text },
};

function namesIn(text: string): unknown {
  if (text.trimStart().startsWith('[')) return parseJsonOfKind(Array.isArray, text);
  const names = text.split(',').map((name) => name.trim());
  // The quotes would belong to the name.
  return names.some((name) => /^["']|["']$/.test(name)) ? undefined : names;
}
