import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';
import { parseDestinationConfig } from '../../../src/config/destination.ts';
import { parseSourceConfig } from '../../../src/config/source.ts';
import { COLUMN_TYPES } from '../../../src/types/type.ts';

const FOLDER = join(import.meta.dirname, '../../../schemas');
/** A list of columns, and no schema. */
const DATA = ['columns.json'];
const schemas = readdirSync(FOLDER).filter((name) => !DATA.includes(name));

// The program compiles its schemas without looking at them first.
describe('our own schemas', () => {
  it.each(schemas)('are valid JSON schemas: %s', (name) => {
    const ajv = new Ajv();
    expect(ajv.validateSchema(JSON.parse(readFileSync(join(FOLDER, name), 'utf8'))), ajv.errorsText()).toBe(true);
  });

  it('list every column type where they list types', () => {
    const lists = schemas.flatMap((name) => listsIn(JSON.parse(readFileSync(join(FOLDER, name), 'utf8')), name));
    const ofTypes = lists.filter(({ values }) => values.includes('long') && values.includes('string'));
    expect(ofTypes.map(({ name }) => name)).toEqual(expect.arrayContaining(['receipt.json', 'manifest.json']));
    for (const { name, values } of ofTypes) {
      const types = values.filter((value) => value !== null);
      expect([...types].sort(), name).toEqual([...COLUMN_TYPES].sort());
    }
  });

  it('describe column_types with every type', () => {
    const { properties } = JSON.parse(readFileSync(join(FOLDER, 'source-config.json'), 'utf8'));
    const words = properties.column_types.description.split(/[ ,:]+|\.$/);
    expect(COLUMN_TYPES.filter((type) => !words.includes(type))).toEqual([]);
  });
});

describe('the schema of a configuration', () => {
  const none = () => undefined;
  const service = { base_url: 'https://host', service_id: 's' };
  it.each([
    ['source', 'export_token', parseSourceConfig],
    ['destination', 'import_token', parseDestinationConfig],
  ])('says the type of each field to TypeScript: %s', (name, token, parse) => {
    const { properties, required } = JSON.parse(readFileSync(join(FOLDER, `${name}-config.json`), 'utf8'));
    expect(required).toEqual(['base_url', 'service_id', token]);
    expect(Object.keys(parse({ ...service, [token]: 't' }, none).config)).toHaveLength(Object.keys(properties).length);
    // src/config/parse.ts infers a type from the keywords of a property: these are the ones that it looks at.
    for (const [key, property] of Object.entries<Record<string, unknown>>(properties)) {
      const { type, default: fallback } = property;
      if (type === 'array') expect(property, key).toMatchObject({ default: [], items: { type: 'string' } });
      else if (type === 'string') expect(typeof (fallback ?? ''), key).toBe('string');
      else if (type === 'boolean') expect(typeof fallback, key).toBe('boolean');
      else if (type !== 'object') expect(typeof (fallback ?? property.minimum), key).toBe('number');
      if (type === 'string' && fallback === undefined) expect(Object.keys(property), key).not.toContain('minimum');
      if (property.airbyte_secret === true) expect(type, key).toBe('string');
    }
  });
});

/** The `enum`s of a schema, at any depth. */
function listsIn(schema: unknown, name: string): { name: string; values: unknown[] }[] {
  if (typeof schema !== 'object' || schema === null) return [];
  const own = 'enum' in schema && Array.isArray(schema.enum) ? [{ name, values: schema.enum }] : [];
  return [...own, ...Object.values(schema).flatMap((value) => listsIn(value, name))];
}
