import { afterEach, describe, expect, it } from 'vitest';
import { spans } from '../../../src/extract/download/end-rule.ts';
import type { ColumnScan } from '../../../src/schema/scan.ts';
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

describe('the proof', () => {
  it('is two rows an hour apart in every datetime column that has values [R2]', () => {
    const times = (first: string, last: string) => hasPair([column('df_server_datetime', first, last)]);
    expect(times('2026-03-05T10:00:00.000', '2026-03-05T11:00:00.000')).toBe(true);
    expect(times('2026-03-05T10:00:00.000', '2026-03-05T10:59:59.999')).toBe(false);
    expect(times('2026-03-05T10:00:00.000001', '2026-03-05T11:00:00.000000')).toBe(true);
    expect(hasPair([column('df_server_datetime')])).toBe(false);
    expect(hasPair([])).toBe(false);
    const wide = column('df_server_datetime', '2026-03-05T10:00:00.000', '2026-03-05T11:00:00.000');
    const empty: ColumnScan = { source: 'df_event_datetime', group: 'standard', evidence: 0, filled: 0, misfits: 0 };
    expect(hasPair([wide, empty])).toBe(true);
    expect(hasPair([wide, column('df_correction_datetime')])).toBe(false);
  });

  it('is nothing that one column shows while another does not, nor a column of the customer’s own [R2]', () => {
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

describe('each case of the table', () => {
  let fixture: Fixture;
  afterEach(() => fixture.close());
  const row = (id: string, time: string): FakeRow => ({ id, event: 'df_login', occurred: at(time), arrived: at(time) });
  const busy = (day: string) => steadyRows(day, day, 4);
  const run = async (
    settings: Partial<FakeServiceSettings>,
    delivery: 'fresh' | 'settled' = 'fresh',
    endDate = '2026-03-06',
  ) => {
    fixture = new Fixture('2026-03-10T16:00:00Z', settings);
    await fixture.run({ startDate: '2026-03-05', endDate }, { delivery });
    return fixture.service.ranges.map((r) => r.replaceAll('2026-03-', ''));
  };

  it('a pair: inclusive, no export more than windows', async () => {
    expect(await run({ rows: [...busy('2026-03-05'), ...busy('2026-03-06')] })).toEqual(['05..05', '06..06']);
    expect(fixture.target.state?.to_date_inclusive).toBe(true);
  });

  it('an empty day first: the next one proves', async () => {
    expect(await run({ rows: busy('2026-03-06') })).toEqual(['05..05', '05..06', '06..06']);
    expect(fixture.target.state?.to_date_inclusive).toBe(true);
    expect(fixture.target.ids().length).toBe(4);
  });

  it('empty days in a row: each but the first costs one export, and the proof is no other', async () => {
    const days = async (inclusive: boolean) => run({ inclusive, rows: busy('2026-03-08') }, 'fresh', '2026-03-09');
    const start = ['05..05', '05..06', '06..07'];
    expect(await days(true)).toEqual([...start, '07..08', '08..08', '09..09']);
    expect(fixture.target.ids().length).toBe(4);
    await fixture.close();
    expect(await days(false)).toEqual([...start, '07..08', '08..09', '09..09', '09..10']);
    expect(fixture.target.state?.to_date_inclusive).toBe(false);
    expect(fixture.target.ids().length).toBe(4);
  });

  it('the same, settled: no row twice', async () => {
    expect(await run({ rows: busy('2026-03-06') }, 'settled')).toEqual(['05..05', '05..06', '06..06']);
    expect(fixture.target.appended.length).toBe(4);
  });

  it('rows in [D,D+1] and none in [D+1,D+1]: exclusive [R2]', async () => {
    expect(await run({ inclusive: false, rows: busy('2026-03-05') })).toEqual(['05..05', '05..06', '06..06', '06..07']);
    expect(fixture.target.state?.to_date_inclusive).toBe(false);
  });

  it('a service that refuses single days: unproved, since a refusal is no observation', async () => {
    const settings = { inclusive: false, rows: busy('2026-03-05') };
    const fault: FakeServiceSettings['fault'] = (q) => (q.from === q.to ? { refuse: 'invalid' } : undefined);
    expect(await run({ ...settings, fault })).toEqual(['05..05', '05..06', '06..06', '06..07']);
    expect(fixture.target.state).not.toHaveProperty('to_date_inclusive');
    expect(fixture.target.ids()).toHaveLength(4);
  });

  it('one row a day: never proved, boundary days shared, nothing lost [R2]', async () => {
    const rows = [row('a', '2026-03-05T23:00:00Z'), row('b', '2026-03-06T01:00:00Z')];
    expect(await run({ rows })).toEqual(['05..05', '05..06', '06..06', '06..07']);
    expect(fixture.target.state).not.toHaveProperty('to_date_inclusive');
    expect(fixture.target.ids()).toEqual(['a', 'b']);
  });

  it('midnight alone, of a service that takes days for instants: nothing is proved, nothing lost [R2]', async () => {
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
    await run({ rows, daysAreInstants: true });
    expect(fixture.target.state).not.toHaveProperty('to_date_inclusive');
    expect(fixture.target.ids()).toEqual(rows.map((one) => one.id).sort());
  });

  it('a row of the next day in [D,D+1] proves nothing [R2]', async () => {
    await run({ rows: [row('b', '2026-03-06T01:00:00Z'), row('c', '2026-03-06T01:30:00Z')] }, 'fresh', '2026-03-05');
    expect(fixture.target.state).not.toHaveProperty('to_date_inclusive');
  });

  it('a day that is still going on proves no exclusive end [R202]', async () => {
    const rows = [row('late', '2026-03-10T16:00:01Z')];
    fixture = new Fixture('2026-03-10T16:00:00Z', { rows });
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
  ])('a day that is still going on proves none, nor in %s [R202]', async (_, hoursAhead) => {
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

  it('the configuration’s word is taken, and not kept', async () => {
    fixture = new Fixture('2026-03-10T16:00:00Z', { inclusive: false, rows: busy('2026-03-05') });
    await fixture.run({ startDate: '2026-03-05', endDate: '2026-03-06', toDateInclusive: 'false' });
    expect(fixture.service.ranges).toEqual(['2026-03-05..2026-03-06', '2026-03-06..2026-03-07']);
    expect(fixture.target.state).not.toHaveProperty('to_date_inclusive');
  });
});

describe('clocks', () => {
  let fixture: Fixture;
  afterEach(() => fixture.close());

  it('far apart: one warning, and the earlier one moves the cursor [R5]', async () => {
    fixture = new Fixture('2026-03-12T16:00:00Z', {
      rows: steadyRows('2026-03-05', '2026-03-12', 4),
      clockAhead: -48 * HOUR,
    });
    await fixture.run({ startDate: '2026-03-05', toDateInclusive: 'true' });
    expect(fixture.target.state?.from_date).toBe('2026-03-10');
    expect(fixture.events('clock.apart').length).toBe(1);
  });
});
