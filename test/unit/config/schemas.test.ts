import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';
import { COLUMN_TYPES } from '../../../src/types/type.ts';

const FOLDER = join(import.meta.dirname, '../../../schemas');
/** A list of columns, and no schema. */
const DATA = ['columns.json'];
const schemas = readdirSync(FOLDER).filter((name) => !DATA.includes(name));

// The program compiles its schemas without looking at them first.
describe('our own schemas', () => {
  it.each(schemas)('are schemas: %s', (name) => {
    const ajv = new Ajv();
    expect(ajv.validateSchema(JSON.parse(readFileSync(join(FOLDER, name), 'utf8'))), ajv.errorsText()).toBe(true);
  });

  it('list every column type where they list one', () => {
    const lists = schemas.flatMap((name) => listsIn(JSON.parse(readFileSync(join(FOLDER, name), 'utf8')), name));
    const ofTypes = lists.filter(({ values }) => values.includes('long') && values.includes('string'));
    expect(ofTypes.map(({ name }) => name)).toEqual(expect.arrayContaining(['receipt.json', 'manifest.json']));
    for (const { name, values } of ofTypes) {
      const types = values.filter((value) => value !== null);
      expect([...types].sort(), name).toEqual([...COLUMN_TYPES].sort());
    }
  });
});

/** The `enum`s of a schema, at any depth. */
function listsIn(schema: unknown, name: string): { name: string; values: unknown[] }[] {
  if (typeof schema !== 'object' || schema === null) return [];
  const own = 'enum' in schema && Array.isArray(schema.enum) ? [{ name, values: schema.enum }] : [];
  return [...own, ...Object.values(schema).flatMap((value) => listsIn(value, name))];
}
