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
});

describe('a configuration', () => {
  const none = () => undefined;
  const service = { base_url: 'https://host', service_id: 's', export_token: 't', import_token: 't' };
  it.each([
    ['source', () => parseSourceConfig(service, none).config],
    ['destination', () => parseDestinationConfig(service, none).config],
  ])('has a field for each key of its schema: %s', (name, parse) => {
    const { properties } = JSON.parse(readFileSync(join(FOLDER, `${name}-config.json`), 'utf8'));
    expect(Object.keys(parse())).toHaveLength(Object.keys(properties).length);
  });
});

/** The `enum`s of a schema, at any depth. */
function listsIn(schema: unknown, name: string): { name: string; values: unknown[] }[] {
  if (typeof schema !== 'object' || schema === null) return [];
  const own = 'enum' in schema && Array.isArray(schema.enum) ? [{ name, values: schema.enum }] : [];
  return [...own, ...Object.values(schema).flatMap((value) => listsIn(value, name))];
}
