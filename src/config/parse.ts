// This folder: from untrusted values and environment variables to configurations with every default filled in. Each
// key has its schema under schemas/. What a schema cannot say stands in source.ts, destination.ts, local.ts, erasure.ts.

import type { Env } from '../base/env.ts';
import { configError } from '../base/errors.ts';
import { isObject } from '../base/json.ts';
import { nearest } from '../base/nearest.ts';
import { Secret } from '../base/secrets.ts';
import type { Validator } from '../base/validator.ts';
import { baseUrlProblem } from './base-url.ts';
import { addSecrets, type ConfigSchema } from './environment.ts';
import { type Problem, schemaProblems, throwProblems } from './problems.ts';

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
  readonly [K in keyof S['properties'] & string as CamelCase<K>]: K extends keyof StructuredValues
    ? StructuredValues[K]
    : K extends RequiredKey
      ? NonNullable<ValueOf<S['properties'][K]>>
      : ValueOf<S['properties'][K]>;
};

/** Values that are more than a text, a number or a list of names. Their schemas check them. */
interface StructuredValues {
  readonly places: readonly { readonly target: string; readonly place: string }[] | undefined;
}

function valuesOf<S extends ConfigSchema>(schema: S, values: Readonly<Record<string, unknown>>): ValuesOf<S> {
  const fields = Object.entries(schema.properties).map(([key, { airbyte_secret: isSecret }]) => {
    const value = values[key];
    return [camelCase(key), isSecret && typeof value === 'string' ? new Secret(value) : value];
  });
  return Object.fromEntries(fields) as ValuesOf<S>;
}

export const camelCase = (key: string): string => key.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());

/** The problems of `base_url` and of the token, which `tokenKey` holds. The schema reports values of a wrong type. */
export function serviceProblems(values: Readonly<Record<string, unknown>>, tokenKey: string): Problem[] {
  const { base_url: url, [tokenKey]: token } = values;
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
  readonly validate: Validator;
  configOf(values: ValuesOf<S>): C;
  /** The keys that must be there; default: those of the schema. */
  readonly required?: readonly string[];
  /** The problems that a JSON schema cannot express; values of a wrong type are left to the schema. */
  problems?(values: Readonly<Record<string, unknown>>): readonly Problem[];
}

/**
 * Parses an untrusted configuration. Missing secrets are looked for in the environment; `names`: the variables that
 * gave keys already. Throws one configuration failure that lists every problem.
 */
export function parseConfig<S extends ConfigSchema, C extends object>(
  definition: Definition<S, C>,
  value: unknown,
  { env = () => undefined, names }: { readonly env?: Env; readonly names?: ReadonlyMap<string, string> | undefined },
): ParsedConfig<Readonly<C>> {
  const { schema, configOf } = definition;
  const object = objectOf(value);
  const values = textForBooleanChoices(withoutBlanks(object), schema);
  const secretProblems = addSecrets(values, schema, env);
  throwProblems('the configuration is not usable', problemsOf(values, definition, secretProblems), names);
  const config = Object.freeze(configOf(valuesOf(schema, values)));
  const unknown = unknownKeys(Object.keys(schema.properties), object);
  return { config, unknown, secrets: Object.values(config).filter((field) => field instanceof Secret) };
}

/** The platform writes null, and a form an empty text, for a key that is not given. */
const withoutBlanks = (object: object): Record<string, unknown> =>
  Object.fromEntries(Object.entries(object).filter(([, member]) => (member ?? '') !== ''));

/** JSON has true where a choice has the text "true". */
function textForBooleanChoices(values: Record<string, unknown>, { properties }: ConfigSchema): Record<string, unknown> {
  const texts = Object.entries(properties)
    .filter(([key, { enum: choices }]) => typeof values[key] === 'boolean' && choices?.includes(String(values[key])))
    .map(([key]) => [key, String(values[key])]);
  return { ...values, ...Object.fromEntries(texts) };
}

/** All problems, one a key at most. The validation also fills in the defaults. */
function problemsOf<S extends ConfigSchema, C>(
  values: Readonly<Record<string, unknown>>,
  { schema, validate, required = schema.required, problems = () => [] }: Definition<S, C>,
  secretProblems: readonly Problem[],
): Problem[] {
  const isProblem = ({ key, isMissing }: Problem) => isMissing !== true || required.includes(key) || key.includes('.');
  const mismatches = ofOtherKeys(schemaProblems(validate, values).filter(isProblem), secretProblems);
  const ruleProblems = ofOtherKeys(problems(values), [...secretProblems, ...mismatches]);
  return [...secretProblems, ...mismatches, ...ruleProblems];
}

/** Those problems whose keys have none yet. */
function ofOtherKeys(problems: readonly Problem[], earlier: readonly Problem[]): Problem[] {
  const keysWithProblem = new Set(earlier.map(({ key }) => key.split('.')[0]));
  return problems.filter(({ key }) => !keysWithProblem.has(key.split('.')[0]));
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
