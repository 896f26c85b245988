// This folder: from untrusted values and environment variables to configurations with every default filled in. Each
// key has its schema under schemas/. `environment.ts` reads it from its variable. `parsePart` checks a part of the keys,
// and names them in camel case. The parts are in `source.ts`, `destination.ts` and `local.ts`, with what their schemas
// cannot say. `problems.ts` says what is wrong, and `nearest.ts` finds the name that was probably meant.

import { addressProblem, cleanBaseUrl } from '../base/address.ts';
import type { Env } from '../base/env.ts';
import { configError } from '../base/errors.ts';
import { isObject } from '../base/json.ts';
import { Secret } from '../base/secrets.ts';
import type { Validator } from '../base/validator.ts';
import { type ConfigKey, type ConfigSchema, configKeysOf, readVariables } from './environment.ts';
import { nearest } from './nearest.ts';
import { isWrong, type Problem, problemOf, problemsError, schemaProblems } from './problems.ts';

/** A schema, with what it cannot say. */
interface ConfigPart<S extends ConfigSchema, C> {
  readonly schema: S;
  readonly validate: Validator;
  /** Makes the configuration of values that each fit the schema. */
  configOf(values: ValuesOf<S>): C;
  /** One problem for each further rule, or false if the configuration keeps it. */
  ruleProblems?(config: NoInfer<C>): readonly (Problem | false)[];
}

export interface ParsedConfig<C> {
  readonly config: C;
  /** Unknown keys, each with the known key that was probably meant. */
  readonly unknownKeyTexts: readonly string[];
  /** The secrets of the configuration, which no message may show. */
  readonly secrets: readonly Secret[];
}

/**
 * Parses the untrusted configuration of a connector. Missing secrets are looked for in the environment. Throws a
 * configuration failure that lists the problems, those of the environment first.
 */
export function parseForConnector<S extends ConfigSchema, C extends object>(
  part: ConfigPart<S, C>,
  value: unknown,
  env: Env,
): ParsedConfig<ConfigHaving<C, RequiredKey>> {
  const object = requireObject(value);
  const configKeys = configKeysOf(part.schema);
  const missingSecrets = configKeys.filter(({ key, schema }) => schema.airbyte_secret && (object[key] ?? '') === '');
  const fromEnvironment = readVariables(missingSecrets, env);
  if (fromEnvironment.problems.length > 0) throw problemsError('the configuration', fromEnvironment.problems);
  const { config, problems } = parsePart(part, { ...object, ...fromEnvironment.values });
  if (config === undefined || problems.length > 0) throw problemsError('the configuration', problems);
  return {
    config: config as ConfigHaving<C, RequiredKey>,
    unknownKeyTexts: describeUnknownKeys(configKeys, object),
    secrets: Object.values(config).filter((field) => field instanceof Secret),
  };
}

/** Parses those values that have a key of a part. The configuration is undefined if one is wrong, not if one is missing. */
export function parsePart<S extends ConfigSchema, C extends object>(
  { schema, validate, configOf, ruleProblems = () => [] }: ConfigPart<S, C>,
  object: object,
): { readonly config: Readonly<C> | undefined; readonly problems: readonly Problem[] } {
  const values = usableValues(object, schema);
  // The validation also fills in the defaults.
  const problems = schemaProblems(validate, values);
  if (problems.some(isWrong)) return { config: undefined, problems };
  const fields = Object.entries(schema.properties).map(([key, { airbyte_secret: isSecret, format }]) => {
    const value = values[key];
    if (typeof value !== 'string') return [camelCase(key), value];
    return [camelCase(key), isSecret ? new Secret(value) : format === 'uri' ? cleanBaseUrl(value) : value];
  });
  const config = configOf(Object.fromEntries(fields) as ValuesOf<S>);
  problems.push(...addressProblems(values, schema), ...ruleProblems(config).filter((problem) => problem !== false));
  return { config: problems.some(isWrong) ? undefined : Object.freeze(config), problems };
}

/**
 * The values that are given: the platform writes null, and a form an empty text, for any other key. JSON has true for a
 * choice "true".
 */
function usableValues(object: object, { properties }: ConfigSchema): Record<string, unknown> {
  const textOfChoice = (key: string, member: unknown) =>
    typeof member === 'boolean' && properties[key]?.enum?.includes(String(member)) ? String(member) : member;
  const entries = Object.entries(object).filter(([, member]) => (member ?? '') !== '');
  return Object.fromEntries(entries.map(([key, member]) => [key, textOfChoice(key, member)]));
}

/** What is wrong with the addresses to which something is sent. */
const addressProblems = (values: Record<string, unknown>, { properties }: ConfigSchema): Problem[] =>
  Object.entries(properties).flatMap(([key, { format }]) => {
    const value = values[key];
    const clause = format === 'uri' && typeof value === 'string' ? addressProblem(value) : undefined;
    return clause === undefined ? [] : [problemOf(key, clause)];
  });

const camelCase = (key: string): string => key.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());

export function requireObject(value: unknown): Record<string, unknown> {
  if (isObject(value)) return value;
  throw configError('the configuration is not a JSON object: wanted { "base_url": …, "service_id": …, … }.');
}

/** Keys that are not known, with the known key each was probably meant to be. */
export function describeUnknownKeys(configKeys: readonly ConfigKey[], object: object): string[] {
  const keys = configKeys.map(({ key }) => key);
  return Object.keys(object)
    .filter((key) => !keys.includes(key) && !key.startsWith('_'))
    .map((key) => {
      const nearKey = nearest(key, keys);
      return nearKey === undefined ? key : `${key} (did you mean ${nearKey}?)`;
    });
}

/** The keys that a connector needs, and of the command line some commands. */
export type RequiredKey = 'base_url' | 'service_id' | 'export_token' | 'import_token';

/** A configuration in which the fields of these keys are not missing. */
export type ConfigHaving<C, K extends RequiredKey> = Readonly<C> & {
  readonly [F in keyof C & CamelCase<K>]: NonNullable<C[F]>;
};

type CamelCase<K extends string> = K extends `${infer First}_${infer Rest}`
  ? `${First}${Capitalize<CamelCase<Rest>>}`
  : K;

/** The type of a value: a secret, that of the default, or a text. A test holds the schemas to it. */
type ValueOf<P> = P extends { airbyte_secret: boolean }
  ? Secret | undefined
  : P extends { default: infer D }
    ? D extends never[]
      ? readonly string[]
      : D
    : string | undefined;

/** The values that a schema found valid, by key in camel case. Each key without a default may be missing. */
export type ValuesOf<S extends ConfigSchema> = {
  readonly [K in keyof S['properties'] & string as CamelCase<K>]: K extends keyof DeclaredTypes
    ? DeclaredTypes[K]
    : ValueOf<S['properties'][K]>;
};

/** The types of choices and of lists of objects, which TypeScript does not read from a schema. Their schemas check them. */
interface DeclaredTypes {
  readonly events_condition_type: 'all' | 'include' | 'exclude' | undefined;
  readonly properties_condition_type: 'all' | 'include' | 'exclude' | undefined;
  readonly to_date_inclusive: 'auto' | 'true' | 'false';
  readonly on_gap: 'fail' | 'warn';
  readonly schema_mode: 'evolve' | 'freeze';
  readonly on_rejected: 'fail' | 'continue';
  readonly places: readonly { readonly target: string; readonly place: string }[] | undefined;
}
