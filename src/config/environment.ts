import { type Env, secretFrom, variableFrom } from '../base/env.ts';
import { configError, UserError } from '../base/errors.ts';
import { isObject, parseJsonOfKind } from '../base/json.ts';
import { type ConfigKey, type KeySchema, VARIABLE_PREFIX } from './keys.ts';
import { nearest } from './nearest.ts';
import type { Problem } from './problems.ts';

/** Throws for an unknown variable with the program's prefix, which would be ignored. */
export function refuseUnknownVariables(env: Env, configKeys: readonly ConfigKey[]): void {
  const names = configKeys.flatMap(({ variableName, schema }) =>
    schema.airbyte_secret ? [variableName, `${variableName}_FILE`] : [variableName],
  );
  const unknownNames = Object.keys(env).filter(
    (name) => name.toUpperCase().startsWith(VARIABLE_PREFIX) && !names.includes(name),
  );
  if (unknownNames.length === 0) return;
  const suffixes = names.map((name) => name.slice(VARIABLE_PREFIX.length));
  const texts = unknownNames.sort().map((name) => {
    const nearSuffix = nearest(name.slice(VARIABLE_PREFIX.length), suffixes, Number.POSITIVE_INFINITY);
    return `${name} (did you mean ${VARIABLE_PREFIX}${nearSuffix}?)`;
  });
  throw configError(`the environment has unknown variables: ${texts.join(', ')}. Correct or unset them.`);
}

export type Variables = ReturnType<typeof readVariables>;

/**
 * Reads the variables of these keys: the values and the names of the variables that gave them, by key, and what is wrong
 * with the others. An empty variable counts as not set.
 */
export function readVariables(configKeys: readonly ConfigKey[], env: Env) {
  const values: Record<string, unknown> = {};
  const variableNameByKey = new Map<string, string>();
  const problems: Problem[] = [];
  for (const { key, variableName, schema } of configKeys) {
    try {
      const variable = schema.airbyte_secret ? secretFrom(env, variableName) : variableFrom(env, variableName);
      if (variable === undefined) continue;
      const { form, parse } = variableFormOf(schema);
      const value = parse(variable.text);
      if (value === undefined) throw configError(`${variable.name} is not usable, wanted ${form}.`);
      values[key] = value;
      variableNameByKey.set(key, variable.name);
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      problems.push({ key, text: error.message.replace(/\.$/, '') });
    }
  }
  return { values, variableNameByKey, problems };
}

/** The form that the variable of a key has. `parse` returns undefined for a text of another form. */
export const variableFormOf = ({ type = 'string', items }: KeySchema) =>
  VARIABLE_FORMS[items?.type === 'object' ? 'array of objects' : type];

/** By the type of a schema. Names may stand between commas, objects may not. */
const VARIABLE_FORMS: Readonly<Record<string, { readonly form: string; parse(text: string): unknown }>> = {
  boolean: { form: 'true or false', parse: (text) => (/^(true|false)$/.test(text) ? text === 'true' : undefined) },
  integer: { form: 'a whole number', parse: (text) => (/^-?\d{1,15}$/.test(text) ? Number(text) : undefined) },
  array: { form: 'names with commas, without quotes, or a JSON array', parse: namesIn },
  'array of objects': { form: 'a JSON array', parse: (text) => parseJsonOfKind(Array.isArray, text) },
  object: { form: 'a JSON object', parse: (text) => parseJsonOfKind(isObject, text) },
  string: { form: 'a text', parse: (text) => text },
};

function namesIn(text: string): unknown {
  if (text.trimStart().startsWith('[')) return parseJsonOfKind(Array.isArray, text);
  const names = text.split(',').map((name) => name.trim());
  // The quotes would belong to the name.
  return names.some((name) => /^["']|["']$/.test(name)) ? undefined : names;
}
