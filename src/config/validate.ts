import { Ajv, type ValidateFunction } from 'ajv';
import { isDay } from '../base/days.ts';
import { nearest } from './nearest.ts';

/** Whether a value fits a schema, and so has type T; `errors` are those of the last value. */
export interface Validator<T = unknown> {
  (value: unknown): value is T;
  errors?: ValidateFunction['errors'];
}

/**
 * A validator for one of our own schemas, with the Airbyte annotations known and every problem reported at once. It is
 * compiled when it is first used: that takes longer than the start of a command.
 */
export function compileSchema<T = unknown>(schema: object): Validator<T> {
  let compiled: ValidateFunction | undefined;
  const validator: Validator<T> = (value): value is T => {
    compiled ??= compilerOf().compile(schema);
    const fits = compiled(value);
    validator.errors = compiled.errors;
    return fits;
  };
  return validator;
}

let compiler: Ajv | undefined;

function compilerOf(): Ajv {
  if (compiler !== undefined) return compiler;
  // Our schemas are not checked here, which takes as long as compiling them: a test does.
  compiler = new Ajv({ allErrors: true, verbose: true, strict: false, meta: false, validateSchema: false });
  compiler.addFormat('date', { type: 'string', validate: isDay });
  compiler.addFormat('uri', { type: 'string', validate: (text: string) => URL.canParse(text) });
  return compiler;
}

type Schema = { readonly properties: Readonly<Record<string, object>> };

/** The value with null keys dropped (the platform writes them) and defaults filled in. */
export function withDefaults(schema: Schema, value: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const out: Record<string, unknown> = {};
  for (const [key, property] of Object.entries(schema.properties)) {
    if ('default' in property) out[key] = structuredClone(property.default);
  }
  for (const [key, found] of Object.entries(value)) if (found !== null && found !== undefined) out[key] = found;
  return out;
}

/** Keys that the schema does not know, with the known key each was probably meant to be. */
export function unknownKeys(schema: Schema, value: Readonly<Record<string, unknown>>): string[] {
  const known = Object.keys(schema.properties);
  return Object.keys(value)
    .filter((key) => !known.includes(key) && !key.startsWith('_'))
    .map((key) => {
      const near = nearest(key, known, key.length / 3);
      return near === undefined ? key : `${key} (did you mean ${near}?)`;
    });
}
