import { parse } from 'csv-parse/sync';
import { afterEach, describe, expect, it } from 'vitest';
import { UserError } from '../../../src/base/errors.ts';
import { type Simulator, startSimulator } from '../../../src/simulator/simulator.ts';
import { LeapingClock } from '../../support/clock.ts';
import { dayBody, deleteRequest, exportRequest, SERVICE_ID, TOKENS } from '../../support/service/start-service.ts';

const DAY = '2026-01-10';
const NAMES = { service_id: SERVICE_ID, export_token: TOKENS.export, import_token: TOKENS.import };

let sim: Simulator;
afterEach(() => sim.close());

async function start(scenario: object = {}, clock: LeapingClock = new LeapingClock()): Promise<void> {
  sim = await startSimulator({ clock, scenario: { ...NAMES, ...scenario } });
}

type Row = Record<string, string>;

async function exported(body: object = dayBody(DAY)): Promise<Row[]> {
  const answer = await exportRequest(sim, body);
  expect(answer.status).toBe(200);
  return parse(await answer.text(), { columns: true });
}

const statusOf = async (body: object = dayBody(DAY)) => (await exportRequest(sim, body)).status;

describe('data', () => {
  it('is realistic: all event names, items, Korean, booleans, lists, both forms of datetimes', async () => {
    await start({ events_per_day: 3_000 });
    const rows = await exported();
    const values = (name: string) => new Set(rows.map((row) => row[name]));
    expect(values('event_name').size).toBe(19);
    expect([...values('event_name')]).toContain('설문 응답');
    expect(values('is_member')).toEqual(new Set(['TRUE', 'FALSE', '']));
    expect([...values('tags')]).toEqual(expect.arrayContaining(['null', '["a","b"]', '[]']));
    expect([...values('df_server_datetime')].some((text) => /^2026-01-10 \d\d:\d\d:\d\d\.\d{3}$/.test(text))).toBe(
      true,
    );
    expect([...values('df_server_datetime')].some((text) => /^2026\.1\.10 \d{1,2}:\d\d$/.test(text))).toBe(true);
    const items = rows.filter((row) => row.event_name === 'df_purchase' && row.df_event_detail_log_id.endsWith(':1'));
    expect(items.length).toBeGreaterThan(50);
    expect(items.every((row) => row.df_event_detail_log_id === `${row.df_event_log_id}:1`)).toBe(true);
    expect(items.every((row) => row.df_items_df_item_name !== '')).toBe(true);
    expect(values('df_event_detail_log_id').size).toBe(rows.length);
  });

  it('is the same in each export; its columns are sorted and change from day to day', async () => {
    await start();
    const [first, again, next] = await Promise.all(
      [DAY, DAY, '2026-01-11'].map(async (day) => (await exportRequest(sim, dayBody(day))).text()),
    );
    expect(again).toBe(first);
    const header = (text: string) => Object.keys((parse(text, { columns: true }) as Row[])[0]);
    expect(header(first)).toEqual(header(first).toSorted());
    expect(header(first)).not.toEqual(header(next));
    const levels = (text: string) =>
      (parse(text, { columns: true }) as Row[]).map(({ level }) => level).filter(Boolean);
    expect(levels(first).every((level) => /^\d$/.test(level))).not.toBe(
      levels(next).every((level) => /^\d$/.test(level)),
    );
  });

  it('holds what has arrived by now, in the days and names that are asked for', async () => {
    const clock = new LeapingClock();
    await start({}, clock);
    const today = (await exported(dayBody('2026-01-20'))).length;
    clock.pass(3_600_000);
    const later = await exported(dayBody('2026-01-20'));
    expect(later.length).toBeGreaterThan(today);
    expect(await exported(dayBody('2026-01-20', '9999-12-31'))).toEqual(later);
    const few = await exported({ ...dayBody(DAY), events: ['df_purchase'], events_condition_type: 'include' });
    expect(new Set(few.map((row) => row.event_name))).toEqual(new Set(['df_purchase']));
    const columns = { properties: ['sum'], properties_condition_type: 'include' };
    expect(Object.keys((await exported({ ...dayBody(DAY), ...columns }))[0])).toHaveLength(8);
    const both = await exported(dayBody('2026-01-09', DAY));
    expect(both.slice(-3)).toMatchObject((await exported()).slice(-3));
  });

  it('no longer holds the events of a deleted person', async () => {
    await start();
    const member = (await exported()).find((row) => row.member_no !== '')?.member_no;
    expect((await deleteRequest(sim, member)).status).toBe(200);
    expect((await exported()).filter((row) => row.member_no === member)).toEqual([]);
  });
});

describe('answers', () => {
  it('without a limit there is no 429 and no limit header', async () => {
    await start({ events_per_day: 5 });
    for (let i = 0; i < 120; i++) expect(await statusOf(dayBody('2025-12-31'))).toBe(200);
    expect((await exportRequest(sim, dayBody(DAY))).headers.get('x-ratelimit-remaining')).toBeNull();
  });

  it('an hourly limit ends with 429 and is over after an hour', async () => {
    const clock = new LeapingClock();
    await start({ exports_per_hour: 2 }, clock);
    expect([await statusOf(), await statusOf(), await statusOf()]).toEqual([200, 200, 429]);
    clock.pass(3_600_000);
    expect(await statusOf()).toBe(200);
  });

  it('an answer of the scenario is given to the requests that it names', async () => {
    await start({
      answers: [
        { nth: [1], status: 429, retry_after_s: 5 },
        { nth: [2], status: 500 },
        { operation: 'delete', external_id: 'x', code: '40402' },
      ],
    });
    const limited = await exportRequest(sim, dayBody(DAY));
    expect([limited.status, limited.headers.get('retry-after')]).toEqual([429, '5']);
    expect([await statusOf(), await statusOf()]).toEqual([500, 200]);
    const codeOf = async (id: string) => JSON.parse(await (await deleteRequest(sim, id)).text()).code;
    expect([await codeOf('x'), await codeOf('y')]).toEqual(['40402', '20000']);
  });

  it('a scenario with unknown keys or unfit values is refused, each named', async () => {
    await start();
    const refused = startSimulator({ scenario: { rows: 5, exports_per_hour: -1 } });
    await expect(refused).rejects.toThrow(UserError);
    await expect(refused).rejects.toThrow(/it has the unknown key rows; exports_per_hour must be >= 0/);
  });
});
