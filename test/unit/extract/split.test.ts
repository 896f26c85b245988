import { afterEach, describe, expect, it } from 'vitest';
import { daysOf } from '../../../src/base/days.ts';
import { UserError } from '../../../src/base/errors.ts';
import { Secret } from '../../../src/base/secrets.ts';
import { columnEdits } from '../../../src/schema/column-edits.ts';
import { HashKey } from '../../../src/schema/hash-key.ts';
import { type FakeRow, type FakeServiceSettings, Fixture, steadyRows } from '../../support/extract/extraction.ts';

const NAMES = ['df_login', 'df_logout', 'df_purchase', 'own_a', 'own_b'];
const ROWS: FakeRow[] = NAMES.flatMap((name) => steadyRows('2026-03-01', '2026-03-11', 4, name));
const BIG = '2026-03-06';
const DAYS = { startDate: '2026-03-05', endDate: '2026-03-07', toDateInclusive: 'true' } as const;
let fixture: Fixture;
const open = (settings: Partial<FakeServiceSettings> = {}) => {
  fixture = new Fixture('2026-03-10T16:00:00Z', { rows: ROWS, ...settings });
  fixture.options = { maxConcurrentExports: 1 };
  return fixture;
};
afterEach(() => fixture.close());
const idsOf = (first: string, last: string, names = NAMES) =>
  ROWS.filter((r) => names.includes(r.event) && daysOf(first, last).some((d) => r.id.includes(d)))
    .map((r) => r.id)
    .sort();

describe('days too many for one export', () => {
  it('are asked for in fewer days, and that is remembered [R482]', async () => {
    await open({ most: 45 }).run({ ...DAYS, endDate: '2026-03-08', windowDays: 4 });
    const spans = fixture.service.ranges.map((r) => r.replaceAll('2026-03-', ''));
    expect(spans).toEqual(['05..08', '05..08', '05..08', '05..06', '07..08']);
    expect(fixture.target.ids()).toEqual(idsOf('2026-03-05', '2026-03-08'));
    expect(fixture.target.state).toMatchObject({ max_window_days: 2, from_date: '2026-03-09' });
    fixture.service.asked.length = 0;
    await fixture.run({ ...DAYS, endDate: '2026-03-10', windowDays: 1 });
    expect(fixture.service.ranges.map((r) => r.replaceAll('2026-03-', ''))).toEqual(['08..08', '09..09', '10..10']);
  });
});

describe('one day too big for one export', () => {
  const big = { fault: (q: { from: string; eventsCondition: string; events: readonly string[] }) => tooBig(q) };
  const tooBig = ({
    from,
    eventsCondition,
    events,
  }: {
    from: string;
    eventsCondition: string;
    events: readonly string[];
  }) =>
    from === BIG &&
    (eventsCondition === 'all' || (eventsCondition === 'include' ? events.length > 5 : events.length === 1))
      ? ({ refuse: 'retry_or_split' } as const)
      : undefined;

  it('comes in parts by event name, as one window [R13]', async () => {
    await open(big).run(DAYS);
    expect(fixture.target.ids()).toEqual(idsOf('2026-03-05', '2026-03-07'));
    const receipt = fixture.target.receipts.find((r) => r.from === BIG);
    expect(receipt).toMatchObject({ split: 'names', rows: 20, covers_to: BIG });
    expect(receipt?.header).toContain('event_name');
    const rest = fixture.service.asked.filter((q) => q.eventsCondition === 'exclude');
    expect(rest.map((q) => q.from)).toEqual([BIG]);
    expect(fixture.target.state?.name_groups).toBeGreaterThan(1);
  });

  it('says of its columns which hold hashes, as a whole day does [R481]', async () => {
    open(big);
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

  it('has the types of a whole day, also of datetimes that name their zone [R481]', async () => {
    const column = (csv: string) =>
      csv.replace(/^.+$/gm, (line, at: number) => `${line},${at === 0 ? 'own_time' : '2026-03-06T01:00:00Z'}`);
    open({ fault: (q) => big.fault(q) ?? { body: column } });
    fixture.options = { timezone: 'Asia/Seoul' };
    await fixture.run(DAYS);
    const types = fixture.target.receipts.map(({ columns }) => columns.find((c) => c.source === 'own_time')?.type);
    expect(types).toEqual(['datetime', 'datetime', 'datetime']);
  });

  it('stays within the user’s own filter [R13]', async () => {
    await open(big).run({ ...DAYS, events: ['df_login', 'own_a', 'a', 'b', 'c', 'd'], eventsCondition: 'include' });
    expect(fixture.target.receipts.map((receipt) => receipt.split)).toEqual(['none', 'names', 'none']);
    expect(fixture.target.ids()).toEqual(idsOf('2026-03-05', '2026-03-07', ['df_login', 'own_a']));
    fixture.close();
    await open(big).run({ ...DAYS, events: ['df_login'], eventsCondition: 'exclude' });
    expect(fixture.target.receipts.map((receipt) => receipt.split)).toEqual(['none', 'names', 'none']);
    expect(fixture.target.ids()).toEqual(idsOf('2026-03-05', '2026-03-07', NAMES.slice(1)));
  });

  it('goes around names that the service does not know', async () => {
    const known = new Set(NAMES);
    await open({
      fault: (q) => {
        if (q.events.some((name) => !known.has(name))) return { refuse: 'invalid' };
        return big.fault(q);
      },
    }).run(DAYS);
    expect(fixture.target.ids()).toEqual(idsOf('2026-03-05', '2026-03-07'));
  });

  it('is complete as of the first of its parts: a day that ended between two of them is read again [R202]', async () => {
    open();
    // Noon in UTC ends the day before in UTC-12.
    fixture.clock.time = Date.parse('2026-03-07T11:59:50Z');
    fixture.service.settings = {
      ...fixture.service.settings,
      fault: (q) => {
        const refused = big.fault(q);
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

  it('ends with exit 3 and the name if a single name is still too big [R13]', async () => {
    open({
      fault: (q) =>
        q.from === BIG && (q.eventsCondition === 'all' || q.events.includes('df_purchase'))
          ? { refuse: 'retry_or_split' }
          : undefined,
    });
    const error = await fixture.run(DAYS).then(
      () => undefined,
      (e: unknown) => e,
    );
    expect(error).toBeInstanceOf(UserError);
    expect(error).toMatchObject({ exitCode: 3 });
    expect(String(error)).toContain('df_purchase');
    expect(fixture.target.state?.from_date).toBe(BIG);
  });
});
