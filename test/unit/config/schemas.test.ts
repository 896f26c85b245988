import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';
import { COLUMN_TYPES } from '../../../src/cells/types/column-types.ts';
import { parseDestinationConfig } from '../../../src/config/destination.ts';
import { parseSourceConfig } from '../../../src/config/source.ts';

const FOLDER = join(import.meta.dirname, '../../../schemas');
/** A list of columns, and no schema. */
const DATA = ['columns.json'];
const schemas = readdirSync(FOLDER).filter((name) => !DATA.includes(name));

/** Those that list the column types, as an `enum` or in words. */
const LISTING = ['files-state.json', 'source-config.json'];
const TYPES = /("?)boolean\1,\s+\1long\1(,\s+\1[a-z[\]]+\1)+( or [a-z[\]]+)?/g;

/** A list of types as it is, where it has all of them in whatever order and spacing, else with all of them. */
function withAll(list: string, quote: string): string {
  const names = list.split(/[\s",]+|\bor\b/).filter((name) => name !== '');
  if (names.sort().join() === [...COLUMN_TYPES].sort().join()) return list;
  if (quote !== '') return COLUMN_TYPES.map((type) => `"${type}"`).join(', ');
  return `${COLUMN_TYPES.slice(0, -1).join(', ')} or ${COLUMN_TYPES.at(-1)}`;
}

// The program compiles its schemas without looking at them first.
describe('our own schemas', () => {
  it.each(schemas)('are valid JSON schemas: %s', (name) => {
    const ajv = new Ajv();
    expect(ajv.validateSchema(JSON.parse(readFileSync(join(FOLDER, name), 'utf8'))), ajv.errorsText()).toBe(true);
  });

  it.each(LISTING)('list every column type where they list types (written by vitest --update): %s', async (name) => {
    const path = join(FOLDER, name);
    const text = readFileSync(path, 'utf8');
    await expect(text.replaceAll(TYPES, withAll)).toMatchFileSnapshot(path);
    expect(schemas.filter((one) => readFileSync(join(FOLDER, one), 'utf8').search(TYPES) >= 0)).toEqual(LISTING);
  });
});

describe('the schema of a configuration', () => {
  const none = {};
  const service = { base_url: 'https://host', service_id: 's' };
  const schemaOf = (name: string) => JSON.parse(readFileSync(join(FOLDER, `${name}-config.json`), 'utf8'));
  it.each([
    ['source', 'export_token', parseSourceConfig],
    ['destination', 'import_token', parseDestinationConfig],
  ])('says which keys are required: %s', (name, token, parse) => {
    expect(schemaOf(name).required).toEqual(['base_url', 'service_id', token]);
    expect(() => parse({ ...service, [token]: 't' }, none)).not.toThrow();
  });
});
