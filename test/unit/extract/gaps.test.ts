import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { addDays, daysBetween, daysOf } from '../../../src/base/days.ts';
import { UserError } from '../../../src/base/errors.ts';
import { extractWindows } from '../../../src/extract/extract.ts';
import {
  at,
  type FakeServiceSettings,
  FakeTarget,
  Fixture,
  HOUR,
  planFor,
  steadyRows,
} from '../../support/extract/extraction.ts';
import { until } from '../../support/wait.ts';

const RIGHT = '2026-03-20T16:00:00Z';
/** The oldest day that the service still exports at that instant, with thirty days of history. */
const OLDEST = '2026-02-18';
const ROWS = steadyRows('2026-01-25', '2026-03-20', 4);

let fixture: Fixture;
/** A service that is right about the time, and a machine whose clock is so many days ahead of it. */
function open(daysAhead: number, serviceSettings: Partial<FakeServiceSettings> = {}): Fixture {
  const clockAhead = -daysAhead * 24 * HOUR;
  fixture = new Fixture(new Date(at(RIGHT) - clockAhead).toISOString(), { rows: ROWS, clockAhead, ...serviceSettings });
  return fixture;
}
afterEach(() => fixture.close());
const idsOf = (first: string, last: string) =>
  daysOf(first, last)
    .flatMap((day) => ROWS.filter((row) => row.id.includes(day)).map((row) => row.id))
    .sort();

const filesEnding = (ending: string): string[] =>
  readdirSync(fixture.spoolDir, { recursive: true })
    .map((name) => join(fixture.spoolDir, String(name)))
    .filter((path) => path.endsWith(ending));
/** Paths of the downloads in the spool that have a row of the day. */
const downloadsWith = (day: string): string[] =>
  filesEnding('.csv').filter((path) => readFileSync(path, 'utf8').includes(`df_login-${day}`));

describe('a gap', () => {
  it('is never concluded from the clock of this machine alone: exportable days are read', async () => {
    open(20);
    await fixture.run({ startDate: '2026-03-01', endDate: '2026-03-05', onGap: 'warn' });
    expect(fixture.target.ids()).toEqual(idsOf('2026-03-01', '2026-03-05'));
    expect(fixture.target.state).not.toHaveProperty('gaps');
    expect(fixture.target.state?.from_date).toBe('2026-03-06');
    expect(fixture.counts.gaps).toEqual([]);
  });

  it('does not end a run under on_gap fail because of a clock that is ahead', async () => {
    open(20);
    await fixture.run({ startDate: '2026-03-01', endDate: '2026-03-05', onGap: 'fail' });
    expect(fixture.target.ids()).toEqual(idsOf('2026-03-01', '2026-03-05'));
  });

  it('is a day that the service refuses; by its clock other days are expired too, and cost no export', async () => {
    open(0);
    await fixture.run({ startDate: '2026-02-01', endDate: '2026-02-20', onGap: 'warn', toDateInclusive: 'true' });
    expect(fixture.target.state?.gaps).toEqual(daysOf('2026-02-01', '2026-02-17'));
    expect(fixture.target.state?.from_date).toBe('2026-02-21');
    expect(fixture.service.requests.map((request) => request.from)).toEqual([
      '2026-02-01',
      ...daysOf(OLDEST, '2026-02-20'),
    ]);
    expect(new Set(fixture.counts.gaps)).toEqual(new Set(daysOf('2026-02-01', '2026-02-17')));
  });

  it('is each of 155,000 days where start_date is that early', async () => {
    open(0);
    await fixture.run({ startDate: '1600-01-01', endDate: '2026-02-20', onGap: 'warn', toDateInclusive: 'true' });
    expect(fixture.target.state?.gaps?.length).toBe(daysBetween('1600-01-01', OLDEST));
    expect(fixture.counts.gaps.length).toBe(daysBetween('1600-01-01', OLDEST));
    expect(fixture.target.ids()).toEqual(idsOf(OLDEST, '2026-02-20'));
    expect(fixture.events('window.gap')).toMatchObject([
      { message: expect.stringContaining('1600-01-01 to 2026-02-17') },
    ]);
  }, 60_000);

  it('ends the run under on_gap fail with exit 4 and the name of every day, and nothing is stored', async () => {
    open(0);
    const failure = await fixture.run({ startDate: '2026-02-10', endDate: '2026-02-20' }).catch((e: unknown) => e);
    if (!(failure instanceof UserError)) throw failure;
    expect([failure.exitCode, failure.kind, fixture.target.receipts]).toEqual([4, 'config', []]);
    expect(failure.message).toContain('2026-02-10 to 2026-02-17');
    expect(fixture.counts.gaps).toEqual(daysOf('2026-02-10', '2026-02-17'));
  });

  it('is not a day that is complete already, also when the caller names it', async () => {
    open(0);
    await fixture.run({ startDate: '2026-02-20', endDate: '2026-02-22' });
    fixture.clock.time += 5 * 24 * HOUR;
    const named = { from: '2026-02-20', to: '2026-02-24' };
    await fixture.run({ startDate: '2026-02-20' }, named);
    expect(fixture.target.state).not.toHaveProperty('gaps');
    expect(fixture.counts.gaps).toEqual([]);
    expect(fixture.target.state?.from_date).toBe('2026-02-25');
    const again = fixture.run({ startDate: '2026-02-20' }, { from: '2026-02-19', to: '2026-02-24' });
    await expect(again).rejects.toMatchObject({ exitCode: 4, message: expect.stringMatching(/^1 day .*2026-02-19\./) });
  });

  it('of several windows is found with two exports', async () => {
    open(0);
    const settings = { startDate: '2026-02-01', endDate: '2026-02-20', windowDays: 7, onGap: 'warn' } as const;
    await fixture.run({ ...settings, toDateInclusive: 'true' });
    expect(fixture.target.state?.gaps).toEqual(daysOf('2026-02-01', '2026-02-17'));
    expect(fixture.target.ids()).toEqual(idsOf(OLDEST, '2026-02-20'));
  });
});

describe('a day that is too old by both clocks', () => {
  const OLD = { startDate: '2026-02-10', endDate: '2026-02-20' } as const;
  /** A service that answers for days that it no longer has, without rows. */
  const clamping = () => open(0, { rows: steadyRows(OLDEST, '2026-03-20', 4), historyDays: 1_000 });
  const LOST = daysOf('2026-02-10', '2026-02-17');
  const RULES = [
    { toDateInclusive: 'true', windowDays: 1 },
    { toDateInclusive: 'true', windowDays: 7 },
    { toDateInclusive: 'auto', windowDays: 1 },
    { toDateInclusive: 'auto', windowDays: 7 },
  ] as const;

  it.each(RULES)('is a gap where the service answers without rows, in each of two runs: %o', async (rule) => {
    clamping();
    for (let run = 0; run < 2; run++) {
      const failure = await fixture.run({ ...OLD, ...rule }).catch((e: unknown) => e);
      expect(failure).toMatchObject({
        exitCode: 4,
        message: expect.stringMatching(/^8 days .*2026-02-10 to 2026-02-17/),
      });
      expect(fixture.target.receipts).toEqual([]);
    }
    await fixture.run({ ...OLD, ...rule, onGap: 'warn' });
    expect(fixture.target.state).toMatchObject({ gaps: LOST, from_date: '2026-02-21' });
    expect(fixture.target.ids()).toEqual(expect.arrayContaining(idsOf(OLDEST, '2026-02-20')));
  });

  it('is a gap of every target of a command', async () => {
    clamping();
    const sharing = { command: 'one', refusals: new Map(), waitBudgets: new Map(), concurrency: { max: 9 } };
    for (const keep of [true, false]) {
      fixture.target = new FakeTarget();
      const plan = planFor(fixture.clock, fixture.target.prior(), { ...OLD, onGap: 'warn', toDateInclusive: 'true' });
      const deps = { ...fixture.deps(), sharing: { ...sharing, keep } };
      for await (const window of extractWindows(plan, deps)) await fixture.target.commit(window);
      expect(fixture.target.state?.gaps).toEqual(LOST);
    }
    expect(fixture.service.ranges.filter((range) => range.startsWith(OLDEST))).toHaveLength(1);
  });

  it.each(RULES)('is exported where the service has sent rows of an older one: %o', async (rule) => {
    open(0, { historyDays: 1_000 });
    await fixture.run({ ...OLD, ...rule });
    expect(fixture.counts.gaps).toEqual([]);
    expect(fixture.target.ids()).toEqual(idsOf('2026-02-10', '2026-02-20'));
    expect(fixture.target.state?.from_date).toBe('2026-02-21');
  });

  it.each([30, 1_000])(
    'is read where a killed run left its download, and windows have more days now; the service refuses after %d days',
    async (historyDays) => {
      open(0, { historyDays });
      const settings = { startDate: '2026-02-18', endDate: '2026-02-25', toDateInclusive: 'true' } as const;
      const windows = fixture.windows(settings);
      await windows.next();
      await until(() => filesEnding('.json').length === 3);
      await fixture.kill(windows);
      fixture.clock.time += 3 * 24 * HOUR;
      // A service that does not refuse sends what it still has.
      const rows = fixture.service.settings.rows.filter((row) => fixture.service.dayOf(row) > '2026-02-20');
      fixture.service.settings = { ...fixture.service.settings, rows };
      await fixture.run({ ...settings, windowDays: 4, onGap: 'warn' });
      expect(fixture.target.ids()).toEqual(idsOf('2026-02-18', '2026-02-25'));
      expect(fixture.target.state).toMatchObject({ from_date: '2026-02-26' });
      expect(fixture.target.state).not.toHaveProperty('gaps');
    },
  );

  it.each([
    [1, 3],
    [3, 6],
  ])(
    'is read where a killed run left its download, with windows of %d days, %d days later',
    async (windowDays, days) => {
      open(0);
      const settings = { startDate: '2026-02-18', endDate: '2026-02-25', toDateInclusive: 'true', windowDays } as const;
      const windows = fixture.windows(settings);
      await windows.next();
      await until(() => filesEnding('.json').length === 3);
      await fixture.kill(windows);
      const left = fixture.service.requests
        .map(({ from, to }) => ({ from, to }))
        .sort((a, b) => (a.from < b.from ? -1 : 1));
      expect(left.length).toBe(3);
      // Of the first days nothing is left, and the service says by its refusal what time it is there.
      for (const name of downloadsWith(left[0].from)) rmSync(name);
      fixture.clock.time += days * 24 * HOUR;
      await fixture.run({ ...settings, onGap: 'warn' });
      const first = addDays(left[0].to, 1);
      expect(fixture.target.state?.gaps).toEqual(daysOf('2026-02-18', left[0].to));
      expect(fixture.target.ids()).toEqual(idsOf(first, '2026-02-25'));
    },
  );
});

describe('a default start', () => {
  it('moves back to the oldest exportable day when a clock that is ahead put it too late', async () => {
    open(10);
    await fixture.run();
    expect(fixture.target.state).toMatchObject({ start_date: OLDEST, from_date: OLDEST });
    fixture.clock.time = at(RIGHT);
    fixture.service.settings = { ...fixture.service.settings, clockAhead: 0 };
    await fixture.run();
    expect(fixture.target.ids()).toEqual(idsOf(OLDEST, '2026-03-20').filter((id) => fixture.target.rows.has(id)));
    expect(fixture.target.ids()).toEqual(expect.arrayContaining(idsOf(OLDEST, '2026-03-19')));
    expect(fixture.target.state?.from_date).toBe('2026-03-20');
  });
});
