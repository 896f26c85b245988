import { Ajv, type ValidateFunction } from 'ajv';
import { isDay } from '../base/days.ts';
import { nearest } from './nearest.ts';

/** A validator for one of our own schemas, with the Airbyte annotations known and every problem reported at once. */
export function compileSchema(schema: object): ValidateFunction {
  const ajv = new Ajv({ allErrors: true, verbose: true, strict: false });
  ajv.addFormat('date', { type: 'string', validate: isDay });
  ajv.addFormat('uri', { type: 'string', validate: (text: string) => URL.canParse(text) });
  return ajv.compile(schema);
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

/** The same value under the type that a schema has just proved it to have. */
export function proved<T>(value: unknown): T {
  return value as T;
}
