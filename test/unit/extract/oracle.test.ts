import { describe, expect, it } from 'vitest';
import { addDays, daysOf } from '../../../src/base/days.ts';
import { at, Fixture, HOUR, type ServiceSettings, steadyRows } from '../../support/extract/extraction.ts';

/** Thirty daily runs against a truth that is kept outside: the rows of each day that the service has when it was read last. */
const RUNS = 30;
const FIRST = '2026-02-20';
const START = '2026-03-01T02:00:00Z';

const all = steadyRows(FIRST, '2026-04-05', 6).filter(({ id }) => !/2026-03-08|2026-02-24/.test(id));
// Every eleventh event arrives a day late.
const isLate = (i: number) => i % 11 === 0;
const rows = all.map((row, i) => (isLate(i) ? { ...row, at: row.at + 20 * HOUR, happened: row.at } : row));

const SERVICES: Readonly<Record<string, ServiceSettings>> = {
  'includes its end': {},
  'excludes its end': { days: { to_date_inclusive: false } },
  'takes ends for midnight': { days: { compares: 'instants' } },
  'refuses single days': { days: { single_days: 'error' } },
  'answers single days with nothing': { days: { single_days: 'empty' } },
  'ends without a line end': { format: { final_newline: false } },
  'ends without a line end, rows in another order each time': {
    format: { final_newline: false, shuffles_rows: true },
    days: { to_date_inclusive: false },
  },
  'has days of UTC-8': { days: { zone_hours: -8 } },
  'has days of UTC+9 and refuses days to come': { days: { zone_hours: 9, future: 'error' } },
  'refuses days to come and excludes its end': { days: { future: 'error', to_date_inclusive: false } },
  'answers empty days with 404': { days: { empty: '404' } },
  'answers empty days with 204': { days: { empty: '204', to_date_inclusive: false } },
  'answers empty days with no byte': { days: { empty: 'zero_bytes' } },
  'answers empty days with an empty list': { days: { empty: 'list' } },
  'selects by the time of the event, rows late': {
    rows: all.map((row, i) => (isLate(i) ? { ...row, shownFrom: row.at + 20 * HOUR } : row)),
  },
  'lags by half a day': { rows: rows.map((row) => ({ ...row, shownFrom: row.at + 12 * HOUR })) },
};

describe('thirty daily runs hold every row once, for every kind of service', () => {
  it.each(Object.entries(SERVICES))('a service that %s', async (_name, settings) => {
    const fixture = await Fixture.start(START, { rows, ...settings });
    const { target, clock } = fixture;
    for (let run = 0; run < RUNS; run++) {
      clock.time = at(START) + run * 24 * HOUR + (run % 5) * HOUR;
      await fixture.run({ startDate: FIRST });
    }
    const last = addDays(START.slice(0, 10), RUNS - 3);
    // Within the history, and over for so long that late rows have come.
    for (const day of daysOf(FIRST, last)) {
      const stored = [...(target.days.get(day) ?? [])].sort();
      const neighbours = fixture.ids(day, addDays(day, 1));
      expect(stored.filter((id) => !neighbours.includes(id))).toEqual([]);
    }
    const wanted = fixture.ids(FIRST, last);
    const loaded = target.ids();
    expect(new Set(loaded).size).toBe(loaded.length);
    expect(wanted.filter((id) => !loaded.includes(id))).toEqual([]);
    expect(target.state?.from_date).toBe(addDays(START.slice(0, 10), RUNS - 2));
  });
});
