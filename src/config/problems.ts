import { configError } from '../base/errors.ts';
import { Redactor, Secret } from '../base/secrets.ts';
import type { SchemaError, Validator } from '../base/validator.ts';

/** One thing wrong with a configuration: the key, what was found, what is wanted. */
export interface Problem {
  readonly key: string;
  readonly text: string;
}

const MAX_SHOWN_LENGTH = 60;
const FORMATS: Readonly<Record<string, string>> = {
  date: 'a day of the calendar as yyyy-MM-dd',
  uri: 'an address such as https://host',
};

/** A user name or password before the host of an address, whatever else is wrong with it. */
const CREDENTIALS = /"[^"\s]*:[^"\s]*@/g;

/** A short form of a value for a message; never used for secrets. */
export function shown(value: unknown): string {
  const text = (JSON.stringify(value) ?? String(value)).replace(CREDENTIALS, '"******@');
  return text.length > MAX_SHOWN_LENGTH ? `${text.slice(0, MAX_SHOWN_LENGTH)}…` : text;
}

function pathOf(error: SchemaError): string {
  const path = error.instancePath.slice(1).replaceAll('/', '.');
  if (error.keyword !== 'required') return path;
  const missing = String(error.params.missingProperty);
  return path === '' ? missing : `${path}.${missing}`;
}

function wanted(error: SchemaError): string {
  const { keyword, params, parentSchema } = error;
  if (keyword === 'enum') return `one of ${(params.allowedValues as unknown[]).map((v) => shown(v)).join(', ')}`;
  if (keyword === 'type') return `${/^[aeiou]/.test(String(params.type)) ? 'an' : 'a'} ${params.type}`;
  if (keyword === 'pattern') return `a text like ${parentSchema?.pattern_descriptor ?? params.pattern}`;
  if (keyword === 'format') return FORMATS[String(params.format)] ?? String(params.format);
  if (keyword === 'minLength')
    return Number(params.limit) > 1 ? `at least ${params.limit} characters` : 'a text that is not empty';
  if (keyword === 'maxLength') return `at most ${params.limit} characters`;
  return (error.message ?? keyword).replace(/^must be /, '');
}

/** The violations of a schema, one a key, as problems that name key, finding and wish. */
export function schemaProblems(valid: Validator, value: unknown): Problem[] {
  if (valid(value)) return [];
  // Of several about one key the last is the most exact: a choice comes after its type, a calendar after a pattern.
  const byKey = new Map((valid.errors ?? []).map((error) => [pathOf(error), error]));
  return [...byKey].map(([key, error]) => {
    if (error.keyword === 'required') return { key, text: `${key} is missing` };
    const secret = error.parentSchema?.airbyte_secret === true;
    const found = secret ? 'not usable as it is given' : shown(error.data);
    return { key, text: `${key === '' ? 'the configuration' : key} is ${found}, wanted ${wanted(error)}` };
  });
}

interface Findings {
  readonly problems: readonly Problem[];
  /** Problems that a schema cannot express; one is reported if its key has no other problem. */
  readonly further: readonly Problem[];
  /** Unknown keys, named in the message as well; unknown keys alone are no reason to refuse. */
  readonly unknown: readonly string[];
  /** Values that no message may repeat, wherever else they were written by mistake. */
  readonly secrets: readonly unknown[];
  /** Key → the environment variable that gave it. */
  readonly names?: ReadonlyMap<string, string> | undefined;
}

/** Throws one configuration failure with every problem; returns if there is none. */
export function refuse(what: string, { problems, further, unknown, secrets, names }: Findings): void {
  const named = new Set(problems.map(({ key }) => key.split('.')[0]));
  const all = [...problems, ...further.filter(({ key }) => !named.has(key))];
  if (all.length === 0) return;
  const unknownKeys = unknown.map((key) => `unknown key ${key}`);
  const redactor = new Redactor();
  for (const secret of secrets) if (typeof secret === 'string') redactor.add(new Secret(secret));
  const placed = all.map(({ key, text }) => {
    const name = names?.get(key.split('.')[0]);
    return name === undefined ? text : `${text} (from ${name})`;
  });
  throw configError(redactor.mask(`${what}: ${[...placed, ...unknownKeys].join('; ')}.`));
}
