import { expect, it } from 'vitest';
import * as forms from '../../support/column-types.ts';
import fc from '../../support/property.ts';
import { AgreementFixture } from '../../support/targets/agreement.ts';
import { csvOf } from '../../support/targets/csv.ts';

const RUNS = 5;
/** Two: a list of longs that first became one of doubles and then text is written as the doubles. */
const DAYS = ['2026-01-01', '2026-01-02'] as const;
const ROWS = 6;
const cellsOfDay = fc
  .oneof({ weight: 9, arbitrary: forms.someForms }, fc.constant([forms.cells]))
  .chain((some) => fc.array(fc.oneof(...some, fc.constantFrom('', 'null')), { minLength: ROWS, maxLength: ROWS }));
const days = fc.record({
  columns: fc.array(fc.tuple(cellsOfDay, cellsOfDay), { minLength: 12, maxLength: 24 }),
  timezone: fc.constantFrom(undefined, 'America/New_York'),
});

it('an Arrow stream over days of different types holds the same rows as a DuckDB file', async () => {
  await fc.assert(
    fc.asyncProperty(days, async ({ columns, timezone }) => {
      const fixture = new AgreementFixture();
      try {
        fixture.timezone = timezone;
        const downloads = DAYS.map((day, d) => {
          const rows = Array.from({ length: ROWS }, (_, i) => ({
            id: `${d}-${i}`,
            ...Object.fromEntries(columns.map((column, c) => [`x${c}`, column[d][i]])),
          }));
          return fixture.ofCsv(day, [csvOf(rows)]);
        });
        const table = await fixture.inDuckDb(downloads, timezone);
        // A stream takes the files of the days with it.
        const stream = await fixture.inArrow(downloads, timezone);
        expect(stream.size).toBe(DAYS.length * ROWS);
        expect(stream).toEqual(table);
      } finally {
        fixture.close();
      }
    }),
    { numRuns: RUNS },
  );
});
