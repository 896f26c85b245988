// This folder: from untrusted values and environment variables to configurations with every default filled in. Each
// key has its schema under schemas/. `parsePart` parses the keys of one schema:
//
//   raw values   by key, as a user wrote them: `{ "lookback_days": "" }`
//   values       without those that are left out, checked, with defaults: `{ lookback_days: 3 }`
//   fields       by names in camel case (`fields.ts`); secrets are wrapped: `{ lookbackDays: 3 }`
//   config       what `makeConfig` of the part makes of the fields, checked by its `ruleProblems`, and frozen
//
// The parts are in `source.ts`, `destination.ts` and `local.ts`, each a schema with what it cannot say. `keys.ts` lists
// the keys of a schema, and `environment.ts` reads their variables. `problems.ts` says what is wrong. `nearest.ts` finds
// the name that was probably meant.

import type { Env } from '../base/env.ts';
import { configError } from '../base/errors.ts';
import { isObject, type JsonObject } from '../base/json.ts';
import { Secret } from '../base/secrets.ts';
import type { Validator } from '../base/validator.ts';
import { readVariables } from './environment.ts';
import { type ConfigWith, camelCase, type Fields, type RequiredKey, toFields } from './fields.ts';
import { type ConfigSchema, configKeysOf, unknownKeyTexts } from './keys.ts';
import { keyProblem, type Problem, problemsError, schemaProblems } from './problems.ts';

/** The keys of one schema, with what it cannot say. */
interface ConfigPart<S extends ConfigSchema, C> {
  readonly schema: S;
  readonly validate: Validator;
  /** Makes the configuration of fields whose values fit the schema. */
  makeConfig(fields: Fields<S>): C;
  /** The keys that other keys need, by key: `hash_key` needs to be there beside `columns_hash`. */
  readonly neededBeside?: Readonly<Record<string, string>>;
  /** A problem for each further rule that the configuration breaks. */
  ruleProblems?(config: NoInfer<C>): Iterable<Problem>;
}

export interface ParsedConfig<C> {
  readonly config: C;
  /** A text for each key that is not known, with the known key that was probably meant. */
  readonly unknownKeyTexts: readonly string[];
  /** The secrets of the configuration, which no message may show. */
  readonly secrets: readonly Secret[];
}

/**
 * Parses the untrusted configuration of a connector. Missing secrets are looked for in the environment. Throws a
 * configuration failure that lists the problems, those of the environment first.
 */
export function parseConnectorConfig<S extends ConfigSchema, C extends object>(
  part: ConfigPart<S, C>,
  rawConfig: unknown,
  env: Env,
): ParsedConfig<ConfigWith<C, RequiredKey>> {
  const rawValues = requireObject(rawConfig);
  const configKeys = configKeysOf(part.schema);
  const missingSecrets = configKeys.filter(({ key, schema }) => schema.airbyte_secret && isLeftOut(rawValues[key]));
  const variables = readVariables(missingSecrets, env);
  if (variables.problems.length > 0) throw problemsError('the configuration', variables.problems);
  const { config, problems } = parsePart(part, { ...rawValues, ...variables.values });
  if (config === undefined) throw problemsError('the configuration', problems);
  const missing = missingKeyProblems(part, config);
  if (missing.length > 0) throw problemsError('the configuration', missing);
  return {
    config: config as ConfigWith<C, RequiredKey>,
    unknownKeyTexts: unknownKeyTexts(configKeys, rawValues),
    secrets: Object.values(config).filter((field) => field instanceof Secret),
  };
}

/** Parses the values of a part's keys, some of which may be missing. There are problems, or there is a configuration. */
export function parsePart<S extends ConfigSchema, C extends object>(
  { schema, validate, makeConfig, ruleProblems = () => [] }: ConfigPart<S, C>,
  rawValues: object,
): { readonly config: Readonly<C> | undefined; readonly problems: readonly Problem[] } {
  const values = presentValues(rawValues, schema);
  const valueProblems = schemaProblems(validate, values);
  if (valueProblems.length > 0) return { config: undefined, problems: valueProblems };
  const config = makeConfig(toFields(schema, values));
  const problems = [...ruleProblems(config)];
  return { config: problems.length > 0 ? undefined : Object.freeze(config), problems };
}

/** A problem for each key that is needed, and that a configuration has no field for. */
export function missingKeyProblems(
  { schema, neededBeside = {} }: Pick<ConfigPart<ConfigSchema, object>, 'schema' | 'neededBeside'>,
  config: object,
): Problem[] {
  const fields: JsonObject = { ...config };
  const isThere = (key: string) => {
    const field = fields[camelCase(key)];
    return field !== undefined && !(Array.isArray(field) && field.length === 0);
  };
  return [
    ...schema.required.filter((key) => !isThere(key)).map((key) => keyProblem(key, 'is missing')),
    ...Object.entries(neededBeside)
      .filter(([key, otherKey]) => isThere(otherKey) && !isThere(key))
      .map(([key, otherKey]) => keyProblem(key, `is missing beside ${otherKey}`)),
  ];
}

/** True for a key without a value: the platform writes null for it, and a form an empty text. */
const isLeftOut = (value: unknown): boolean => value === undefined || value === null || value === '';

/** The values that are not left out. JSON may have `true` where the schema has the choice "true". */
function presentValues(rawValues: object, { properties }: ConfigSchema): JsonObject {
  const entries = Object.entries(rawValues).filter(([, value]) => !isLeftOut(value));
  const isTextChoice = (key: string, value: unknown) =>
    typeof value === 'boolean' && properties[key]?.enum?.includes(String(value));
  return Object.fromEntries(entries.map(([key, value]) => [key, isTextChoice(key, value) ? String(value) : value]));
}

export function requireObject(value: unknown): JsonObject {
  if (isObject(value)) return value;
  throw configError('the configuration is not a JSON object: wanted { "base_url": …, "service_id": …, … }.');
}
