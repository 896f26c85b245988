import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { TYPES } from '../../../src/types/index.ts';
import { COLUMN_TYPES } from '../../../src/types/type.ts';

const string = { type: ['string', 'null'] };

/** What platforms and readers of a target see of a type. */
const CONTRACT = {
  boolean: [{ type: ['boolean', 'null'] }, 'BOOLEAN', { kind: 'bool' }],
  long: [{ type: ['integer', 'null'] }, 'BIGINT', { kind: 'int64' }],
  double: [{ type: ['number', 'null'] }, 'DOUBLE', { kind: 'float64' }],
  date: [{ ...string, format: 'date' }, 'DATE', { kind: 'date32' }],
  datetime: [
    { ...string, format: 'date-time', airbyte_type: 'timestamp_without_timezone' },
    'TIMESTAMP',
    { kind: 'timestamp', unit: 'microsecond', timezone: null },
  ],
  string: [string, 'VARCHAR', { kind: 'utf8' }],
  'string[]': [{ type: ['array', 'null'], items: string }, 'VARCHAR[]', { kind: 'list', item: { kind: 'utf8' } }],
  'long[]': [
    { type: ['array', 'null'], items: { type: ['integer', 'null'] } },
    'BIGINT[]',
    { kind: 'list', item: { kind: 'int64' } },
  ],
  'double[]': [
    { type: ['array', 'null'], items: { type: ['number', 'null'] } },
    'DOUBLE[]',
    { kind: 'list', item: { kind: 'float64' } },
  ],
} as const;

const page = readFileSync(new URL('../../../docs/types.md', import.meta.url), 'utf8');
const rows = [...page.matchAll(/^\| (.+) \|$/gm)].map(([, row]) => row.split(' | '));

describe('the codec of a type', () => {
  it.each(COLUMN_TYPES)('of %s has its JSON schema, DuckDB type and Arrow type [R65]', (type) => {
    const codec = TYPES[type];
    expect(codec.type).toBe(type);
    expect([codec.jsonSchema(false), codec.duckdb(false), codec.arrow(false)]).toEqual(CONTRACT[type]);
  });

  it.each(COLUMN_TYPES)('of %s stands in docs/types.md with its DuckDB types [R65]', (type) => {
    const row = rows.find(([types]) => types.split(' ').includes(type));
    for (const asInstants of [false, true]) {
      expect(row?.at(-1)?.split(/,? /)).toContain(TYPES[type].duckdb(asInstants));
    }
  });

  it('reads a datetime with a zone as an instant', () => {
    expect(TYPES.datetime.jsonSchema(true).airbyte_type).toBe('timestamp_with_timezone');
    expect(TYPES.datetime.duckdb(true)).toBe('TIMESTAMPTZ');
    expect(TYPES.datetime.arrow(true)).toEqual({ kind: 'timestamp', unit: 'microsecond', timezone: 'UTC' });
  });
});
