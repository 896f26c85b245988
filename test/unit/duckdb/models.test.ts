import { beforeEach, describe, expect, it } from 'vitest';
import { MODELS } from '../../../src/targets/duckdb/models/models.ts';
import { writeModels } from '../../../src/targets/duckdb/models/write-models.ts';
import { csvOf } from '../../support/targets/csv.ts';
import { Place } from '../../support/targets/place.ts';

/** An event as a test of sessions tells it; `at`: `HH:mm` on one day. */
interface Told {
  readonly id: string;
  readonly person?: string;
  readonly name: string;
  readonly at?: string;
  readonly [column: string]: string | undefined;
}

const START = 'df_start_session';
const END = 'df_end_session';

/** Times never tie, so that the order is plain. */
function randomEvents(people: number, each: number): Told[] {
  let seed = 7;
  const next = (below: number) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((seed / 2_147_483_648) * below);
  };
  return Array.from({ length: people }, (_, p) => p).flatMap((p) => {
    const minutes = new Set(Array.from({ length: each }, () => next(1_440)));
    return [...minutes].map((minute) => ({
      id: `e${p}-${minute}`,
      person: `p${String(p).padStart(2, '0')}`,
      name: [START, END, 'x', 'y', 'z'][next(5)],
      at: `${String(Math.floor(minute / 60)).padStart(2, '0')}:${String(minute % 60).padStart(2, '0')}`,
    }));
  });
}

/** The rule, event by event: what the SQL has to give. */
function readSessions(events: readonly Told[]) {
  const sessions: { person: string; session_id: string; events: string; length: string }[] = [];
  const people = [...new Set(events.map(({ person }) => person ?? ''))].sort();
  for (const person of people) {
    const ofPerson = events
      .filter((event) => event.person === person)
      .sort((a, b) => ((a.at ?? '') < (b.at ?? '') ? -1 : 1));
    let open: Told[] = [];
    const close = () => {
      if (open.length === 0) return;
      const isExact = open[0].name === START && open.at(-1)?.name === END;
      const length = isExact ? 'exact' : open.length > 1 ? 'at_least' : 'unknown';
      sessions.push({ person, session_id: open[0].id, events: String(open.length), length });
      open = [];
    };
    ofPerson.forEach((event, i) => {
      const before = open.at(-1);
      const boundary = ofPerson.slice(i).find(({ name }) => name === START || name === END);
      const isEnclosed = open[0]?.name === START && boundary?.name === END;
      if (event.name === START || before?.name === END) close();
      else if (before !== undefined && !isEnclosed && minutesOf(event) - minutesOf(before) > 30) close();
      open.push(event);
    });
    close();
  }
  return sessions;
}

const minutesOf = ({ at = '' }: Told) => Number(at.slice(0, 2)) * 60 + Number(at.slice(3));

let place: Place;
beforeEach(() => {
  place = new Place('duckdb');
});

const models = () => writeModels(place.options());

/** An event as a row of an export; `at`: `HH:mm` on the day. */
const row = ({ id, person = '', name, at, ...more }: Told, day = '2026-01-05') => ({
  ...Object.fromEntries(Object.entries(more).map(([key, value]) => [key, value ?? ''])),
  id,
  df_unified_id: person,
  df_event_name: name,
  df_correction_datetime: at === undefined ? '' : `${day} ${at}:00.000`,
});

const of = (id: string, at: string, name = 'x', person = 'p'): Told => ({ id, at, name, person });

async function loadDay(events: readonly Told[], day = '2026-01-05') {
  await place.load([[place.ofCsv(day, [csvOf(events.map((event) => row(event, day)))])]]);
}

describe('sessions', () => {
  it('last from a start event to its end event; where one of them is missing a pause separates them', async () => {
    await loadDay([
      of('1', '09:00'),
      of('2', '09:10'),
      of('3', '09:41'),
      of('4', '10:00', START),
      of('5', '10:10'),
      of('6', '12:00', START),
      of('7', '13:10', END),
      of('8', '13:11'),
      of('9', '13:20', END),
    ]);
    await models();
    const sessions = await place.read(
      `SELECT strftime(started_at, '%H:%M') AS began, seconds, length, began_by, ended_by, events FROM analytics.sessions
      ORDER BY started_at`,
    );
    expect(
      sessions.map(({ began, length, began_by, ended_by, events }) => [began, length, began_by, ended_by, events]),
    ).toEqual([
      ['09:00', 'at_least', 'first_event', 'gap', '2'],
      ['09:41', 'unknown', 'gap', 'start_event', '1'],
      ['10:00', 'at_least', 'start_event', 'start_event', '2'],
      ['12:00', 'exact', 'start_event', 'end_event', '2'],
      ['13:11', 'at_least', 'end_event', 'end_event', '2'],
    ]);
    expect(sessions.map(({ seconds }) => seconds)).toEqual([600, null, 600, 4_200, 540]);
  });

  it('contain every event: one without a user or a time is its own session', async () => {
    await loadDay([
      of('1', '10:00'),
      { id: '2', name: 'x', at: '10:00' },
      { id: '3', name: 'x', at: '10:00' },
      { id: '4', name: 'x', person: 'p', df_server_datetime: '' },
      { id: '5', name: 'x', person: 'p', df_server_datetime: '' },
    ]);
    await models();
    const [{ n, events }] = await place.read('SELECT count(*) AS n, sum(events) AS events FROM analytics.sessions');
    expect([n, events]).toEqual(['5', '5']);
  });

  it('equal those of a reference implementation for 40 users with random events', async () => {
    const events = randomEvents(40, 60);
    await loadDay(events);
    await models();
    const sessions = await place.read(
      'SELECT df_unified_id AS person, session_id, events, length FROM analytics.sessions ORDER BY person, session_number',
    );
    expect(sessions).toEqual(readSessions(events));
  });
});

it('purchases are listed once each, with their items and prices', async () => {
  const item = (price: string, quantity: string) => ({ df_items_df_price: price, df_items_df_quantity: quantity });
  await loadDay([
    { ...of('a:0', '10:00', 'df_purchase'), df_total_purchase_amount: '30', ...item('10', '2') },
    { ...of('a:1', '10:00', 'df_purchase'), df_total_purchase_amount: '30', ...item('5', '2') },
    { ...of('b', '11:00', 'df_purchase'), df_total_purchase_amount: '7' },
    { ...of('c:0', '11:00', 'df_add_to_cart'), ...item('99', '1') },
  ]);
  await models();
  const purchases = await place.read('SELECT df_event_log_id AS id, amount FROM analytics.purchases ORDER BY id');
  expect(purchases).toEqual([
    { id: 'a', amount: 30 },
    { id: 'b', amount: 7 },
  ]);
  const items = await place.read('SELECT item_position AS n, amount FROM analytics.purchase_items ORDER BY n');
  expect(items).toEqual([
    { n: '0', amount: 20 },
    { n: '1', amount: 10 },
  ]);
  const [user] = await place.read('SELECT events, purchases, purchase_amount FROM analytics.users');
  expect(user).toEqual({ events: '3', purchases: '2', purchase_amount: 37 });
});

describe('users over time', () => {
  beforeEach(async () => {
    await loadDay(
      [of('1', '10:00', START, 'a'), of('2', '10:00', 'x', 'b'), { id: '3', name: 'x', at: '10:00' }],
      '2026-01-05',
    );
    await loadDay([of('4', '10:00', 'x', 'a'), of('5', '11:00', 'x', 'a')], '2026-01-06');
    await loadDay([of('6', '10:00', 'x', 'a'), of('7', '10:00', START, 'c')], '2026-02-02');
    await models();
  });

  it('are counted by day, week and month', async () => {
    const days = await place.read(
      'SELECT day, people, new_people, events, sessions FROM analytics.daily_active ORDER BY day',
    );
    expect(days.map(Object.values)).toEqual([
      ['2026-01-05', '2', '2', '3', '1'],
      ['2026-01-06', '1', '0', '2', '0'],
      ['2026-02-02', '2', '1', '2', '1'],
    ]);
    const weeks = await place.read('SELECT week, people FROM analytics.weekly_active ORDER BY week');
    expect(weeks).toEqual([
      { week: '2026-01-05', people: '2' },
      { week: '2026-02-02', people: '2' },
    ]);
    const months = await place.read('SELECT month, people, new_people FROM analytics.monthly_active ORDER BY month');
    expect(months.map(Object.values)).toEqual([
      ['2026-01-01', '2', '2'],
      ['2026-02-01', '2', '1'],
    ]);
  });

  it('are counted as retained by the week of their first event', async () => {
    const weeks = await place.read('SELECT * FROM analytics.retention ORDER BY cohort_week, weeks_later');
    expect(weeks).toEqual([
      { cohort_week: '2026-01-05', weeks_later: '0', people: '2', cohort_people: '2', share: 1 },
      { cohort_week: '2026-01-05', weeks_later: '4', people: '1', cohort_people: '2', share: 0.5 },
      { cohort_week: '2026-02-02', weeks_later: '0', people: '1', cohort_people: '1', share: 1 },
    ]);
  });

  it('pass a funnel in order and in time, from any first step', async () => {
    const steps = await place.read(
      `SELECT step, people, share_of_first FROM analytics.funnel(['x', 'x', '${START}'], 28)`,
    );
    expect(steps).toEqual([
      { step: '1', people: '2', share_of_first: 1 },
      { step: '2', people: '1', share_of_first: 0.5 },
      { step: '3', people: '0', share_of_first: 0 },
    ]);
    // From the second event of 6 January on, not from the first, 27 days pass.
    expect(await place.read(`SELECT people FROM analytics.funnel(['${START}', 'x', 'x', 'x'], 27)`)).toEqual(
      ['2', '1', '1', '0'].map((people) => ({ people })),
    );
    expect(await place.read(`SELECT people FROM analytics.funnel(['${START}', 'x', 'x', 'x'], 28)`)).toEqual(
      ['2', '1', '1', '1'].map((people) => ({ people })),
    );
  });

  it('are described by a dictionary of events with their properties', async () => {
    await loadDay([{ ...of('8', '10:00', 'y', 'a'), color: 'red', 'q1, "q2"': '1' }], '2026-02-03');
    const names = await place.read(
      'SELECT df_event_name AS name, events, people, properties FROM analytics.event_dictionary ORDER BY name',
    );
    expect(names).toEqual([
      { name: START, events: '2', people: '2', properties: [] },
      { name: 'x', events: '5', people: '2', properties: [] },
      { name: 'y', events: '1', people: '1', properties: ['color', 'q1, "q2"'] },
    ]);
  });
});

describe('the models of a file', () => {
  it('use the days of the configured zone', async () => {
    place.timezone = 'Asia/Seoul';
    await loadDay([of('1', '00:30'), of('2', '23:30')]);
    await models();
    expect(await place.read('SELECT DISTINCT day FROM analytics.sessions')).toEqual([{ day: '2026-01-05' }]);
    expect(await place.read('SELECT day FROM analytics.daily_active')).toEqual([{ day: '2026-01-05' }]);
  });

  it('use the first of two columns of one name, even without values', async () => {
    const names = 'df_event_detail_log_id,df_event_log_id,df_event_name,df_discount,df_discount';
    const csv = (id: string, ...cells: string[]) =>
      `${names},df_items_df_price,df_items_df_price\n${[`${id}:0`, id, 'df_purchase', ...cells].join(',')}\n`;
    await place.load([[place.ofCsv('2026-01-05', [csv('a', '', '7', '', '9')])]]);
    await models();
    expect(await place.read('SELECT discount FROM analytics.purchases')).toEqual([{ discount: null }]);
    expect(await place.read('SELECT price FROM analytics.purchase_items')).toEqual([{ price: null }]);
    await place.load([[place.ofCsv('2026-01-06', [csv('b', '3', '8', '', '9')])]]);
    expect(await place.read('SELECT discount FROM analytics.purchases ORDER BY 1 NULLS LAST')).toEqual([
      { discount: 3 },
      { discount: null },
    ]);
  });

  it('describe a row and each of its columns', async () => {
    await loadDay([of('1', '10:00')]);
    const names = (await models()).keys();
    expect([...names]).toEqual(MODELS.map(({ name }) => `analytics.${name}`));
    for (const { name, columns } of MODELS.filter((model) => model.parameters === undefined)) {
      const comments = await place.read(
        `SELECT column_name AS name, comment FROM duckdb_columns() WHERE schema_name = 'analytics' AND table_name = '${name}'
        ORDER BY column_index`,
      );
      expect(comments.map((column) => [column.name, column.comment])).toEqual(Object.entries(columns));
    }
  });

  it('work after new and widened columns, a rewrite and a purge', async () => {
    await loadDay([{ ...of('1', '10:00', 'x', 'a'), level: '1' }]);
    await models();
    await loadDay(
      [{ ...of('2', '10:00', 'df_purchase', 'b'), level: 'high', df_total_purchase_amount: '3' }],
      '2026-01-06',
    );
    const amounts = 'SELECT amount FROM analytics.purchases';
    expect(await place.read(amounts)).toEqual([{ amount: 3 }]);
    await place.compact();
    expect(await place.read(amounts)).toEqual([{ amount: 3 }]);
    await place.purge(['b'], 'df_unified_id');
    expect(await place.read(amounts)).toEqual([]);
    expect(await place.read('SELECT sum(events) AS n FROM analytics.sessions')).toEqual([{ n: '1' }]);
    await loadDay([of('3', '10:00', 'x', 'c')], '2026-01-07');
    expect(await place.read('SELECT sum(events) AS n FROM analytics.sessions')).toEqual([{ n: '2' }]);
  });

  it('leave a name to a view of somebody else that has taken it since, and days are still loaded', async () => {
    await loadDay([of('1', '10:00')]);
    await models();
    await place.read('DROP VIEW analytics.users');
    await place.read('CREATE VIEW analytics.users AS SELECT 1 AS mine');
    await loadDay([{ ...of('2', '10:00', 'df_purchase'), df_total_purchase_amount: '3' }], '2026-01-06');
    expect(await place.read('FROM analytics.users')).toEqual([{ mine: 1 }]);
    expect(await place.read('SELECT amount FROM analytics.purchases')).toEqual([{ amount: 3 }]);
  });

  it('replace no foreign view or table, and change nothing then', async () => {
    await loadDay([of('1', '10:00')]);
    await place.read('CREATE SCHEMA analytics');
    await place.read('CREATE VIEW analytics.users AS SELECT 1 AS mine');
    await place.read('CREATE MACRO analytics.funnel(steps, days) AS TABLE SELECT 2 AS mine');
    await expect(models()).rejects.toThrow(/analytics\.users, analytics\.funnel, made by somebody else/);
    expect(await place.read('FROM analytics.users')).toEqual([{ mine: 1 }]);
    expect(await place.read("FROM analytics.funnel(['x'], 1)")).toEqual([{ mine: 2 }]);
    expect(await place.read("SELECT count(*) AS n FROM duckdb_views() WHERE schema_name = 'analytics'")).toEqual([
      { n: '1' },
    ]);
  });
});
