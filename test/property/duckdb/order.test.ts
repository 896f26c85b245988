import { describe, expect, it } from 'vitest';
import fc from '../../support/property.ts';
import { csvOf } from '../../support/targets/csv.ts';
import { DuckDbFixture } from '../../support/targets/duckdb.ts';

const BOOLEANS = ['TRUE', 'FALSE', 'true', 'false'];
/** No -0.0: a checkpoint of DuckDB 1.5 may store it as 0.0, and 0.0 as -0.0 (measured: compressed by RLE or as a constant). */
const NUMBERS = ['0', '1', '-7', '9007199254740993', '1.5', '2.0', '1.0E-7', '123456789012.5'];
const TIMES = [
  '2026-01-02',
  '2026-01-02 00:00:00.000',
  '2026.1.2 3:04',
  '2026-01-02 03:04:05.123456',
  '2026-01-02T03:04:05',
];
const NUMBER_LISTS = ['[]', '[null]', '[1]', '[1.5,2]', '[2.0,0.5,0.0,0.0]', '[9007199254740993]'];
const TEXT_LISTS = ['[]', '["a"]', '["1",null]'];
const TEXTS = ['x', '007', '[1,"a"]', '{"a":1}', '안녕', '2026-02-30'];

const poolOf = (...texts: string[][]) => fc.constant(fc.constantFrom(...texts.flat(), 'null', ''));
/** Lists of numbers and of texts never meet: as text, `[1]` may have been either (a list of texts in between). */
const familyOf = (lists: string[]) => [
  poolOf(NUMBERS),
  poolOf(TIMES),
  poolOf(lists),
  poolOf(BOOLEANS, NUMBERS),
  poolOf(BOOLEANS, NUMBERS, TIMES, lists, TEXTS),
];
const DAYS = 4;
const ROWS = 2;
const COLUMNS = 30;
/** A column: for each day a few cells of one kind, since a day's cells of mixed kinds are only text. */
const columnOf = (lists: string[]) =>
  fc.array(
    fc.oneof(...familyOf(lists)).chain((cell) => fc.array(cell, { minLength: ROWS, maxLength: ROWS })),
    { minLength: DAYS, maxLength: DAYS },
  );
const column = fc.oneof(columnOf(NUMBER_LISTS), columnOf(TEXT_LISTS));
const table = fc.array(column, { minLength: COLUMNS, maxLength: COLUMNS });
const orders = fc.shuffledSubarray([0, 1, 2, 3], { minLength: DAYS, maxLength: DAYS });

/** Type and values of every column after loading the days in this order. */
async function loaded(cells: readonly string[][][], order: readonly number[]): Promise<Map<string, unknown>> {
  const fixture = new DuckDbFixture();
  const name = (c: number) => `x${c}`;
  try {
    const windows = order.map((d) => {
      const row = (r: number) => Object.fromEntries(cells.map((days, c) => [name(c), days[d][r]]));
      const rows = Array.from({ length: ROWS }, (_, r) => ({ id: `${d}-${r}`, ...row(r) }));
      return fixture.window(
        `2026-01-0${d + 1}`,
        csvOf(
          rows,
          cells.map((_, c) => name(c)),
        ),
      );
    });
    await fixture.load(windows);
    const rows = await fixture.query('SELECT * FROM events ORDER BY _key');
    const types = await fixture.query('SELECT source_name AS source, type FROM _dfinery_columns');
    const custom = types.filter(({ source }) => String(source).startsWith('x'));
    return new Map(
      custom.map(({ source, type }) => [String(source), [type, rows.map((row) => orderless(row[String(source)]))]]),
    );
  } finally {
    fixture.close();
  }
}

/** The text `null` is a value where the column is a string already, which does depend on the order. */
const orderless = (value: unknown) => (value === 'null' ? null : (value ?? null));

describe('the order of days', () => {
  it('never changes a type or a value', async () => {
    const property = fc.asyncProperty(table, orders, orders, async (cells, one, other) => {
      const [first, second] = [await loaded(cells, one), await loaded(cells, other)];
      for (const [name, found] of first) {
        expect(second.get(name), JSON.stringify([cells[Number(name.slice(1))], one, other])).toEqual(found);
      }
    });
    await fc.assert(property, { numRuns: 3, endOnFailure: true });
  });
});
