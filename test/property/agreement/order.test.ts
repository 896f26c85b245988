import { expect, it } from 'vitest';
import * as forms from '../../support/column-types.ts';
import fc from '../../support/property.ts';
import { AgreementFixture } from '../../support/targets/agreement.ts';
import { type Cells, csvOf } from '../../support/targets/csv.ts';
import { Place, type TargetName } from '../../support/targets/place.ts';

/** Every order of three days. */
const ORDERS_OF_THREE = [
  [0, 1, 2],
  [0, 2, 1],
  [1, 0, 2],
  [1, 2, 0],
  [2, 0, 1],
  [2, 1, 0],
] as const;

const RUNS = 2;
const DAYS = ['2026-01-01', '2026-01-02', '2026-01-03'] as const;

/** The rows of three days, each under an id that names its day. */
type ThreeDays = readonly (readonly Cells[])[];

/** A place with the days, loaded in an order, each alone or all in one batch. */
async function loaded(name: TargetName, days: ThreeDays, order: readonly number[], timezone?: string, isBatch = false) {
  const place = new Place(name);
  place.timezone = timezone;
  const downloads = order.map((d) => place.ofCsv(DAYS[d], [csvOf(days[d])]));
  await place.load(isBatch ? [downloads] : downloads.map((day) => [day]));
  return place;
}

async function inOrder(days: ThreeDays, order: readonly number[], timezone?: string, isBatch = false) {
  const place = await loaded('duckdb', days, order, timezone, isBatch);
  const columns = await place.read(
    'SELECT source_name, table_name, type, forms FROM _dfinery_columns ORDER BY 1, occurrence',
  );
  const names = columns.flatMap((c) => (c.type === null ? [] : [String(c.table_name)]));
  return { columns, names, rows: orderless(await place.read(selectOf(names))) };
}

/** The text `null` is a value where the column is a string already, which does depend on the order. */
const orderless = (rows: readonly Record<string, unknown>[]) =>
  rows.map((row) => Object.fromEntries(Object.entries(row).map(([k, v]) => [k, v === '"null"' ? null : v])));

const selectOf = (names: readonly string[]): string =>
  `SELECT _key, CAST(_rescued AS VARCHAR) AS r, ${names.map((name) => `CAST(to_json("${name}") AS VARCHAR) AS "${name}"`).join(', ')}
  FROM events ORDER BY _key`;

const cellsOfDay = fc
  .oneof({ weight: 9, arbitrary: forms.someForms }, fc.constant([]))
  .chain((some) => fc.array(fc.oneof(...some, fc.constantFrom('', 'null')), { minLength: 3, maxLength: 3 }));
const threeDays = fc
  .record({
    columns: fc.array(fc.tuple(cellsOfDay, cellsOfDay, cellsOfDay), { minLength: 12, maxLength: 16 }),
    timezone: fc.constantFrom(undefined, 'America/New_York'),
  })
  .map(({ columns, timezone }) => ({
    timezone,
    days: DAYS.map((_, d) =>
      [0, 1, 2].map((i) => ({
        id: `${d}-${i}`,
        ...Object.fromEntries(columns.map((days, c) => [`x${c}`, days[d][i]])),
      })),
    ),
  }));

it('columns of any cells come to the same in every order, in a batch, in DuckDB and in Parquet', async () => {
  await fc.assert(
    fc.asyncProperty(threeDays, async ({ days, timezone }) => {
      const first = await inOrder(days, ORDERS_OF_THREE[0], timezone);
      for (const order of ORDERS_OF_THREE.slice(1)) {
        expect({ order, ...(await inOrder(days, order, timezone)) }).toEqual({ order, ...first });
      }
      expect(await inOrder(days, ORDERS_OF_THREE[0], timezone, true)).toEqual(first);
      const parquet = await loaded('parquet', days, ORDERS_OF_THREE[3], timezone);
      expect(orderless(await parquet.read(selectOf(first.names)))).toEqual(first.rows);
    }),
    { numRuns: RUNS, endOnFailure: true },
  );
});

it('columns of any cells come to the same in an Arrow stream of two days and in DuckDB', async () => {
  await fc.assert(
    // Not of three: a list of longs that first became one of doubles and then text is written as the doubles.
    fc.asyncProperty(threeDays, async ({ days, timezone }) => {
      const fixture = new AgreementFixture();
      fixture.timezone = timezone;
      const downloads = [0, 1].map((d) => fixture.ofCsv(DAYS[d], [csvOf(days[d])]));
      const table = await fixture.inDuckDb(downloads, timezone);
      // A stream takes the files of the days with it.
      const stream = await fixture.inArrow(downloads, timezone);
      expect(stream.size).toBe(6);
      expect(stream).toEqual(table);
    }),
    { numRuns: 5 },
  );
});
