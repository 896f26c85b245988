// This folder: configurations, from untrusted values and environment variables to frozen objects without optional
// fields. A key is declared in its schema under schemas/ and, with what its value becomes, in source.ts or destination.ts.

import { type Env, secretFrom } from '../base/env.ts';
import { configError, messageOf } from '../base/errors.ts';
import { isObject } from '../base/json.ts';
import { Secret } from '../base/secrets.ts';
import { baseUrlProblem } from './base-url.ts';
import { type ConfigSchema, variablesOf } from './environment.ts';
import { type Problem, refuse, schemaProblems } from './problems.ts';
import { compileSchema, unknownKeys, withDefaults } from './validate.ts';

/** A configuration key: its name in the schema, and what a value that the schema found valid becomes. */
export interface Key<T> {
  readonly name: string;
  readonly read: (value: never) => T;
}

type Keys = Readonly<Record<string, Key<unknown>>>;

/** The configuration that keys make. */
export type ConfigOf<K extends Keys> = { readonly [N in keyof K]: K[N] extends Key<infer T> ? T : never };

/** A key whose value stays as it is, of the type that the schema gives it. */
export function key<T>(name: string): Key<T>;
/** A key whose value, of the type that the schema gives it, becomes another. */
export function key<V, T>(name: string, read: (value: V) => T): Key<T>;
export function key(name: string, read: (value: never) => unknown = (value) => value): Key<unknown> {
  return { name, read };
}

/** For keys without a default: an empty text counts as not given. */
export const filledText = (value: string | undefined): string | undefined => value || undefined;
export const optionalSecret = (value: string | undefined): Secret | undefined =>
  value ? new Secret(value) : undefined;

/** What is wrong with the address of the service and the token, which `tokenKey` holds. A wrong type is left to the schema. */
export function serviceProblems(filled: Readonly<Record<string, unknown>>, tokenKey: string): Problem[] {
  const { base_url: url, [tokenKey]: token } = filled;
  const problems: Problem[] = [];
  const urlProblem = typeof url === 'string' ? baseUrlProblem(url) : undefined;
  if (urlProblem !== undefined) problems.push(urlProblem);
  if (typeof token === 'string' && token !== '' && !isHeaderText(token)) {
    const isPadded = /^[\t ]|[\t ]$/.test(token);
    const padded = 'begins or ends with a blank, which no HTTP header keeps';
    const other = 'holds a line end, or another character that no HTTP header can carry';
    problems.push({ key: tokenKey, text: `${tokenKey} ${isPadded ? padded : other}` });
  }
  return problems;
}

/** No line ends, no control characters, nothing beyond one byte, no blank at either end. */
const HEADER_TEXT = /^[\x21-\x7e\x80-\xff]([\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?$/;

/** True for a text that an HTTP header carries unchanged, a token for one. */
export const isHeaderText = (text: string): boolean => HEADER_TEXT.test(text);

export interface Parsed<C> {
  readonly config: C;
  /** Unknown keys: refused by the command line, warned about by the connectors. */
  readonly unknown: readonly string[];
}

interface Definition<K extends Keys> {
  readonly schema: ConfigSchema;
  readonly keys: K;
  /** The problems that a JSON schema cannot express, of the configuration as given and with its defaults. Values of a wrong type are left to the schema. */
  problems(filled: Readonly<Record<string, unknown>>): readonly Problem[];
  /** Unknown keys that must not be ignored. */
  misspelt?(given: Readonly<Record<string, unknown>>): readonly Problem[];
}

/**
 * Parses an untrusted configuration. Secrets missing from it are looked for in the environment; `names` holds the
 * variables that gave the keys that came from there already. Throws one configuration failure that lists every problem.
 */
export function parseConfig<K extends Keys>(
  { schema, keys, problems, misspelt = () => [] }: Definition<K>,
  value: unknown,
  env: Env,
  names?: ReadonlyMap<string, string>,
): Parsed<ConfigOf<K>> {
  const given = objectOf(value);
  const filled = withDefaults(schema, given);
  const secrets = variablesOf(schema).filter(({ property }) => property.airbyte_secret);
  for (const { key, name } of secrets) if (filled[key] === undefined) Object.assign(filled, secretOf(key, name, env));
  const unknown = unknownKeys(schema, given);
  refuse('the configuration is not usable', {
    problems: [...misspelt(given), ...schemaProblems(compileSchema(schema), filled)],
    further: problems(filled),
    unknown,
    secrets: secrets.map((secret) => filled[secret.key]),
    names,
  });
  const fields = Object.entries(keys).map(([field, { name, read }]) => [field, read(filled[name] as never)] as const);
  return { config: Object.freeze(Object.fromEntries(fields) as ConfigOf<K>), unknown };
}

export function objectOf(value: unknown): Record<string, unknown> {
  if (isObject(value)) return value;
  throw configError('the configuration is not a JSON object: wanted { "base_url": …, "service_id": …, … }.');
}

function secretOf(key: string, name: string, env: Env): Readonly<Record<string, string>> {
  try {
    const secret = secretFrom(env, name);
    return secret === undefined ? {} : { [key]: secret };
  } catch (error) {
    throw configError(`the file that ${name}_FILE names cannot be read: ${messageOf(error)}.`, { cause: error });
  }
}
