import { configError, type UserError } from '../base/errors.ts';
import type { SchemaError, Validator } from '../base/validator.ts';

/**
 * One thing wrong with a configuration. The text names the key, or the path to a member of its value, and what is
 * wanted. It never has the value, which may be a secret in the wrong place.
 */
export interface Problem {
  readonly key: string;
  readonly text: string;
}

/** A problem with a key, from a clause: `is after end_date`, `is missing beside columns_hash`. */
export const keyProblem = (key: string, clause: string): Problem => ({ key, text: `${key} ${clause}` });

/** The violations of a schema, one a path, but for missing keys. Fills in the defaults of the value's keys. */
export function schemaProblems(validate: Validator, value: unknown): Problem[] {
  if (validate(value)) return [];
  // The validator reports the type of a key before its choices, and its pattern before its calendar. So the last
  // problem of a path is the most exact.
  const errorByPath = new Map((validate.errors ?? []).map((error) => [pathOf(error), error]));
  return [...errorByPath].flatMap(([path, error]) => {
    const [key] = path.split('.');
    // A value that lacks a member is invalid.
    const isMissingKey = error.keyword === 'required' && path === key;
    return isMissingKey ? [] : [{ key, text: `${path} ${clauseOf(error)}` }];
  });
}

const ADDRESS_FORM = 'https://host without a user name or password; plain http is accepted on loopback alone';

function clauseOf(error: SchemaError): string {
  if (error.keyword === 'required') return 'is missing';
  if (error.keyword === 'additionalProperties') return 'is unknown';
  return `is not usable, wanted ${wantedText(error)}`;
}

function wantedText({ keyword, params, parentSchema, message }: SchemaError): string {
  if (keyword === 'enum') return `one of ${(params.allowedValues as unknown[]).join(', ')}`;
  if (keyword === 'type') return `${/^[aeiou]/.test(String(params.type)) ? 'an' : 'a'} ${params.type}`;
  if (keyword === 'pattern') return `a text like ${parentSchema?.pattern_descriptor ?? params.pattern}`;
  if (keyword === 'format') return params.format === 'date' ? 'a day of the calendar as yyyy-MM-dd' : ADDRESS_FORM;
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

/** The configuration failure that lists all problems. `variableNameByKey`: the names of the variables that gave values. */
export function problemsError(
  subject: string,
  problems: readonly Problem[],
  variableNameByKey?: ReadonlyMap<string, string>,
): UserError {
  const texts = problems.map(({ key, text }) => {
    const name = variableNameByKey?.get(key);
    return name === undefined ? text : `${text} (from ${name})`;
  });
  return configError(`${subject} is not usable: ${texts.join('; ')}.`);
}
