import { addressProblem } from '../base/address.ts';
import { configError, type UserError } from '../base/errors.ts';
import type { JsonObject } from '../base/json.ts';
import type { SchemaError, Validator } from '../base/validator.ts';
import type { ConfigSchema } from './keys.ts';

/**
 * One thing wrong with a configuration. The text names the key, or the path to a member of its value, and what is
 * wanted. It never has the value, which may be a secret in the wrong place.
 */
export interface Problem {
  /** `invalid`: nothing goes on with such a value. `missing`: a connector and some commands need the key. */
  readonly kind: 'invalid' | 'missing';
  readonly key: string;
  readonly text: string;
}

export const isInvalid = ({ kind }: Problem): boolean => kind === 'invalid';

/** A problem with a key, from a clause: `is after end_date`, `is missing beside columns_hash`. */
export const keyProblem = (kind: Problem['kind'], key: string, clause: string): Problem => {
  return { kind, key, text: `${key} ${clause}` };
};

/** The violations of a schema, one a path. Fills in the defaults of the value's keys. */
export function schemaProblems(validate: Validator, value: unknown): Problem[] {
  if (validate(value)) return [];
  // The validator reports the type of a key before its choices, and its pattern before its calendar. So the last
  // problem of a path is the most exact.
  const byPath = new Map((validate.errors ?? []).map((error) => [pathOf(error), error]));
  return [...byPath].map(([path, error]) => {
    const [key] = path.split('.');
    // A value that lacks a member is invalid.
    const kind = error.keyword === 'required' && path === key ? 'missing' : 'invalid';
    return { kind, key, text: `${path} ${clauseOf(error)}` };
  });
}

function clauseOf(error: SchemaError): string {
  if (error.keyword === 'required') return 'is missing';
  if (error.keyword === 'additionalProperties') return 'is unknown';
  return `is not usable, wanted ${wantedText(error)}`;
}

function wantedText({ keyword, params, parentSchema, message }: SchemaError): string {
  if (keyword === 'enum') return `one of ${(params.allowedValues as unknown[]).join(', ')}`;
  if (keyword === 'type') return `${/^[aeiou]/.test(String(params.type)) ? 'an' : 'a'} ${params.type}`;
  if (keyword === 'pattern') return `a text like ${parentSchema?.pattern_descriptor ?? params.pattern}`;
  if (keyword === 'format')
    return params.format === 'date' ? 'a day of the calendar as yyyy-MM-dd' : 'an address such as https://host';
  if (keyword === 'minLength')
    return Number(params.limit) > 1 ? `at least ${params.limit} characters` : 'a text that is not empty';
  if (keyword === 'maxLength') return `at most ${params.limit} characters`;
  // Of a number the message of the validator is short enough: `must be >= 1`.
  return (message ?? keyword)
    .replace(/^must be /, '')
    .replace('<=', 'at most')
    .replace('>=', 'at least');
}

function pathOf({ instancePath, params }: SchemaError): string {
  const path = instancePath.slice(1).replaceAll('/', '.');
  const member = params.missingProperty ?? params.additionalProperty;
  return [path, member].filter((part) => part !== '' && part !== undefined).join('.');
}

/** The problems of values of the format `uri`, which the validator takes for any address. */
export const uriProblems = ({ properties }: ConfigSchema, values: JsonObject): Problem[] =>
  Object.entries(properties).flatMap(([key, { format }]) => {
    const address = values[key];
    if (format !== 'uri' || typeof address !== 'string') return [];
    const clause = addressProblem(address);
    return clause === undefined ? [] : [keyProblem('invalid', key, clause)];
  });

/** The configuration failure that lists all problems. `variableByKey`: the names of the variables that gave values. */
export function problemsError(
  subject: string,
  problems: readonly Problem[],
  variableByKey?: ReadonlyMap<string, string>,
): UserError {
  const texts = problems.map(({ key, text }) => {
    const name = variableByKey?.get(key);
    return name === undefined ? text : `${text} (from ${name})`;
  });
  return configError(`${subject} is not usable: ${texts.join('; ')}.`);
}
