// This folder: from untrusted values and environment variables to configurations with every default filled in. Each
// key has its schema under schemas/. What a schema cannot say stands in source.ts, destination.ts and local.ts.

import type { Env } from '../base/env.ts';
import { configError } from '../base/errors.ts';
import { isObject } from '../base/json.ts';
import { nearest } from '../base/nearest.ts';
import { Secret } from '../base/secrets.ts';
import type { Validator } from '../base/validator.ts';
import { baseUrlProblem, cleanBaseUrl } from './base-url.ts';
import { type ConfigSchema, readVariables, variablesOf } from './environment.ts';
import { type Problem, schemaProblems, throwProblems } from './problems.ts';

export type CamelCase<K extends string> = K extends `${infer First}_${infer Rest}`
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

/** A configuration in which these fields are not missing. */
export type Having<C, F extends keyof C> = Readonly<C> & { readonly [P in F]: NonNullable<C[P]> };

type RequiredField<C> = keyof C & CamelCase<'base_url' | 'service_id' | 'export_token' | 'import_token'>;

/** A schema, with what it cannot say. */
interface ConfigPart<S extends ConfigSchema, C> {
  readonly schema: S;
  readonly validate: Validator;
  /** Gives values narrower types, or makes others of them. */
  configOf(values: ValuesOf<S>): C;
  /** The problems that a JSON schema cannot express; values of a wrong type are left to the schema. */
  problems?(values: Readonly<Record<string, unknown>>): readonly Problem[];
}

export interface ParsedConfig<C> {
  readonly config: C;
  /** Unknown keys, which the connectors warn about. */
  readonly unknown: readonly string[];
  /** The secrets of the configuration, which no message may show. */
  readonly secrets: readonly Secret[];
}

/**
 * Parses the untrusted configuration of a connector. Missing secrets are looked for in the environment. Throws one
 * configuration failure that lists every problem.
 */
export function parseConfig<S extends ConfigSchema, C extends object>(
  part: ConfigPart<S, C>,
  value: unknown,
  env: Env,
): ParsedConfig<Having<C, RequiredField<C>>> {
  const object = objectOf(value);
  const isSought = ({ key, property }: ReturnType<typeof variablesOf>[number]) =>
    property.airbyte_secret === true && (object[key] ?? '') === '';
  const environment = readVariables(variablesOf(part.schema).filter(isSought), env);
  const values = usableValues({ ...object, ...environment.values }, part.schema);
  const problems = [...environment.problems, ...ofOtherKeys(problemsOf(values, part), environment.problems)];
  throwProblems('the configuration is not usable', problems);
  const config = configIn(values, part) as Having<C, RequiredField<C>>;
  const unknown = unknownKeys(Object.keys(part.schema.properties), object);
  return { config, unknown, secrets: Object.values(config).filter((field) => field instanceof Secret) };
}

/**
 * Parses those values that belong to a part. Throws for values that are wrong. Keys that are missing may still be
 * needed: `missingKeys` has their problems. `names`: the variables that gave keys.
 */
export function parsePart<S extends ConfigSchema, C extends object>(
  part: ConfigPart<S, C>,
  allValues: Readonly<Record<string, unknown>>,
  names: ReadonlyMap<string, string>,
): { readonly config: Readonly<C>; readonly missingKeys: readonly Problem[] } {
  const values = usableValues(allValues, part.schema);
  const problems = problemsOf(values, part);
  const refused = problems.filter(({ isMissing }) => isMissing !== true);
  throwProblems('the configuration is not usable', refused, names);
  return { config: configIn(values, part), missingKeys: problems };
}

/** The platform writes null, and a form an empty text, for a key that is not given. JSON has true for a choice "true". */
function usableValues(object: object, { properties }: ConfigSchema): Record<string, unknown> {
  const entries = Object.entries(object)
    .filter(([, member]) => (member ?? '') !== '')
    .map(([key, member]) => {
      const isChoice = typeof member === 'boolean' && properties[key]?.enum?.includes(String(member));
      return [key, isChoice ? String(member) : member];
    });
  return Object.fromEntries(entries);
}

/** All problems, one a key at most. The validation also fills in the defaults. */
function problemsOf<S extends ConfigSchema, C>(
  values: Readonly<Record<string, unknown>>,
  { schema, validate, problems = () => [] }: ConfigPart<S, C>,
): Problem[] {
  const mismatches = schemaProblems(validate, values);
  return [...mismatches, ...ofOtherKeys([...serviceProblems(values, schema), ...problems(values)], mismatches)];
}

/** Those problems whose keys have none yet. */
function ofOtherKeys(problems: readonly Problem[], earlier: readonly Problem[]): Problem[] {
  const keysWithProblem = new Set(earlier.map(({ key }) => key.split('.')[0]));
  return problems.filter(({ key }) => !keysWithProblem.has(key.split('.')[0]));
}

/** The problems of the address and of the tokens. The schema reports values of a wrong type. */
function serviceProblems(values: Readonly<Record<string, unknown>>, { properties }: ConfigSchema): Problem[] {
  return Object.keys(properties).flatMap((key) => {
    const value = values[key];
    if (typeof value !== 'string') return [];
    if (/\p{Surrogate}/u.test(value)) return [{ key, text: `${key} holds half a character: no request can carry it` }];
    const text = key === 'base_url' ? baseUrlProblem(value) : key.endsWith('_token') && tokenProblem(key, value);
    return text ? [{ key, text }] : [];
  });
}

function tokenProblem(key: string, token: string): string | undefined {
  if (/^[\t ]|[\t ]$/.test(token)) return `${key} begins or ends with a blank, which no HTTP header keeps`;
  if (/^bearer\s/i.test(token)) return `${key} begins with the word Bearer: give the token alone`;
  if (HEADER_TEXT.test(token)) return undefined;
  return `${key} holds a line end, or another character that no HTTP header can carry`;
}

/** A text that has no line ends, no control characters, nothing beyond one byte, and no blank at either end. */
const HEADER_TEXT = /^[\x21-\x7e\x80-\xff]([\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?$/;

/** The frozen configuration of values without problems. */
function configIn<S extends ConfigSchema, C extends object>(
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
export const unknownKeys = (keys: readonly string[], object: object): string[] =>
  Object.keys(object)
    .filter((key) => !keys.includes(key) && !key.startsWith('_'))
    .map((key) => {
      const near = nearest(key, keys, key.length / 3);
      return near === undefined ? key : `${key} (did you mean ${near}?)`;
    });
