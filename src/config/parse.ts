// This folder: configurations, from untrusted values and environment variables to frozen objects without optional
// fields. A key is declared in its schema under schemas/; source.ts, destination.ts, local.ts and erasure.ts say
// what its schema cannot.

import { type Env, secretFrom } from '../base/env.ts';
import { configError } from '../base/errors.ts';
import { isObject } from '../base/json.ts';
import { Secret } from '../base/secrets.ts';
import type { Validator } from '../base/validator.ts';
import { baseUrlProblem } from './base-url.ts';
import { type ConfigSchema, variablesOf } from './environment.ts';
import { nearest } from './nearest.ts';
import { type Problem, refuse, schemaProblems } from './problems.ts';

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

type RequiredKey = 'base_url' | 'service_id' | 'export_token' | 'import_token';

/** The values that a schema found valid, by key in camel case. */
export type ValuesOf<S extends ConfigSchema> = {
  readonly [K in keyof S['properties'] & string as CamelCase<K>]: K extends RequiredKey
    ? NonNullable<ValueOf<S['properties'][K]>>
    : ValueOf<S['properties'][K]>;
};

function valuesOf<S extends ConfigSchema>(schema: S, filled: Readonly<Record<string, unknown>>): ValuesOf<S> {
  const fields = Object.entries(schema.properties).map(([key, { airbyte_secret: isSecret }]) => {
    const value = filled[key];
    return [camelCase(key), isSecret && typeof value === 'string' ? new Secret(value) : value];
  });
  return Object.fromEntries(fields) as ValuesOf<S>;
}

export const camelCase = (key: string): string => key.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());

/** The problems of `base_url` and of the token, which `tokenKey` holds. The schema reports values of a wrong type. */
export function serviceProblems(filled: Readonly<Record<string, unknown>>, tokenKey: string): Problem[] {
  const { base_url: url, [tokenKey]: token } = filled;
  const urlProblem = typeof url === 'string' ? baseUrlProblem(url) : undefined;
  const tokenProblem = typeof token === 'string' ? tokenProblemOf(token) : undefined;
  return [
    ...(urlProblem === undefined ? [] : [urlProblem]),
    ...(tokenProblem === undefined ? [] : [{ key: tokenKey, text: `${tokenKey} ${tokenProblem}` }]),
  ];
}

function tokenProblemOf(token: string): string | undefined {
  if (/^[\t ]|[\t ]$/.test(token)) return 'begins or ends with a blank, which no HTTP header keeps';
  if (/^bearer\s/i.test(token)) return 'begins with the word Bearer: give the token alone';
  return HEADER_TEXT.test(token) ? undefined : 'holds a line end, or another character that no HTTP header can carry';
}

/** A text that has no line ends, no control characters, nothing beyond one byte, and no blank at either end. */
const HEADER_TEXT = /^[\x21-\x7e\x80-\xff]([\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?$/;

export interface ParsedConfig<C> {
  readonly config: C;
  /** Unknown keys: refused by the command line, warned about by the connectors. */
  readonly unknown: readonly string[];
  /** The secrets of the configuration, which no message may show. */
  readonly secrets: readonly Secret[];
}

interface Definition<S extends ConfigSchema, C> {
  readonly schema: S;
  readonly valid: Validator;
  configOf(values: ValuesOf<S>): C;
  /** The keys that must be there; default: those of the schema. */
  readonly required?: readonly string[];
  /** The problems that a JSON schema cannot express; values of a wrong type are left to the schema. */
  problems?(filled: Readonly<Record<string, unknown>>): readonly Problem[];
}

/**
 * Parses an untrusted configuration. Missing secrets are looked for in the environment; `names`: the variables that
 * gave keys already. Throws one configuration failure that lists every problem.
 */
export function parseConfig<S extends ConfigSchema, C extends object>(
  { schema, valid, configOf, required = schema.required, problems = () => [] }: Definition<S, C>,
  value: unknown,
  { env = () => undefined, names }: { readonly env?: Env; readonly names?: ReadonlyMap<string, string> | undefined },
): ParsedConfig<Readonly<C>> {
  const object = objectOf(value);
  // The platform writes null, and a form an empty text, for a key that is not given.
  const filled = Object.fromEntries(Object.entries(object).filter(([, member]) => (member ?? '') !== ''));
  // JSON has true where a choice has the text "true".
  for (const [key, { enum: choices }] of Object.entries(schema.properties))
    if (typeof filled[key] === 'boolean' && choices?.includes(String(filled[key]))) filled[key] = String(filled[key]);
  const secrets = variablesOf(schema).filter(({ property }) => property.airbyte_secret);
  for (const { key, name } of secrets) filled[key] ??= secretFrom(env, name)?.text;
  // The validation also fills in the defaults.
  const isProblem = ({ key, isMissing }: Problem) => isMissing !== true || required.includes(key) || key.includes('.');
  const mismatches = schemaProblems(valid, filled).filter(isProblem);
  const named = new Set(mismatches.map(({ key }) => key.split('.')[0]));
  const further = problems(filled).filter(({ key }) => !named.has(key));
  refuse('the configuration is not usable', [...mismatches, ...further], names);
  const config = Object.freeze(configOf(valuesOf(schema, filled)));
  const unknown = unknownKeys(Object.keys(schema.properties), object);
  return { config, unknown, secrets: Object.values(config).filter((field) => field instanceof Secret) };
}

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
