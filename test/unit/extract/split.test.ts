import { readdirSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import { daysOf } from '../../../src/base/days.ts';
import { Secret } from '../../../src/base/secrets.ts';
import { columnEdits } from '../../../src/cells/columns/column-edits.ts';
import { HashKey } from '../../../src/cells/columns/hash-key.ts';
import type { ExportRequest } from '../../../src/service/export/protocol.ts';
import { type FakeServiceSettings, Fixture, steadyRows } from '../../support/extract/extraction.ts';
import { failureOf } from '../../support/failure.ts';

const NAMES = ['df_login', 'df_purchase', 'own_a', 'own_b'];
const ROWS = NAMES.flatMap((name) => steadyRows('2026-03-01', '2026-03-11', 2, name));
const BIG = '2026-03-06';
const DAYS = { startDate: '2026-03-05', endDate: '2026-03-07', toDateInclusive: 'true' } as const;
let fixture: Fixture;
const open = (settings: Partial<FakeServiceSettings> = {}) => {
  fixture = new Fixture('2026-03-10T16:00:00Z', { rows: ROWS, ...settings });
  fixture.options = { maxConcurrentExports: 1 };
  return fixture;
};
afterEach(() => fixture.close());

/** Everything of a day, or so many of its names, are too many for one export. */
const tooMany =
  (days: readonly string[], most = 5): FakeServiceSettings['fault'] =>
  ({ from, eventsCondition, events }) => {
    const isTooMany = eventsCondition === 'all' || (eventsCondition === 'include' && events.length > most);
    return days.includes(from) && isTooMany ? { refuse: 'retry_or_split' } : undefined;
  };
const requested = (condition: ExportRequest['eventsCondition'], day = BIG) =>
  fixture.service.requests.filter(({ from, eventsCondition }) => from === day && eventsCondition === condition);

const idsOf = (first: string, last: string, names = NAMES) =>
  ROWS.filter(({ id, event }) => names.includes(event) && daysOf(first, last).some((day) => id.includes(day)))
    .map(({ id }) => id)
    .sort();

describe('a range that is too long for one export', () => {
  it('is requested in fewer days, which is remembered', async () => {
    await open({ most: 19 }).run({ ...DAYS, endDate: '2026-03-08', windowDays: 4 });
    const spans = fixture.service.ranges.map((r) => r.replaceAll('2026-03-', ''));
    expect(spans).toEqual(['05..08', '05..08', '05..08', '05..06', '07..08']);
    expect(fixture.target.ids()).toEqual(idsOf('2026-03-05', '2026-03-08'));
    expect(fixture.target.state).toMatchObject({ max_window_days: 2, from_date: '2026-03-09' });
    fixture.service.requests.length = 0;
    await fixture.run({ ...DAYS, endDate: '2026-03-10', windowDays: 1 });
    expect(fixture.service.ranges.map((r) => r.replaceAll('2026-03-', ''))).toEqual(['08..08', '09..09', '10..10']);
  });
});

describe('a day that is split by event names', () => {
  it('begins with all names seen on earlier days and in earlier runs', async () => {
    open({ fault: tooMany([BIG]) });
    for await (const window of fixture.windows(DAYS, {}, { eventNames: ['seen_before'] }))
      await fixture.target.commit(window);
    const included = new Set(requested('include').flatMap(({ events }) => events));
    expect([...NAMES, 'seen_before'].filter((name) => !included.has(name))).toEqual([]);
    expect(requested('exclude')).toHaveLength(1);
    expect([...requested('exclude')[0].events].sort()).toEqual([...included].sort());
    expect(fixture.target.ids()).toEqual(idsOf('2026-03-05', '2026-03-07'));
    expect(readdirSync(fixture.spoolDir)).toEqual([]);
  });

  it('is never requested by a hash of a name', async () => {
    open({ fault: tooMany([BIG]) });
    const eventNames = ['a'.repeat(64), 'a'.repeat(63), `${'a'.repeat(64)}0`];
    for await (const window of fixture.windows(DAYS, {}, { eventNames })) await fixture.target.commit(window);
    const included = requested('include').flatMap(({ events }) => events);
    expect(eventNames.map((name) => included.includes(name))).toEqual([false, true, true]);
  });

  it.each(['true', 'auto'] as const)('is split with and without a known end-day rule: %s', async (toDateInclusive) => {
    await open({ fault: tooMany(['2026-03-05']) }).run({ ...DAYS, toDateInclusive });
    expect(fixture.target.receipts.map(({ split, to }) => [split, to])).toEqual([
      ['names', '2026-03-05'],
      ['none', '2026-03-06'],
      ['none', '2026-03-07'],
    ]);
    expect(fixture.target.ids()).toHaveLength(24);
  });

  it('is requested whole three times, the next such day once, in as few parts as needed', async () => {
    const days = ['2026-03-05', BIG];
    await open({ fault: tooMany(days, 4) }).run(DAYS);
    expect(days.map((day) => requested('all', day).length)).toEqual([3, 1]);
    const tooLarge = (day: string) => requested('include', day).filter(({ events }) => events.length > 4).length;
    const parts = (day: string) => requested('include', day).filter(({ events }) => events.length <= 4).length;
    expect([tooLarge('2026-03-05') > 0, tooLarge(BIG)]).toEqual([true, 0]);
    expect(fixture.target.state?.name_groups).toBe(parts(BIG));
    // Two attempts at a group of names before it is halved.
    const first = requested('include', '2026-03-05')[0].events;
    expect(requested('include', '2026-03-05').filter(({ events }) => events.join() === first.join())).toHaveLength(2);
    expect(fixture.target.ids()).toHaveLength(24);
    expect(readdirSync(fixture.spoolDir)).toEqual([]);
  });

  it('requests only the names of a configured include, and no remainder', async () => {
    const filter = { events: ['own_a', 'df_login', 'own_a'], eventsCondition: 'include' } as const;
    const fault: FakeServiceSettings['fault'] = ({ from, events }) =>
      from === BIG && events.length > 1 ? { refuse: 'retry_or_split' } : undefined;
    await open({ fault }).run({ ...DAYS, ...filter });
    expect(requested('exclude')).toEqual([]);
    expect(fixture.target.ids()).toEqual(idsOf('2026-03-05', '2026-03-07', ['df_login', 'own_a']));
  });

  it('never requests configured excludes', async () => {
    const filter = { events: ['df_login'], eventsCondition: 'exclude' } as const;
    const fault: FakeServiceSettings['fault'] = ({ from, eventsCondition, events }) =>
      from === BIG && ((eventsCondition === 'exclude' && events.length === 1) || events.length === 0)
        ? { refuse: 'retry_or_split' }
        : undefined;
    await open({ fault }).run({ ...DAYS, ...filter });
    expect(requested('include').flatMap(({ events }) => events)).not.toContain('df_login');
    const rest = requested('exclude').at(-1)?.events ?? [];
    expect(rest.length).toBeGreaterThan(10);
    expect(rest.filter((name) => name === 'df_login')).toHaveLength(1);
    expect(fixture.target.ids()).toEqual(idsOf('2026-03-05', '2026-03-07', NAMES.slice(1)));
  });

  it('ignores names without effect', async () => {
    const filter = { events: ['df_login'], eventsCondition: 'all' } as const;
    await open({ fault: tooMany([BIG]) }).run({ ...DAYS, ...filter });
    expect(fixture.target.receipts.map(({ split }) => split)).toEqual(['none', 'names', 'none']);
    expect(requested('exclude')).toHaveLength(1);
    expect(fixture.target.ids()).toHaveLength(24);
  });

  it('requests everything when the service knows none of the names', async () => {
    let whole = 0;
    const fault: FakeServiceSettings['fault'] = ({ from, eventsCondition }) => {
      if (from !== BIG) return undefined;
      if (eventsCondition === 'include') return { refuse: 'invalid' };
      return eventsCondition === 'all' && ++whole <= 3 ? { refuse: 'retry_or_split' } : undefined;
    };
    await open({ fault }).run(DAYS);
    expect(requested('exclude')).toEqual([]);
    expect(requested('all')).toHaveLength(4);
    expect(requested('all').at(-1)?.events).toEqual([]);
    expect(fixture.target.state?.name_groups).toBe(1);
    expect(fixture.target.ids()).toHaveLength(24);
  });

  it.each([
    ['a single name', ({ events }: ExportRequest) => events.includes('df_purchase') && events.length === 1, 3],
    ['the rest', ({ eventsCondition }: ExportRequest) => eventsCondition === 'exclude', 3],
  ])('that has %s still too large ends the run with the day and advice', async (what, isIt, attempts) => {
    const split = tooMany([BIG], 1);
    const fault: FakeServiceSettings['fault'] = (request, count) =>
      request.from === BIG && isIt(request) ? { refuse: 'retry_or_split' } : split(request, count);
    const failure = await failureOf(open({ fault }).run(DAYS));
    expect(failure).toMatchObject({ exitCode: 3, where: { window: BIG } });
    const sentence =
      what === 'the rest'
        ? /other than the \d+ names known.*[;] run again later,/
        : /named df_purchase of.*[.] Run again later;/;
    expect(failure.message).toMatch(sentence);
    expect(fixture.service.requests.filter((request) => request.from === BIG && isIt(request))).toHaveLength(attempts);
    expect(fixture.target.state?.from_date).toBe(BIG);
  });

  it('has one receipt for all its parts', async () => {
    await open({ fault: tooMany([BIG]) }).run(DAYS);
    const [whole, split] = fixture.target.receipts;
    expect(split).toMatchObject({ split: 'names', rows: 8, from: BIG, to: BIG, covers_from: BIG, covers_to: BIG });
    expect(split.header).toEqual(whole.header);
    const parts = requested('include').filter(({ events }) => events.length <= 5).length + 1;
    expect([parts, split.exports]).toEqual([5, 5]);
    expect(split.bytes).toBeGreaterThan(whole.bytes);
    expect(split.sha256).toMatch(/^[0-9a-f]{64}$/);
    expect(new Set(fixture.target.receipts.map(({ sha256 }) => sha256)).size).toBe(3);
    expect(fixture.counts.exports).toBe(fixture.service.sent);
  });

  it('may follow from halving a range', async () => {
    await open({ fault: tooMany(daysOf('2026-03-05', '2026-03-08')) }).run({ ...DAYS, windowDays: 3 });
    expect(fixture.target.receipts.map(({ split }) => split)).toEqual(['names', 'names', 'names']);
    expect(fixture.target.state).toMatchObject({ max_window_days: 1 });
    expect(fixture.target.ids()).toHaveLength(24);
  });

  const big = tooMany([BIG]);
  it('marks its hashed columns, as a whole day does', async () => {
    open({ fault: big });
    const key = new HashKey(new Secret('a hash key of at least 32 characters'));
    fixture.options = { edits: columnEdits([], ['df_unified_id'], key) };
    await fixture.run(DAYS);
    const hashed = fixture.target.receipts.map(({ split, columns }) => [
      split,
      columns.filter((column) => column.hashed).map(({ source }) => source),
    ]);
    const whole = ['none', ['df_unified_id']];
    expect(hashed).toEqual([whole, ['names', ['df_unified_id']], whole]);
  });

  it('has the types of a whole day, also for datetimes with a zone', async () => {
    const column = (csv: string) =>
      csv.replace(/^.+$/gm, (line, at: number) => `${line},${at === 0 ? 'own_time' : '2026-03-06T01:00:00Z'}`);
    open({ fault: (q, count) => big(q, count) ?? { body: column } });
    fixture.options = { timezone: 'Asia/Seoul' };
    await fixture.run(DAYS);
    const types = fixture.target.receipts.map(({ columns }) => columns.find((c) => c.source === 'own_time')?.type);
    expect(types).toEqual(['datetime', 'datetime', 'datetime']);
  });

  it('skips names that the service does not know', async () => {
    const known = new Set(NAMES);
    await open({
      fault: (q, count) => {
        if (q.events.some((name) => !known.has(name))) return { refuse: 'invalid' };
        return big(q, count);
      },
    }).run(DAYS);
    expect(fixture.target.ids()).toEqual(idsOf('2026-03-05', '2026-03-07'));
  });

  it('is complete as of its first part: a day that ended between two parts is read again', async () => {
    open();
    // Noon in UTC ends the day before in UTC-12.
    fixture.clock.time = Date.parse('2026-03-07T11:59:50Z');
    fixture.service.settings = {
      ...fixture.service.settings,
      fault: (q, count) => {
        const refused = big(q, count);
        if (q.eventsCondition === 'include' && refused === undefined)
          fixture.clock.time = Date.parse('2026-03-07T12:00:10Z');
        return refused;
      },
    };
    await fixture.run({ ...DAYS, endDate: BIG });
    const receipt = fixture.target.receipts.find((r) => r.from === BIG);
    expect(receipt).toMatchObject({ split: 'names', covers_to: null });
    expect(fixture.target.state?.from_date).toBe(BIG);
  });
});
