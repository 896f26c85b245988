// This folder: from untrusted values and environment variables to configurations with every default filled in. Each
// key has its schema under schemas/. What a schema cannot say stands in source.ts, local.ts and service-keys.ts.

import type { Env } from '../base/env.ts';
import { configError } from '../base/errors.ts';
import { isObject } from '../base/json.ts';
import { Secret } from '../base/secrets.ts';
import type { Validator } from '../base/validator.ts';
import { cleanBaseUrl } from './base-url.ts';
import { type ConfigSchema, readVariables, variablesOf } from './environment.ts';
import { nearest } from './nearest.ts';
import { type Problem, schemaProblems, throwProblems } from './problems.ts';
import { serviceProblems } from './service-keys.ts';

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
  readonly [K in keyof S['properties'] & string as CamelCase<K>]: K extends keyof StructuredValues
    ? StructuredValues[K]
    : ValueOf<S['properties'][K]>;
};

/** Values that are more than a text, a number or a list of names. Their schemas check them. */
interface StructuredValues {
  readonly places: readonly { readonly target: string; readonly place: string }[] | undefined;
}

/** The keys that a connector needs, and of the command line some commands. */
export type RequiredKey = 'base_url' | 'service_id' | 'export_token' | 'import_token';

/** A configuration in which the fields of these keys are not missing. */
export type ConfigHaving<C, K extends RequiredKey> = Readonly<C> & {
  readonly [F in keyof C & CamelCase<K>]: NonNullable<C[F]>;
};

/** A schema, with what it cannot say. */
interface ConfigPart<S extends ConfigSchema, C> {
  readonly schema: S;
  readonly validate: Validator;
  /** Gives values narrower types, or makes others of them. */
  configOf(values: ValuesOf<S>): C;
  /** The problems that a JSON schema cannot express; values of a wrong type are left to the schema. */
  ruleProblems?(values: Readonly<Record<string, unknown>>): readonly Problem[];
}

export interface ParsedConfig<C> {
  readonly config: C;
  /** Unknown keys, each with the known key that was probably meant. */
  readonly unknownKeyTexts: readonly string[];
  /** The secrets of the configuration, which no message may show. */
  readonly secrets: readonly Secret[];
}

/**
 * Parses the untrusted configuration of a connector. Missing secrets are looked for in the environment. Throws one
 * configuration failure that lists every problem.
 */
export function parseForConnector<S extends ConfigSchema, C extends object>(
  part: ConfigPart<S, C>,
  value: unknown,
  env: Env,
): ParsedConfig<ConfigHaving<C, RequiredKey>> {
  const object = objectOf(value);
  const isSought = ({ key, property }: ReturnType<typeof variablesOf>[number]) =>
    property.airbyte_secret === true && (object[key] ?? '') === '';
  const environment = readVariables(variablesOf(part.schema).filter(isSought), env);
  const { values, problems } = checked({ ...object, ...environment.values }, part, environment.problems);
  throwProblems('the configuration is not usable', problems);
  const config = frozenConfig(values, part) as ConfigHaving<C, RequiredKey>;
  return {
    config,
    unknownKeyTexts: unknownKeyTexts(Object.keys(part.schema.properties), object),
    secrets: Object.values(config).filter((field) => field instanceof Secret),
  };
}

/**
 * Parses those values of a command that belong to a part. Throws for values that are wrong. Keys that are missing may
 * still be needed: `missingKeys` has their problems. `names`: the variables that gave keys.
 */
export function parseForCommand<S extends ConfigSchema, C extends object>(
  part: ConfigPart<S, C>,
  allValues: Readonly<Record<string, unknown>>,
  names: ReadonlyMap<string, string>,
): { readonly config: Readonly<C>; readonly missingKeys: readonly Problem[] } {
  const { values, problems } = checked(allValues, part);
  const refused = problems.filter(({ isMissing }) => isMissing !== true);
  throwProblems('the configuration is not usable', refused, names);
  return { config: frozenConfig(values, part), missingKeys: problems };
}

/** The values with every default filled in, and their problems. A key with an `earlier` problem gets no further one. */
function checked<S extends ConfigSchema, C>(
  object: object,
  { schema, validate, ruleProblems = () => [] }: ConfigPart<S, C>,
  earlier: readonly Problem[] = [],
) {
  const values = usableValues(object, schema);
  // The validation also fills in the defaults.
  const mismatches = [...earlier, ...ofOtherKeys(schemaProblems(validate, values), earlier)];
  const rules = [...serviceProblems(values, Object.keys(schema.properties)), ...ruleProblems(values)];
  return { values, problems: [...mismatches, ...ofOtherKeys(rules, mismatches)] };
}

/** Those problems whose keys have none yet. */
function ofOtherKeys(problems: readonly Problem[], earlier: readonly Problem[]): Problem[] {
  const keysWithProblem = new Set(earlier.map(({ key }) => key));
  return problems.filter(({ key }) => !keysWithProblem.has(key));
}

/**
 * The values that are given: the platform writes null, and a form an empty text, for any other key. JSON has true for a
 * choice "true".
 */
function usableValues(object: object, { properties }: ConfigSchema): Record<string, unknown> {
  const entries = Object.entries(object)
    .filter(([, member]) => (member ?? '') !== '')
    .map(([key, member]) => {
      const isChoice = typeof member === 'boolean' && properties[key]?.enum?.includes(String(member));
      return [key, isChoice ? String(member) : member];
    });
  return Object.fromEntries(entries);
}

/** The frozen configuration of values without problems. */
function frozenConfig<S extends ConfigSchema, C extends object>(
  values: Readonly<Record<string, unknown>>,
  { schema, configOf }: ConfigPart<S, C>,
): Readonly<C> {
  const fields = Object.entries(schema.properties).map(([key, { airbyte_secret: isSecret }]) => {
    const value = values[key];
    if (typeof value !== 'string') return [camelCase(key), value];
    return [camelCase(key), isSecret ? new Secret(value) : key === 'base_url' ? cleanBaseUrl(value) : value];
  });
  return Object.freeze(configOf(Object.fromEntries(fields) as ValuesOf<S>));
}

const camelCase = (key: string): string => key.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());

export function objectOf(value: unknown): Record<string, unknown> {
  if (isObject(value)) return value;
  throw configError('the configuration is not a JSON object: wanted { "base_url": …, "service_id": …, … }.');
}

/** Keys that are not known, with the known key each was probably meant to be. */
export const unknownKeyTexts = (keys: readonly string[], object: object): string[] =>
  Object.keys(object)
    .filter((key) => !keys.includes(key) && !key.startsWith('_'))
    .map((key) => {
      const near = nearest(key, keys);
      return near === undefined ? key : `${key} (did you mean ${near}?)`;
    });
