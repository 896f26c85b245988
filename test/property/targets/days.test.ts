import { describe, expect, it } from 'vitest';
import { addDays, type Day } from '../../../src/base/days.ts';
import fc from '../../support/property.ts';
import type { Cells } from '../../support/targets/csv.ts';
import { Place, TARGET_NAMES } from '../../support/targets/place.ts';

const RUNS = 4;
const FIRST = '2026-01-01';

/** A row of a day; rows of one id, and rows without an id, may occur twice. */
const row = fc.record({
  id: fc.constantFrom('a', 'b', 'c', 'a:0', undefined),
  n: fc.constantFrom('1', '2.5', 'x', 'null', ''),
  person: fc.constantFrom('u1', 'u2'),
});
type Row = typeof row extends fc.Arbitrary<infer R> ? R : never;
const step = fc.record({ day: fc.integer({ min: 0, max: 3 }), rows: fc.array(row, { maxLength: 5 }) });
const steps = fc.array(step, { minLength: 1, maxLength: 5 });

const cellsOf = ({ id, n, person }: Row): Cells => ({
  ...(id !== undefined && { id }),
  df_unified_id: person,
  ...(n !== '' && { n }),
});

describe.each(TARGET_NAMES)('%s', (name) => {
  it('holds of each day what its last download had, without those who were purged', async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (all) => {
        const place = new Place(name);
        try {
          const model = new Map<Day, readonly Row[]>();
          for (const { day, rows } of all) {
            const date = addDays(FIRST, day);
            await place.load([[place.of(date, rows.map(cellsOf))]]);
            model.set(date, rows);
          }
          const seen = async () => {
            if ([...model.values()].flat().length === 0) return [];
            const rows = await place.read('SELECT event_date::VARCHAR AS d, df_unified_id AS p FROM events');
            return rows.map(({ d, p }) => `${d} ${p}`).sort();
          };
          const expected = () =>
            [...model].flatMap(([day, rows]) => rows.map(({ person }) => `${day} ${person}`)).sort();
          expect(await seen()).toEqual(expected());
          expect((await place.verify()).differences).toEqual([]);
          await place.purge(['u1'], 'df_unified_id');
          for (const [day, rows] of model)
            model.set(
              day,
              rows.filter(({ person }) => person !== 'u1'),
            );
          expect(await seen()).toEqual(expected());
          expect((await place.verify()).differences).toEqual([]);
        } finally {
          place.close();
        }
      }),
      { numRuns: RUNS },
    );
  }, 120_000);
});
