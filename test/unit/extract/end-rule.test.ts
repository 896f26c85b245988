import { readdirSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import { columnEdits } from '../../../src/cells/columns/column-edits.ts';
import type { ColumnScan } from '../../../src/cells/columns/scan.ts';
import { spans } from '../../../src/extract/download/end-rule.ts';
import type { PlanInput } from '../../../src/extract/plan/plan.ts';
import {
  at,
  type FakeRow,
  type FakeServiceSettings,
  Fixture,
  HOUR,
  steadyRows,
} from '../../support/extract/extraction.ts';

const hasPair = (columns: readonly ColumnScan[]) => spans(columns, 1);

const column = (source: string, first?: string, last?: string): ColumnScan => ({
  source,
  group: 'system',
  evidence: 0,
  filled: 2,
  misfits: 0,
  type: 'datetime',
  ...(first !== undefined && { first }),
  ...(last !== undefined && { last }),
});

describe('the proof that the end day is included', () => {
  it('is two rows an hour apart in every datetime column with values', () => {
    const times = (first: string, last: string) => hasPair([column('df_server_datetime', first, last)]);
    expect(times('2026-03-05T10:00:00.000', '2026-03-05T11:00:00.000')).toBe(true);
    expect(times('2026-03-05T10:00:00.000', '2026-03-05T10:59:59.999')).toBe(false);
    expect(times('2026-03-05T10:00:00.000001', '2026-03-05T11:00:00.000000')).toBe(true);
    expect(hasPair([column('df_server_datetime')])).toBe(false);
    expect(hasPair([])).toBe(false);
    expect(hasPair([column('df_server_datetime', '2026-03-05T10:00:00.000')])).toBe(false);
    expect(hasPair([column('df_server_datetime', undefined, '2026-03-05T10:00:00.000')])).toBe(false);
    const wide = column('df_server_datetime', '2026-03-05T10:00:00.000', '2026-03-05T11:00:00.000');
    const empty: ColumnScan = { source: 'df_event_datetime', group: 'standard', evidence: 0, filled: 0, misfits: 0 };
    expect(hasPair([wide, empty])).toBe(true);
    expect(hasPair([wide, column('df_correction_datetime')])).toBe(false);
  });

  it('is not given by one column against another, nor by a custom column', () => {
    const midnight = column('df_server_datetime', '2026-03-05T00:00:00.000', '2026-03-05T00:00:00.000');
    const hours = column('df_correction_datetime', '2026-03-04T10:00:00.000', '2026-03-05T20:00:00.000');
    expect(hasPair([midnight, hours])).toBe(false);
    expect(hasPair([column('df_event_datetime', '2026-03-05T01:00:00.000', '2026-03-05T02:00:00.000'), hours])).toBe(
      true,
    );
    const split = [
      column('df_server_datetime', '2026-03-05T10:00:00.000', '2026-03-05T10:00:00.000'),
      column('df_correction_datetime', '2026-03-05T20:00:00.000', '2026-03-05T20:00:00.000'),
      column('my_time', '2026-03-05T10:00:00.000', '2026-03-05T20:00:00.000'),
    ];
    expect(hasPair(split)).toBe(false);
  });
});

const NOW = '2026-03-10T16:00:00Z';
let fixture: Fixture;
const open = (settings: Partial<FakeServiceSettings>) => {
  fixture = new Fixture(NOW, settings);
  return fixture;
};
afterEach(() => fixture?.close());

const row = (id: string, time: string): FakeRow => ({ id, event: 'df_login', occurred: at(time), arrived: at(time) });
const busy = (day: string) => steadyRows(day, day, 4);
const sparse = (first: string, last: string) => steadyRows(first, last, 1);
const ranges = () => fixture.service.ranges.map((range) => range.replaceAll('2026-03-', ''));
const run = (first: string, last: string, more: Partial<PlanInput> = {}, settings = {}) =>
  fixture.run({ startDate: `2026-03-${first}`, endDate: `2026-03-${last}`, ...settings }, more);
const SETTLED = { delivery: 'settled' } as const;

describe('the exports that the end-day rule costs', () => {
  const asked = async (settings: Partial<FakeServiceSettings>, more: Partial<PlanInput> = {}, last = '06') => {
    open(settings);
    await run('05', last, more);
    return ranges();
  };

  it('for a pair of rows: inclusive, one export per window, logged once', async () => {
    expect(await asked({ rows: [...busy('2026-03-05'), ...busy('2026-03-06')] })).toEqual(['05..05', '06..06']);
    expect(fixture.target.state?.to_date_inclusive).toBe(true);
    expect(fixture.events('rule.proved')).toMatchObject([
      { level: 'info', fields: { window: '2026-03-05', to_date_inclusive: true } },
    ]);
    expect(fixture.counts.singleDaysInclusive).toBe(true);
  });

  it('for an empty first day: the next day proves the rule', async () => {
    expect(await asked({ rows: busy('2026-03-06') })).toEqual(['05..05', '05..06', '06..06']);
    expect(fixture.target.state?.to_date_inclusive).toBe(true);
    expect(fixture.target.ids().length).toBe(4);
  });

  it('for consecutive empty days: one further export for each but the first, and the same proof', async () => {
    const days = async (inclusive: boolean) => asked({ inclusive, rows: busy('2026-03-08') }, {}, '09');
    const start = ['05..05', '05..06', '06..07'];
    expect(await days(true)).toEqual([...start, '07..08', '08..08', '09..09']);
    expect(fixture.target.ids().length).toBe(4);
    await fixture.close();
    expect(await days(false)).toEqual([...start, '07..08', '08..09', '09..09', '09..10']);
    expect(fixture.target.state?.to_date_inclusive).toBe(false);
    expect(fixture.target.ids().length).toBe(4);
  });

  it('for the same under settled: no row twice', async () => {
    expect(await asked({ rows: busy('2026-03-06') }, SETTLED)).toEqual(['05..05', '05..06', '06..06']);
    expect(fixture.target.appended.length).toBe(4);
  });

  it('for rows in [D,D+1] and none in [D+1,D+1]: exclusive', async () => {
    expect(await asked({ inclusive: false, rows: busy('2026-03-05') })).toEqual([
      '05..05',
      '05..06',
      '06..06',
      '06..07',
    ]);
    expect(fixture.target.state?.to_date_inclusive).toBe(false);
  });

  it('for a service that refuses single days: unproved, since a refusal is not an observation', async () => {
    const settings = { inclusive: false, rows: busy('2026-03-05') };
    const fault: FakeServiceSettings['fault'] = (q) => (q.from === q.to ? { refuse: 'invalid' } : undefined);
    expect(await asked({ ...settings, fault })).toEqual(['05..05', '05..06', '06..06', '06..07']);
    expect(fixture.target.state).not.toHaveProperty('to_date_inclusive');
    expect(fixture.target.ids()).toHaveLength(4);
  });

  it('for one row a day: never proved, boundary days are shared, no row is lost', async () => {
    const rows = [row('a', '2026-03-05T23:00:00Z'), row('b', '2026-03-06T01:00:00Z')];
    expect(await asked({ rows })).toEqual(['05..05', '05..06', '06..06', '06..07']);
    expect(fixture.target.state).not.toHaveProperty('to_date_inclusive');
    expect(fixture.target.ids()).toEqual(['a', 'b']);
  });

  it('for midnight alone, from a service that reads days as instants: unproved, no row is lost', async () => {
    const night = (id: string, day: string, hours: number): FakeRow => {
      const arrived = at(`${day}T00:00:00Z`);
      return { id, event: 'df_login', arrived, occurred: arrived - hours * HOUR };
    };
    const rows = [
      ...busy('2026-03-05'),
      ...busy('2026-03-06'),
      night('n1', '2026-03-05', 1),
      night('n2', '2026-03-05', 9),
      night('n3', '2026-03-06', 2),
      night('n4', '2026-03-06', 7),
    ];
    await asked({ rows, daysAreInstants: true });
    expect(fixture.target.state).not.toHaveProperty('to_date_inclusive');
    expect(fixture.target.ids()).toEqual(rows.map((one) => one.id).sort());
  });

  it('for a row of the next day in [D,D+1]: unproved', async () => {
    await asked({ rows: [row('b', '2026-03-06T01:00:00Z'), row('c', '2026-03-06T01:30:00Z')] }, {}, '05');
    expect(fixture.target.state).not.toHaveProperty('to_date_inclusive');
  });

  it('for a day that is not over: not exclusive', async () => {
    open({ rows: [row('late', '2026-03-10T16:00:01Z')] });
    const tick: FakeServiceSettings['fault'] = (_q, count) => {
      // The first row of the day arrives between the first and the second export.
      if (count === 2) fixture.clock.time += 2_000;
      return undefined;
    };
    fixture.service.settings = { ...fixture.service.settings, fault: tick };
    await fixture.run({ startDate: '2026-03-10' });
    expect(fixture.target.state).not.toHaveProperty('to_date_inclusive');
    expect(fixture.target.ids()).toEqual(['late']);
  });

  it.each([
    ['a full refresh', 0],
    ['a full refresh, by a machine that thinks the day over', 30],
  ])('for a day that is not over: not exclusive in %s', async (_, hoursAhead) => {
    const rows = [row('late', '2026-03-10T16:00:01Z')];
    const clockAhead = -hoursAhead * HOUR;
    fixture = new Fixture(new Date(at('2026-03-10T16:00:00Z') - clockAhead).toISOString(), { rows, clockAhead });
    const fault: FakeServiceSettings['fault'] = (_q, count) => {
      if (count === 2) fixture.clock.time += 2_000;
      return undefined;
    };
    fixture.service.settings = { ...fixture.service.settings, fault };
    await fixture.run({ startDate: '2026-03-10', endDate: '2026-03-11' }, { fullRefresh: true });
    expect(fixture.target.state).not.toHaveProperty('to_date_inclusive');
    expect(fixture.target.ids()).toEqual(['late']);
  });

  it('for a configured rule: used, not stored', async () => {
    open({ inclusive: false, rows: busy('2026-03-05') });
    await run('05', '06', {}, { toDateInclusive: 'false' });
    expect(fixture.service.ranges).toEqual(['2026-03-05..2026-03-06', '2026-03-06..2026-03-07']);
    expect(fixture.target.state).not.toHaveProperty('to_date_inclusive');
  });
});

describe('clocks', () => {
  it('that differ by hours cause one warning, and the earlier one moves the cursor', async () => {
    fixture = new Fixture('2026-03-12T16:00:00Z', {
      rows: steadyRows('2026-03-05', '2026-03-12', 4),
      clockAhead: -48 * HOUR,
    });
    await fixture.run({ startDate: '2026-03-05', toDateInclusive: 'true' });
    expect(fixture.target.state?.from_date).toBe('2026-03-10');
    expect(fixture.events('clock.apart').length).toBe(1);
  });
});

describe('a day that has not begun', () => {
  it('costs one request, and is left to a later run', async () => {
    await open({ future: 'error', rows: sparse('2026-03-09', '2026-03-10') }).run({ startDate: '2026-03-09' });
    expect(ranges()).toEqual(['09..09', '09..10', '10..10', '10..11', '11..11']);
    expect(fixture.events('window.dropped')).toMatchObject([{ message: expect.stringContaining('2026-03-11') }]);
    expect(fixture.target.ids()).toHaveLength(2);
    expect(fixture.target.state?.from_date).toBe('2026-03-10');
  });

  it('does not delay the day before, which is delivered and completes nothing', async () => {
    await open({ future: 'error', rows: sparse('2026-03-10', '2026-03-10') }).run({ startDate: '2026-03-10' });
    expect(fixture.target.receipts.map(({ from, to, covers_to }) => [from, to, covers_to])).toEqual([
      ['2026-03-10', '2026-03-10', null],
    ]);
    expect(fixture.target.ids()).toHaveLength(1);
    expect(readdirSync(fixture.spoolDir)).toEqual([]);
  });

  it('is requested both ways once a day that had begun was refused on its own', async () => {
    const refused: FakeServiceSettings['fault'] = ({ from }) =>
      from === '2026-03-10' ? { refuse: 'invalid' } : undefined;
    const rows = sparse('2026-03-09', '2026-03-09');
    await open({ future: 'error', rows, fault: refused }).run({ startDate: '2026-03-09' });
    expect(ranges()).toEqual(['09..09', '09..10', '10..10', '10..11', '11..11', '11..12']);
    expect(fixture.target.state?.from_date).toBe('2026-03-10');
    expect(fixture.events('window.dropped').map(({ level }) => level)).toEqual(['debug', 'debug']);
  });
});

describe('a day that is no longer exportable', () => {
  it('costs one request', async () => {
    open({ historyDays: 4, rows: busy('2026-03-06') });
    await run('05', '06', {}, { onGap: 'warn' });
    expect(ranges()).toEqual(['05..05', '06..06']);
    expect(fixture.target.state?.gaps).toEqual(['2026-03-05']);
  });

  it('between its two requests is a gap, and none of its rows are kept', async () => {
    const fault: FakeServiceSettings['fault'] = (_q, count) => {
      if (count === 2) fixture.clock.time = at('2026-03-11T00:00:00Z');
      return undefined;
    };
    open({ historyDays: 5, rows: [...sparse('2026-03-05', '2026-03-05'), ...busy('2026-03-06')], fault });
    await run('05', '06', {}, { onGap: 'warn', historyDays: 5 });
    expect(ranges()).toEqual(['05..05', '05..06', '06..06']);
    expect(fixture.target.state?.gaps).toEqual(['2026-03-05']);
    expect([fixture.target.ids().length, readdirSync(fixture.spoolDir)]).toEqual([4, []]);
  });
});

describe('a day from a service that exports single days only', () => {
  const alone: FakeServiceSettings['fault'] = ({ from, to }) => (from === to ? undefined : { refuse: 'gone' });
  const rows = [...sparse('2026-03-05', '2026-03-05'), ...busy('2026-03-06')];

  it.each(['warn', 'fail'] as const)(
    'is no gap: its rows are kept, and it is read again once the rule is proved, on_gap %s',
    async (onGap) => {
      open({ rows, fault: alone });
      await run('05', '06', {}, { onGap });
      expect(ranges()).toEqual(['05..05', '05..06', '06..06']);
      expect(fixture.target.ids()).toHaveLength(5);
      expect(fixture.target.receipts.map(({ from, to, covers_to }) => [from, to, covers_to])).toEqual([
        ['2026-03-05', '2026-03-05', null],
        ['2026-03-06', '2026-03-06', '2026-03-06'],
      ]);
      expect(fixture.target.state).toMatchObject({ from_date: '2026-03-05', to_date_inclusive: true });
      expect(fixture.target.state).not.toHaveProperty('gaps');
      const message = expect.stringMatching(
        /exports 2026-03-05 alone, but not with 2026-03-06.*to_date_inclusive to true/,
      );
      expect(fixture.events('rule.open')).toMatchObject([{ level: 'warn', message, fields: { window: '2026-03-05' } }]);
      await run('05', '06', {}, { onGap });
      expect(fixture.target.state?.from_date).toBe('2026-03-07');
      expect(readdirSync(fixture.spoolDir)).toEqual([]);
    },
  );

  it('is not handed on where rows are appended: the run says what to set', async () => {
    open({ rows, fault: alone });
    const failure = run('05', '06', { ...SETTLED, appends: true }, { onGap: 'warn' });
    await expect(failure).rejects.toThrow(/rows of 2026-03-05.*set to_date_inclusive/s);
    expect(fixture.target.appended).toEqual([]);
    await run('05', '06', { ...SETTLED, appends: true }, { toDateInclusive: 'true' });
    expect(fixture.target.appended).toHaveLength(5);
  });
});

describe('an export requested ahead', () => {
  it('proves the rule, gives no wanted row, and is not kept', async () => {
    open({ rows: [...sparse('2026-03-05', '2026-03-05'), ...busy('2026-03-06')] });
    await run('05', '05', SETTLED);
    expect(ranges()).toEqual(['05..05', '05..06', '06..06']);
    expect(fixture.target.state).toMatchObject({ to_date_inclusive: true, from_date: '2026-03-06' });
    expect(fixture.target.receipts).toMatchObject([{ from: '2026-03-05', to: '2026-03-05', rows: 1 }]);
    expect(readdirSync(fixture.spoolDir)).toEqual([]);
  });

  it('is removed with the next day if it is not needed', async () => {
    open({ rows: sparse('2026-03-05', '2026-03-09') });
    fixture.target.covered.add('2026-03-06').add('2026-03-07');
    fixture.target.state = { version: 1, from_date: '2026-03-05', start_date: '2026-03-05' };
    await run('05', '08', SETTLED, { lookbackDays: 0 });
    expect(ranges()).toEqual(['05..05', '05..06', '06..06', '08..08', '08..09', '09..09']);
    expect([fixture.target.ids().length, readdirSync(fixture.spoolDir)]).toEqual([2, []]);
  });

  it('from a service that refuses single days is no proof: the counts of ranges are', async () => {
    const fault: FakeServiceSettings['fault'] = ({ from, to }) => (from === to ? { refuse: 'invalid' } : undefined);
    open({ inclusive: false, rows: [...busy('2026-03-05'), ...busy('2026-03-06')], fault });
    await run('05', '06', SETTLED);
    expect(fixture.target.state).toMatchObject({ to_date_inclusive: false, ranges_inclusive: false });
    expect(fixture.target.appended).toHaveLength(8);
  });

  it('proves nothing about a day that was refused on its own', async () => {
    const fault: FakeServiceSettings['fault'] = ({ from, to }) =>
      from === to && to === '2026-03-05' ? { refuse: 'invalid' } : undefined;
    open({ rows: sparse('2026-03-06', '2026-03-06'), fault });
    await run('05', '05', SETTLED);
    expect(fixture.target.receipts).toMatchObject([{ from: '2026-03-05', to: '2026-03-06', covers_to: '2026-03-05' }]);
    expect(fixture.events('rule.open')).toHaveLength(1);
  });

  it('proves nothing when each day has more rows in the range of two, which is logged', async () => {
    const midnight = (day: string) => row(`n${day}`, `2026-03-${day}T00:00:00Z`);
    const rows = [...busy('2026-03-05'), midnight('05'), midnight('06')];
    open({ rows, daysAreInstants: true });
    await run('05', '05', SETTLED);
    expect(fixture.events('rule.open')).toMatchObject([{ level: 'warn', fields: { window: '2026-03-05' } }]);
    expect(fixture.target.ids()).toEqual(rows.map(({ id }) => id).sort());
    expect(readdirSync(fixture.spoolDir)).toEqual([]);
  });
});

describe('the proof that the end day is excluded', () => {
  it.each(['09', '08'])('is given by the last day that is over everywhere, from the %s on', async (first) => {
    open({ inclusive: false, rows: busy('2026-03-09') });
    await run(first, '10');
    expect(fixture.target.state?.to_date_inclusive).toBe(false);
    expect(fixture.events('rule.proved')).toMatchObject([
      { fields: { window: '2026-03-10', to_date_inclusive: false } },
    ]);
  });

  it('is not given by an empty day that was not over', async () => {
    const late = row('late', '2026-03-10T16:00:01Z');
    const tick: FakeServiceSettings['fault'] = (_q, count) => {
      if (count === 3) fixture.clock.time += 2_000;
      return undefined;
    };
    open({ rows: [late], fault: tick });
    await run('09', '11');
    expect(fixture.target.state).not.toHaveProperty('to_date_inclusive');
    expect(fixture.target.ids()).toEqual(['late']);
  });

  it('is not given by a day without rows, under settled neither', async () => {
    open({ rows: [] });
    await run('05', '08', SETTLED);
    expect(fixture.target.state).not.toHaveProperty('to_date_inclusive');
    expect(fixture.target.receipts.map(({ to }) => to.slice(8))).toEqual(['06', '07', '08', '09']);
  });
});

describe('with dropped columns the end-day rule', () => {
  it('is proved unless the event datetime is dropped', async () => {
    const proved = async (...dropped: string[]) => {
      fixture?.close();
      open({ rows: [...busy('2026-03-05'), ...busy('2026-03-06')] });
      fixture.options = { edits: columnEdits(dropped, [], undefined) };
      await run('05', '06');
      return fixture.target.state?.to_date_inclusive;
    };
    expect([await proved('df_api_version'), await proved('df_event_datetime')]).toEqual([true, undefined]);
  });
});

describe('while the end-day rule is unproved', () => {
  it('three days are requested one by one, and then several together with one day more', async () => {
    open({ rows: sparse('2026-03-01', '2026-03-09') });
    await run('01', '08', {}, { windowDays: 3 });
    const singles = ['01..01', '01..02', '02..02', '02..03', '03..03', '03..04'];
    expect(ranges()).toEqual([...singles, '04..07', '07..09']);
    expect(fixture.target.state?.from_date).toBe('2026-03-09');
    expect(fixture.target.ids()).toHaveLength(9);
  });

  it('no two days are requested at once, at any concurrency', async () => {
    open({ rows: sparse('2026-03-01', '2026-03-06') });
    await run('01', '05');
    expect(fixture.service.busiest).toBe(1);
    fixture.close();
    open({ rows: sparse('2026-03-01', '2026-03-06') });
    await run('01', '05', {}, { toDateInclusive: 'true' });
    expect(fixture.service.busiest).toBe(3);
  });
});

it('the clock of the service decides which day is over, when it is behind', async () => {
  open({ inclusive: false, rows: busy('2026-03-09'), clockAhead: -24 * HOUR });
  await run('09', '10');
  expect(fixture.target.state).not.toHaveProperty('to_date_inclusive');
});
