import { readdirSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import { EXIT } from '../../../src/base/errors.ts';
import type { PlanSettings } from '../../../src/extract/plan/plan.ts';
import {
  at,
  type FakeRow,
  type FakeServiceSettings,
  Fixture,
  HOUR,
  steadyRows,
} from '../../support/extract/extraction.ts';

let fixture: Fixture;
afterEach(() => fixture.close());

const FIRST = '2026-03-01';
const SETTLED = { delivery: 'settled', appends: true } as const;

/** A run every few hours for some days, each of which appends what it is given. */
async function append(
  serviceSettings: Partial<FakeServiceSettings>,
  settings: Partial<PlanSettings> = {},
  runs = 12,
): Promise<void> {
  fixture = new Fixture('2026-03-10T13:00:00Z', {
    rows: steadyRows('2026-02-25', '2026-03-16', 6),
    ...serviceSettings,
  });
  for (let run = 0; run < runs; run++) {
    await fixture.run({ startDate: FIRST, ...settings }, SETTLED);
    fixture.clock.time += 7 * HOUR;
  }
}

/** Every row of the days before `end` that were wanted, by the service's own count of days. */
const truth = (end: string): string[] =>
  fixture.service.settings.rows
    .filter((row) => fixture.service.dayOf(row) >= FIRST && fixture.service.dayOf(row) < end)
    .map((row) => row.id)
    .sort();

describe('an appended stream has each row once, and misses none', () => {
  const forms = { inclusive: [true, false], singleDays: ['as_ranges', 'whole', 'empty', 'refused'] } as const;
  const services = forms.inclusive.flatMap((inclusive) => forms.singleDays.map((form) => [inclusive, form] as const));
  const cases = services.flatMap(([inclusive, form]) => [1, 7].map((days) => [inclusive, form, days] as const));

  it.each(services)('with ranges that include their end: %s, single days: %s', async (inclusive, singleDays) => {
    await append({ inclusive, singleDays }, { windowDays: 2 });
    const cursor = fixture.target.state?.from_date ?? '';
    expect([...fixture.target.appended].sort()).toEqual(truth(cursor));
    // Where only pairs of days can be requested the last one waits for the next.
    expect(['2026-03-13', '2026-03-14']).toContain(cursor);
    expect(readdirSync(fixture.spoolDir)).toEqual([]);
  });

  it.each(cases)('also when merged: %s, single days: %s, window_days %i', async (inclusive, singleDays, windowDays) => {
    fixture = new Fixture('2026-03-10T13:00:00Z', {
      inclusive,
      singleDays,
      rows: steadyRows('2026-02-25', '2026-03-16', 6),
    });
    for (let run = 0; run < 4; run++) {
      await fixture.run({ startDate: FIRST, windowDays });
      fixture.clock.time += 25 * HOUR;
    }
    expect(fixture.target.state?.from_date).toBe('2026-03-13');
    expect(fixture.target.ids()).toEqual(expect.arrayContaining(truth('2026-03-13')));
  });

  it('when the clock of the machine is three days ahead of the service', async () => {
    await append({ clockAhead: -72 * HOUR });
    expect([...fixture.target.appended].sort()).toEqual(truth(fixture.target.state?.from_date ?? ''));
    expect(fixture.target.appended.length).toBeGreaterThan(0);
    expect(fixture.events('window.later').length).toBeGreaterThan(0);
  });

  it.each([6, 72])('with windows of several days when the clock of the machine is %i hours ahead', async (hours) => {
    await append({ clockAhead: -hours * HOUR }, { windowDays: 4 });
    const settled = new Date(fixture.clock.now() - (7 + hours + 12 + 3) * HOUR).toISOString().slice(0, 10);
    expect(fixture.target.state?.from_date).toBe(settled);
    expect([...fixture.target.appended].sort()).toEqual(truth(settled));
  });

  it.each([true, false])(
    'when days are too large for one export before single days are proved; appends: %s',
    async (appends) => {
      const few = ['01T11', '02T20', '02T23'].map((hour) => at(`2026-03-${hour}:00:00Z`));
      const rows = few.map((time): FakeRow => ({ id: `few ${time}`, event: 'own', occurred: time, arrived: time }));
      const many = ['df_login', 'df_logout', 'own'].flatMap((name) => steadyRows('2026-03-03', '2026-03-08', 3, name));
      fixture = new Fixture('2026-03-08T16:00:00Z', { rows: [...rows, ...many], most: 9 });
      fixture.options = { maxConcurrentExports: 2 };
      for (let run = 0; run < 2; run++) {
        await fixture.run({ startDate: FIRST, windowDays: 2 }, { delivery: 'settled', appends });
        fixture.clock.time += 25 * HOUR;
      }
      expect(fixture.target.state).toMatchObject({ from_date: '2026-03-09', max_window_days: 1 });
      expect([...fixture.target.appended].sort()).toEqual(truth('2026-03-09'));
    },
  );

  it('when the machine is ahead of a service that refuses future days', async () => {
    await append({ clockAhead: -72 * HOUR, future: 'error' }, { windowDays: 2 });
    expect([...fixture.target.appended].sort()).toEqual(truth(fixture.target.state?.from_date ?? ''));
    expect(fixture.target.appended.length).toBeGreaterThan(0);
  });

  it.each([1, 4])('with few rows a day, in windows of %i', async (windowDays) => {
    for (const inclusive of [true, false]) {
      fixture?.close();
      await append({ inclusive, rows: steadyRows('2026-02-25', '2026-03-16', 1) }, { windowDays });
      const cursor = fixture.target.state?.from_date ?? '';
      expect([...fixture.target.appended].sort()).toEqual(truth(cursor));
      expect(cursor >= '2026-03-11').toBe(true);
    }
  });
});

describe('a service whose end-day rule cannot be proved', () => {
  const midnights = (days: readonly string[]): FakeRow[] =>
    days.map((day) => ({
      id: `n${day}`,
      event: 'df_login',
      arrived: at(`${day}T00:00:00Z`),
      occurred: at(`${day}T00:00:00Z`),
    }));

  it('is refused for appending: the run names the key to set, and no row comes twice', async () => {
    const rows = midnights(['2026-03-05', '2026-03-06', '2026-03-07', '2026-03-08']);
    fixture = new Fixture('2026-03-12T16:00:00Z', { rows, singleDays: 'refused' });
    await expect(fixture.run({ startDate: '2026-03-05' }, SETTLED)).rejects.toMatchObject({
      exitCode: EXIT.usage,
      message: expect.stringContaining('set to_date_inclusive'),
    });
    expect(fixture.target.appended).toEqual([]);
  });
});

describe('ranges of several days', () => {
  it('are extended by one day until their rows prove that they include their end', async () => {
    fixture = new Fixture('2026-03-14T16:00:00Z', { rows: steadyRows('2026-03-01', '2026-03-16', 6) });
    fixture.target.state = { version: 1, from_date: '2026-03-01', start_date: '2026-03-01', to_date_inclusive: true };
    await fixture.run({ startDate: '2026-03-01', endDate: '2026-03-09', windowDays: 3, lookbackDays: 0 });
    expect(fixture.service.ranges.map((range) => range.replaceAll('2026-03-', ''))).toEqual([
      '01..04',
      '04..06',
      '07..09',
    ]);
    expect(fixture.target.state).toMatchObject({ to_date_inclusive: true, ranges_inclusive: true });
    expect(fixture.events('rule.ranges_proved')).toMatchObject([{ fields: { window: '2026-03-01' } }]);
  });

  it('are not taken to include their end because single days do', async () => {
    const rows = steadyRows('2026-03-01', '2026-03-16', 6);
    fixture = new Fixture('2026-03-14T16:00:00Z', { rows, inclusive: false, singleDays: 'whole' });
    await fixture.run({ startDate: '2026-03-01', endDate: '2026-03-09', windowDays: 7 });
    expect(fixture.target.ids()).toHaveLength(9 * 6);
    expect(fixture.target.state).toMatchObject({ to_date_inclusive: true, from_date: '2026-03-10' });
    expect(fixture.target.state).not.toHaveProperty('ranges_inclusive');
  });
});
