import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';

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
});
