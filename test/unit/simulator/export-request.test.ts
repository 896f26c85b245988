import { afterEach, describe, expect, it } from 'vitest';
import { addDays, daysOf } from '../../../src/base/days.ts';
import type { Simulator } from '../../../src/simulator/index.ts';
import { type Cells, exported, headerOf, sorted } from '../../support/service/exported.ts';
import { dayBody, exportRequest, handClock, NOW, startTestSimulator } from '../../support/service/simulator.ts';

const DAY = '2026-01-10';
const HOUR = 3_600_000;
let sim: Simulator | undefined;
afterEach(async () => sim?.close());

describe('the columns of an export', () => {
  it('are those with a value and the system columns, in alphabetical order', async () => {
    sim = await startTestSimulator();
    const days = daysOf('2026-01-01', '2026-01-12');
    const headers = await Promise.all(days.slice(0, 5).map((day) => headerOf(sim as Simulator, dayBody(day))));
    for (const header of headers) expect(header).toEqual([...header].sort());
    expect(new Set(headers.map((header) => header.join())).size).toBeGreaterThan(1);
    const rows = await exported(sim);
    const header = await headerOf(sim, dayBody(DAY));
    const filled = new Set(rows.flatMap((row) => [...row.keys()]));
    expect(header).toEqual([...filled].sort());
    sim.setScenario({ rows: { by_day: { [DAY]: 0 } } });
    expect(await headerOf(sim, dayBody(DAY))).toEqual([
      'df_api_version',
      'df_correction_datetime',
      'df_event_detail_log_id',
      'df_event_log_id',
      'df_server_datetime',
      'df_unified_id',
      'event_name',
    ]);
  });

  it('are filtered by properties, except the system columns', async () => {
    sim = await startTestSimulator({}, { rowsPerDay: 300 });
    const properties = ['sum', 'df_items_df_price', 'no such'];
    const some = await headerOf(sim, { ...dayBody(DAY), properties, properties_condition_type: 'include' });
    expect(some).toHaveLength(9);
    const rest = await headerOf(sim, {
      ...dayBody(DAY),
      properties: ['sum', 'df_unified_id'],
      properties_condition_type: 'exclude',
    });
    expect(rest).toContain('df_unified_id');
    expect(rest).not.toContain('sum');
    const all = await headerOf(sim, { ...dayBody(DAY), properties, properties_condition_type: 'all' });
    expect(rest).toEqual(all.filter((name) => name !== 'sum'));
    expect(await headerOf(sim, { ...dayBody(DAY), properties: [], properties_condition_type: 'include' })).toEqual(all);
  });

  it('may be thousands, or custom ones of the scenario', async () => {
    const own = [
      { name: 'flip', values: ['TRUE', '1'] },
      { name: '__proto__', values: ['a', 'b'], per: 'day' },
    ];
    sim = await startTestSimulator({ columns: { extra: 2_000, own } });
    const header = await headerOf(sim, dayBody(DAY));
    expect(header.length).toBeGreaterThan(2_030);
    const rows = await exported(sim);
    expect(new Set(rows.map((row) => row.get('flip')))).toEqual(new Set(['TRUE', '1']));
    expect(new Set(rows.map((row) => row.get('__proto__'))).size).toBe(1);
  });
});

describe('the rows of an export', () => {
  const named = (rows: Iterable<ReadonlyMap<string, string>>, test: (name: string | undefined) => boolean) =>
    sorted([...rows].filter((row) => test(row.get('event_name'))));

  it('are divided by include and exclude without a remainder', async () => {
    sim = await startTestSimulator();
    const events = ['df_purchase', '설문 응답'];
    const some = await exported(sim, { ...dayBody(DAY), events, events_condition_type: 'include' });
    const rest = await exported(sim, { ...dayBody(DAY), events, events_condition_type: 'exclude' });
    expect(some.length).toBeGreaterThan(0);
    expect(sorted([...some, ...rest])).toEqual(sorted(sim.truth(DAY)));
    expect(sorted(some)).toEqual(named(sim.truth(DAY), (name) => events.includes(name ?? '')));
    expect(await exported(sim, { ...dayBody(DAY), events: ['no such'], events_condition_type: 'include' })).toEqual([]);
    expect(await exported(sim, { ...dayBody(DAY), events: [], events_condition_type: 'include' })).toHaveLength(
      some.length + rest.length,
    );
  });

  it('without a name are in no filtered export', async () => {
    sim = await startTestSimulator({ rows: { unnamed_share: 0.2 } });
    const events = ['df_purchase'];
    const some = await exported(sim, { ...dayBody(DAY), events, events_condition_type: 'include' });
    const rest = await exported(sim, { ...dayBody(DAY), events, events_condition_type: 'exclude' });
    expect(sorted([...some, ...rest])).toEqual(named(sim.truth(DAY), (name) => name !== undefined));
    expect((await exported(sim)).length).toBeGreaterThan(some.length + rest.length);
  });

  it('include the end day or not, by scenario', async () => {
    sim = await startTestSimulator({ days: { to_date_inclusive: false } });
    expect(await exported(sim)).toEqual([]);
    const rows = await exported(sim, dayBody(DAY, addDays(DAY, 2)));
    expect(sorted(rows)).toEqual(sorted(sim.truth({ from: DAY, to: addDays(DAY, 1) })));
  });

  it.each(['server', 'correction', 'event'])(
    'are selected by the %s datetime, none missing, none twice',
    async (selects_on) => {
      const days = { selects_on, zone_hours: -5, cell_zone_hours: -5 };
      sim = await startTestSimulator({ days, rows: { longest_delay_hours: 50 } }, { rowsPerDay: 300 });
      const column = selects_on === 'event' ? 'df_event_datetime' : `df_${selects_on}_datetime`;
      const whole = await exported(sim, dayBody('2026-01-05', '2026-01-08'));
      const parts: Cells[] = [];
      for (const day of daysOf('2026-01-05', '2026-01-08')) {
        const rows = await exported(sim, dayBody(day));
        const [year, month, date] = day.split('-').map(Number);
        const isOfDay = (cell = '') => cell.startsWith(day) || cell.startsWith(`${year}.${month}.${date} `);
        expect(rows.every((row) => isOfDay(row.get(column)))).toBe(true);
        parts.push(...rows);
      }
      expect(sorted(parts)).toEqual(sorted(whole));
      expect(sim.countRows({ from: '2026-01-05', to: '2026-01-08' })).toBe(parts.length);
    },
  );

  it('have a zone of cells and a zone of days', async () => {
    sim = await startTestSimulator({ days: { zone_hours: 9, cell_zone_hours: 0 } });
    const dates = new Set(
      (await exported(sim))
        .map((row) => row.get('df_server_datetime')?.slice(0, 10))
        .filter((text) => text?.includes('-')),
    );
    expect(dates).toEqual(new Set(['2026-01-09', DAY]));
  });

  it.each([
    ['no from_date', { events_condition_type: 'all' }],
    ['an impossible day', { ...dayBody('2026-02-30') }],
    ['an end before the start', dayBody(DAY, '2026-01-09')],
    ['an unknown condition', { ...dayBody(DAY), events_condition_type: 'some' }],
    ['events that are no list', { ...dayBody(DAY), events: 'df_purchase' }],
    ['properties that are no texts', { ...dayBody(DAY), properties: [1] }],
    ['a body that is no object', []],
    ['a body that is no JSON', '{'],
  ])('are refused for %s', async (_name, body) => {
    sim = await startTestSimulator();
    const answer = await exportRequest(sim, body);
    expect(answer.status).toBe(400);
    expect(await answer.json()).toEqual({ result: 'fail', message: 'invalid_parameter' });
  });

  it('reach back through the history, and into the future by scenario', async () => {
    sim = await startTestSimulator({ days: { history_days: 10, future: 'error', zone_hours: 0 } });
    const status = async (from: string, to = from) => (await exportRequest(sim as Simulator, dayBody(from, to))).status;
    expect(await status('2026-01-10')).toBe(200);
    expect(await status('2026-01-09')).toBe(400);
    expect(await status('2026-01-20')).toBe(200);
    expect(await status('2026-01-20', '2026-01-21')).toBe(400);
    sim.setScenario({ days: { future: 'empty' } });
    expect(await exported(sim, dayBody('2026-01-21'))).toEqual([]);
  });

  it('end today or at the start without to_date, by scenario', async () => {
    sim = await startTestSimulator();
    const body = { events_condition_type: 'all', from_date: DAY };
    expect(await exported(sim, body)).toHaveLength(sim.countRows({ from: DAY, to: '2026-01-20' }));
    sim.setScenario({ days: { to_date_omitted: 'from_date' } });
    expect(await exported(sim, body)).toHaveLength(sim.countRows(DAY));
  });
});

describe('the rows of an export over time', () => {
  it('appear when they happen', async () => {
    const clock = handClock();
    sim = await startTestSimulator({}, { clock });
    const noon = await exported(sim, dayBody('2026-01-20'));
    clock.advance(12 * HOUR);
    const night = await exported(sim, dayBody('2026-01-20'));
    expect(night.length).toBeGreaterThan(noon.length);
    expect(sorted(night)).toEqual(expect.arrayContaining(sorted(noon)));
    expect(night.every((row) => (row.get('df_server_datetime') ?? '').length > 0)).toBe(true);
  });

  it('appear late, are corrected or withdrawn after their hours', async () => {
    const clock = handClock(NOW);
    const later = { share: 0.3, hours: 24 * 12 };
    for (const what of ['late', 'corrected', 'withdrawn'] as const) {
      const simulator = await startTestSimulator({ rows: { [what]: later } }, { clock, rowsPerDay: 200 });
      const before = [...simulator.truth(DAY, { at: NOW })];
      const after = [...simulator.truth(DAY, { at: NOW + 5 * 24 * HOUR })];
      await simulator.close();
      const ids = (rows: readonly ReadonlyMap<string, string>[]) =>
        rows.map((row) => row.get('df_event_detail_log_id'));
      if (what === 'late') expect(after.length).toBeGreaterThan(before.length + 20);
      if (what === 'withdrawn') expect(after.length).toBeLessThan(before.length - 20);
      if (what !== 'corrected') continue;
      expect(ids(after)).toEqual(ids(before));
      const changed = sorted(after).filter((row) => !sorted(before).includes(row)).length;
      expect(changed).toBeGreaterThan(20);
      expect(changed).toBeLessThan(before.length / 2);
    }
  });
});
