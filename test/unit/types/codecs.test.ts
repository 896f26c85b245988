import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { COLUMN_TYPES, type ColumnType, codecOf } from '../../../src/cells/types/column-types.ts';
import { type Zone, zoneOf } from '../../../src/cells/types/zone.ts';
import { EVENTS } from '../../../src/table/tables.ts';
import { streamSchema } from '../../../src/targets/arrow/ipc-stream.ts';
import { contractOf } from '../../support/column-types.ts';

const page = readFileSync(new URL('../../../docs/days-and-types.md', import.meta.url), 'utf8');
const rows = [...page.matchAll(/^\| (.+) \|$/gm)].map(([, row]) => row.split(' | '));

/** The type of a column in an Arrow stream. */
const arrowType = (type: ColumnType, zone: Zone | undefined): string =>
  String(streamSchema([{ ...EVENTS.initialColumns[0], type }], zone).fields.at(-1)?.type);
const SEOUL = zoneOf('Asia/Seoul');

describe('the codec of a type', () => {
  it.each(COLUMN_TYPES)('of %s has its JSON schema, DuckDB type and Arrow type', (type) => {
    const codec = codecOf(type, undefined);
    const { jsonSchema, duckdb, arrow } = contractOf(type);
    expect([codec.jsonSchema, codec.duckdbType, arrowType(type, undefined)]).toEqual([jsonSchema, duckdb, arrow]);
  });

  it.each(COLUMN_TYPES)('of %s stands in docs/days-and-types.md with its DuckDB types', (type) => {
    const row = rows.find(([types]) => types.split(' ').includes(type)) ?? [];
    const duckdb = [undefined, SEOUL].map((zone) => codecOf(type, zone).duckdbType);
    expect(row.at(-1)?.split(/,? /) ?? []).toEqual(expect.arrayContaining(duckdb));
  });

  it('reads a datetime with a zone as an instant', () => {
    expect(codecOf('datetime', SEOUL).jsonSchema.airbyte_type).toBe('timestamp_with_timezone');
    expect(codecOf('datetime', SEOUL).duckdbType).toBe('TIMESTAMPTZ');
    expect(arrowType('datetime', SEOUL)).toBe('Timestamp<MICROSECOND, UTC>');
  });
});
