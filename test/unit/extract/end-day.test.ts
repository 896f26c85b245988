import { describe, expect, it } from 'vitest';
import type { Day } from '../../../src/base/days.ts';
import { at, Fixture, HOUR, type ServiceSettings, steadyRows } from '../../support/extract/extraction.ts';
import type { Fault, FaultRule } from '../../support/service/faults.ts';

const NOW = '2026-01-20T14:00:00Z';
const SETTINGS = { startDate: '2026-01-16' } as const;
const rows = steadyRows('2026-01-10', '2026-01-31', 5);
type Row = (typeof rows)[number];

let fixture: Fixture;

/** One first run; returns the requests that it began with. */
async function firstRun(settings: ServiceSettings, now = NOW): Promise<readonly string[]> {
  fixture = await Fixture.start(now, { rows, ...settings });
  await fixture.run(SETTINGS);
  return fixture.ranges;
}

const isNotOf =
  (...days: readonly Day[]) =>
  ({ id }: Row) =>
    !days.some((day) => id.includes(day));
/** All rows, but of one day only that whose id ends so. */
const onlyOf = (day: Day, end: string) => rows.filter((row) => isNotOf(day)(row) || row.id.endsWith(end));
const withinAnHour = (row: Row): Row => {
  const time = at(`${dayOf(row.id)}T12:00:00Z`) + Number(row.id.slice(-1)) * 60_000;
  return { ...row, at: time };
};

const EXCLUDES = { days: { to_date_inclusive: false } };

const PROBES = {
  alone: '2026-01-19..2026-01-19',
  withNext: '2026-01-19..2026-01-20',
  nextAlone: '2026-01-20..2026-01-20',
  aloneAgain: '2026-01-19..2026-01-19',
};

describe('whether an export includes its to_date', () => {
  it('is proved by the rows of one day: one export a day, of that day', async () => {
    const ranges = await firstRun({});
    expect(fixture.target.state?.to_date_inclusive).toBe(true);
    expect([...ranges].sort()).toEqual(['16', '17', '18', '19', '20'].map((day) => `2026-01-${day}..2026-01-${day}`));
    expect(ranges[0]).toBe(PROBES.alone);
  });

  it('is disproved with four exports of one day: then every day asks for the next one', async () => {
    const ranges = await firstRun(EXCLUDES);
    expect(fixture.target.state?.to_date_inclusive).toBe(false);
    expect(ranges.slice(0, 4)).toEqual(Object.values(PROBES));
    expect(ranges).toHaveLength(4 + 4);
    expect(fixture.target.receipts.get('2026-01-17')).toMatchObject({ to_date: '2026-01-18' });
  });

  it.each<[string, ServiceSettings]>([
    ['the service compares with midnight', { days: { compares: 'instants' }, rows: withMidnights(rows) }],
    ['single days are refused', { days: { single_days: 'error' } }],
    ['the day has a single row', { rows: onlyOf('2026-01-19', '-2') }],
    ['the day has a single row and the next none', { rows: onlyOf('2026-01-19', '-2').filter(isNotOf('2026-01-20')) }],
    ['the day has no rows', { rows: rows.filter(isNotOf('2026-01-19')) }],
    ['neither the day nor the next has rows', { rows: rows.filter(isNotOf('2026-01-19', '2026-01-20')) }],
    ['all rows of the day lie within an hour', { rows: rows.map(withinAnHour) }],
  ])('stays open where %s, and no row is missing or there twice', async (_, settings) => {
    await firstRun(settings);
    expect(fixture.target.state).not.toHaveProperty('to_date_inclusive');
    const ids = fixture.target.ids();
    expect(new Set(ids).size).toBe(ids.length);
    expect(fixture.ids('2026-01-16', '2026-01-20').filter((id) => !ids.includes(id))).toEqual([]);
  });

  it('stays open where the rows of the day come only after its first export', async () => {
    let exportsOfDay = 0;
    const header: Fault = { kind: 'body', change: (csv) => csv.slice(0, csv.indexOf('\n') + 1) };
    const fault: FaultRule = ({ from, to }) => {
      return from === '2026-01-19' && to === from && ++exportsOfDay === 1 ? header : undefined;
    };
    await firstRun({ rows: rows.filter(isNotOf('2026-01-20')), fault });
    expect(fixture.target.state).not.toHaveProperty('to_date_inclusive');
    expect(fixture.target.days.get('2026-01-19')).toHaveLength(5);
  });

  it.each([
    { columnsDrop: ['df_event_datetime'] },
    { properties: ['df_event_datetime'], propertiesCondition: 'exclude' } as const,
    { properties: ['df_order_id'], propertiesCondition: 'include' } as const,
  ])('stays open where the column by which the service may select is left out by %j', async (settings) => {
    fixture = await Fixture.start(NOW, { rows });
    await fixture.run({ ...SETTINGS, ...settings });
    expect(fixture.target.state).not.toHaveProperty('to_date_inclusive');
  });

  it('is found out by a later run if the first could not', async () => {
    await firstRun({ rows: onlyOf('2026-01-19', '-2') });
    fixture.clock.time += 24 * HOUR;
    await fixture.run(SETTINGS);
    expect(fixture.target.state?.to_date_inclusive).toBe(true);
  });

  it('is not asked again once it is known', async () => {
    await firstRun(EXCLUDES);
    fixture.forgetRequests();
    await fixture.run(SETTINGS);
    expect(fixture.ranges).toEqual(['2026-01-19..2026-01-20', '2026-01-20..2026-01-21']);
  });

  it('is not asked where the configuration says it, and not stored', async () => {
    fixture = await Fixture.start(NOW, { rows, ...EXCLUDES });
    await fixture.run({ ...SETTINGS, toDateInclusive: 'false' });
    expect(fixture.requests).toHaveLength(5);
    expect(fixture.target.state).not.toHaveProperty('to_date_inclusive');
  });
});

const dayOf = (id: string): Day => /\d{4}-\d{2}-\d{2}/.exec(id)?.[0] ?? '';

/** Adds rows that arrive at midnight of each day, and that happened hours apart. */
function withMidnights(some: readonly Row[]): Row[] {
  const midnights = [...new Set(some.map(({ id }) => dayOf(id)))].flatMap((day) => {
    const arrived = at(`${day}T00:00:00Z`);
    return [2, 5].map((hours) => {
      return { id: `midnight-${hours}-${day}`, event: 'df_login', at: arrived, happened: arrived - hours * HOUR };
    });
  });
  return [...some, ...midnights];
}
