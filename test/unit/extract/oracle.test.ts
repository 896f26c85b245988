import { afterEach, describe, expect, it } from 'vitest';
import { addDays, type Day, daysOf } from '../../../src/base/days.ts';
import {
  at,
  type FakeRow,
  type FakeServiceSettings,
  Fixture,
  HOUR,
  steadyRows,
} from '../../support/extract/extraction.ts';

/** Thirty daily runs against a truth that is kept outside: the rows of each day that the service has when it was read last. */
const RUNS = 30;
const FIRST = '2026-02-20';
const START = '2026-03-01T02:00:00Z';

const rows: readonly FakeRow[] = steadyRows(FIRST, '2026-04-05', 6)
  .map((row, i) =>
    // Every eleventh event arrives a day late.
    i % 11 === 0 ? { ...row, arrived: row.arrived + 20 * HOUR } : row,
  )
  .filter(({ id }) => !id.includes('2026-03-08') && !id.includes('2026-02-24'));

const SERVICES: Readonly<Record<string, Partial<FakeServiceSettings>>> = {
  'includes its end': {},
  'excludes its end': { inclusive: false },
  'takes ends for midnight': { daysAreInstants: true, selects: 'occurred' },
  'refuses single days': { singleDays: 'refused' },
  'answers single days with nothing': { singleDays: 'empty' },
  'ends without a line end': { hasFinalNewline: false },
  'ends without a line end, rows in another order each time': {
    hasFinalNewline: false,
    shuffles: true,
    inclusive: false,
  },
  'has days of UTC-8': { zoneHours: -8 },
  'has days of UTC+9 and refuses days to come': { zoneHours: 9, future: 'error' },
  'refuses days to come and excludes its end': { future: 'error', inclusive: false },
  'answers empty days with 404': { noRows: '404' },
  'answers empty days with 204': { noRows: '204', inclusive: false },
  'answers empty days with no byte': { noRows: 'no byte' },
  'answers empty days with an empty list': { noRows: 'an empty list' },
  'selects by the time of the event, rows late': { selects: 'occurred' },
  'lags by half a day': { lagMs: 12 * HOUR },
};

describe('thirty daily runs hold every row once, for every kind of service', () => {
  const fixtures: Fixture[] = [];
  afterEach(() => {
    for (const fixture of fixtures.splice(0)) fixture.close();
  });

  it.each(Object.entries(SERVICES))('a service that %s', async (_name, settings) => {
    const fixture = new Fixture(START, { rows, ...settings });
    fixtures.push(fixture);
    const { service, target, clock } = fixture;
    for (let run = 0; run < RUNS; run++) {
      clock.time = at(START) + run * 24 * HOUR + (run % 5) * HOUR;
      await fixture.run({ startDate: FIRST });
    }
    const last = addDays(START.slice(0, 10), RUNS - 3);
    const truth = new Map<Day, string[]>();
    for (const row of rows) {
      const day = service.dayOf(row);
      truth.set(day, [...(truth.get(day) ?? []), row.id]);
    }
    // Within the history, and over for so long that late rows have come.
    for (const day of daysOf(FIRST, last)) {
      const stored = [...(target.days.get(day) ?? [])].sort();
      const neighbours = [day, addDays(day, 1)].flatMap((one) => truth.get(one) ?? []);
      expect(stored.filter((id) => !neighbours.includes(id))).toEqual([]);
    }
    const wanted = daysOf(FIRST, last).flatMap((day) => truth.get(day) ?? []);
    const all = target.ids();
    expect(new Set(all).size).toBe(all.length);
    expect(wanted.filter((id) => !all.includes(id))).toEqual([]);
    expect(target.state?.from_date).toBe(addDays(START.slice(0, 10), RUNS - 2));
  });
});
