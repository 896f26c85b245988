import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { begunRun } from '../../../src/table/runs.ts';
import { type Cells, csvOf } from '../../support/targets/csv.ts';
import { TARGETS, TargetFixture } from '../../support/targets/target-fixture.ts';

const OUTCOME = { exitCode: 3, cause: 'The service is down.', rows: 7, windows: 2, exports: 4, bytes: 99 };
const instant = (minute: number) => `2026-01-01T00:0${minute}:00.125Z`;
const [ONE, TWO, THREE] = ['2026-01-01', '2026-01-02', '2026-01-03'] as const;

describe.each(TARGETS)('the report of %s', (name) => {
  let fixture: TargetFixture;
  beforeEach(() => {
    fixture = TargetFixture.of(name);
  });
  afterEach(() => fixture.close());
  const windowOf = (day: typeof ONE | typeof TWO | typeof THREE, ...rows: Cells[]) =>
    fixture.fixture.windowOf(day, ...rows);

  it('counts rows, events by day and name, hours, bytes, and the values of each column', async () => {
    const event = (id: string, df_event_name: string, at: string, more: Cells = {}): Cells => {
      return { id, df_event_name, df_correction_datetime: at, df_server_datetime: at, ...more };
    };
    /** Eleven names on two days; one purchase of two items; a rescued cell; a column that is half full. */
    const first = Array.from({ length: 9 }, (_, i) =>
      Array.from({ length: 10 - i }, (_, n) => event(`name${i}-${n}`, `name${i}`, `2026-01-01 0${n}:30:00.000`)),
    ).flat();
    const items = ['1', 'free'].map((df_items_df_price, n) =>
      event(`p:${n}`, 'df_purchase', '2026-01-02 23:59:59.000', { df_items_df_price, level: '7' }),
    );
    await fixture.store([windowOf(ONE, ...first), windowOf(TWO, ...items)]);
    const report = await fixture.report();
    expect(report).toMatchObject({
      rows: 56,
      lastEventAt: '2026-01-02 23:59:59',
      state: { exportState: { from_date: THREE } },
    });
    expect(report.events.reduce((sum, { events }) => sum + events, 0)).toBe(55);
    expect(report.events.filter((one) => one.name === null)).toEqual([
      { day: ONE, name: null, events: 2 },
      { day: TWO, name: null, events: 1 },
    ]);
    expect(report.events.find((one) => one.name === 'name0')?.events).toBe(10);
    expect(report.hours.reduce((sum, events) => sum + events, 0)).toBe(55);
    expect([report.hours[0], report.hours[9], report.hours[23]]).toEqual([9, 1, 1]);
    expect(report.sizeBytes).toBeGreaterThan(1_000);
    const column = (source: string) => report.columns.find((one) => one.source === source);
    expect(column('level')).toMatchObject({ type: 'long', group: 'custom', filled: 2, rescued: 0 });
    expect(column('df_items_df_price')).toMatchObject({ group: 'standard_item', filled: 1, rescued: 1 });
  });

  it('has the runs, including unfinished ones', async () => {
    const begin = async (minute: number, isEnding = false) => {
      const sink = await fixture.open();
      const run = begunRun(instant(minute), `1.${minute}`);
      const found = await sink.runs?.begin(run);
      if (isEnding) await sink.runs?.end({ ...run, ...OUTCOME, ended: instant(minute + 1) });
      await sink.close();
      return found;
    };
    await fixture.store([windowOf(ONE, { id: 'a' })]);
    expect((await fixture.report()).runs).toEqual([]);
    expect(await begin(0)).toEqual([]);
    expect(await begin(2)).toEqual([instant(0)]);
    expect(await begin(4, true)).toEqual([instant(0), instant(2)]);
    expect(await begin(6)).toEqual([]);
    const never = { ended: null, exitCode: null, cause: null, rows: 0, windows: 0, exports: 0, bytes: 0 };
    expect((await fixture.report()).runs).toEqual([
      { ...never, began: instant(0), version: '1.0' },
      { ...never, began: instant(2), version: '1.2' },
      { ...OUTCOME, began: instant(4), ended: instant(5), version: '1.4' },
      { ...never, began: instant(6), version: '1.6' },
    ]);
  });

  it('has every window, also one whose last day is not over by any clock', async () => {
    const open = windowOf(TWO, { id: 'b' });
    await fixture.store([
      windowOf(ONE, { id: 'a' }),
      { ...open, receipt: { ...open.receipt, covers_to: null, exports: 3 } },
    ]);
    const found = await fixture.report();
    const common = { rows: 1, bytes: open.receipt.bytes, verified_at: '2026-02-01T00:00:00.000Z' };
    expect(found.state.receipts).toMatchObject([
      { ...common, from: ONE, to: ONE, covers_from: ONE, covers_to: ONE, exports: 1 },
      { ...common, from: TWO, to: TWO, covers_from: TWO, covers_to: null, exports: 3 },
    ]);
    expect(found).toMatchObject({ state: { timezone: null }, rows: 2, lastEventAt: '2026-01-02 10:00:00' });
    expect([...(await fixture.priorLoads()).covered]).toEqual([ONE]);
  });

  it('has each column that was added, widened or first missing, with the window that caused it', async () => {
    const windows = [
      windowOf(ONE, { id: 'a', level: '1', color: 'red' }),
      windowOf(TWO, { id: 'b', level: 'x-7', size: '7' }),
      windowOf(THREE, { id: 'c', level: 'low' }),
    ];
    await fixture.store(windows);
    // A later run does not tell again that a column is missing.
    await fixture.store([windowOf(THREE, { id: 'd', level: 'low' })]);
    const { changes } = (await fixture.report()).state;
    const own = changes.filter(({ sourceName }) => ['level', 'color', 'size'].includes(sourceName));
    const ids = windows.map(({ receipt }) => receipt.id);
    const found = own.map(({ sourceName, change, fromType, toType, shape, window }) =>
      [sourceName, change, fromType, toType, shape, ids.indexOf(window)].join(' '),
    );
    expect(found.sort()).toEqual([
      'color added  string aaa 0',
      'color missing string   1',
      'level added  long 9 0',
      'level widened long string a-9 1',
      'size added  long 9 1',
      'size missing long   2',
    ]);
    for (const { changedAt } of own) expect(changedAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  });

  it('counts hours and days in its zone, an event by its correction time, and rows without a time in neither', async () => {
    const timezone = 'Asia/Seoul';
    const rows = [
      { id: 'a', df_server_datetime: '2026-01-01 23:30:00.000', df_correction_datetime: '2026-01-01 22:30:00.000' },
      { id: 'b', df_server_datetime: '2026-01-02 00:10:00.000', df_correction_datetime: '' },
      { id: 'c', df_server_datetime: '', df_correction_datetime: '' },
    ];
    await fixture.store([fixture.fixture.window(ONE, csvOf(rows), timezone)], { timezone });
    const report = await fixture.report();
    expect(report).toMatchObject({ state: { timezone }, lastEventAt: '2026-01-02 00:10:00', rows: 3 });
    expect(report.hours.flatMap((n, hour) => (n === 0 ? [] : [[hour, n]]))).toEqual([
      [0, 1],
      [22, 1],
    ]);
    expect(report.hours).toHaveLength(24);
    expect(report.events).toEqual([
      { day: ONE, name: 'df_login', events: 1 },
      { day: TWO, name: 'df_login', events: 1 },
    ]);
  });

  it('counts the values of very many columns, and of files that lack some', async () => {
    const many = Array.from({ length: 450 }, (_, i) => [`c${i}`, 'x'] as const);
    await fixture.store([
      windowOf(
        ONE,
        { id: 'a', ...Object.fromEntries(many) },
        { id: 'b', df_discount: 'free', c449: 'y', none: '' },
        { id: 'c' },
      ),
      windowOf(TWO, { id: 'd', c449: 'z' }),
    ]);
    const columns = new Map((await fixture.report()).columns.map((column) => [column.source, column]));
    const counts = ['c0', 'c199', 'c200', 'c201', 'c448', 'c449', 'none'].map((column) => columns.get(column)?.filled);
    expect(counts).toEqual([1, 1, 1, 1, 1, 3, 0]);
    expect(columns.get('none')).toMatchObject({ type: null, rescued: 0 });
    expect(columns.get('df_discount')).toMatchObject({ type: 'double', filled: 0, rescued: 1 });
  });

  it('has only columns for a location without rows', async () => {
    await fixture.store([windowOf(ONE)]);
    const report = await fixture.report();
    expect(report).toMatchObject({ rows: 0, lastEventAt: null, events: [], state: { receipts: [{ rows: 0 }] } });
    expect(report.hours).toEqual(Array(24).fill(0));
    expect(report.columns.find(({ source }) => source === 'df_event_name')).toMatchObject({ filled: 0, rescued: 0 });
    expect(report.columns.every(({ filled, rescued }) => filled === 0 && rescued === 0)).toBe(true);
  });
});

describe.each(TARGETS)('a location of %s', (name) => {
  let fixture: TargetFixture;
  beforeEach(() => {
    fixture = TargetFixture.of(name);
  });
  afterEach(() => fixture.close());

  it('without a load has no prior loads, is refused by all other readers, and gets no file', async () => {
    const prior = await fixture.priorLoads();
    expect([prior.state, [...prior.covered], prior.eventNames]).toEqual([undefined, [], []]);
    const people = { column: 'df_unified_id', ids: ['u'] };
    for (const read of [() => fixture.report(), () => fixture.verify(), () => fixture.people(people)]) {
      await expect(read()).rejects.toMatchObject({ kind: 'config', exitCode: 2 });
    }
    expect(fixture.files()).toEqual([]);
  });

  it('stops its readers at a stop', async () => {
    await fixture.store([fixture.fixture.windowOf(ONE, { id: 'a' })]);
    const options = { ...fixture.options, signal: AbortSignal.abort(new Error('stopped')) };
    const { target, place } = fixture;
    const [maintenance, people] = [await target.maintenance(), await target.people()];
    for (const read of [
      () => maintenance.report(place, options),
      () => maintenance.verify(place, options),
      () => people.find(place, { column: 'df_unified_id', ids: ['u'] }, options),
    ]) {
      await expect(read()).rejects.toThrow('stopped');
    }
    expect(await fixture.keys()).toEqual(['a']);
  });

  it('gives the cursor, the event names, the complete days, and the row count of the last window of exactly these days', async () => {
    const named = (day: typeof ONE | typeof TWO, ...names: string[]) =>
      fixture.fixture.windowOf(day, ...names.map((df_event_name, i) => ({ id: `${day}-${i}`, df_event_name })));
    const both = fixture.fixture.window(ONE, csvOf([{ id: 'x' }, { id: 'y' }, { id: 'z' }]), undefined, 2);
    await fixture.store([named(ONE, 'b', 'a'), named(TWO, 'a'), both, named(ONE, 'c', 'b', '구매')]);
    await fixture.store([named(TWO)]);
    const { state, covered, eventNames, rowsOf } = await fixture.priorLoads();
    expect(state).toEqual({ version: 1, from_date: THREE });
    expect([...covered].sort()).toEqual([ONE, TWO]);
    // The log of Delta tables holds no text of a cell.
    expect(eventNames).toEqual(name === 'delta' ? [] : ['a', 'b', 'c', 'df_login', '구매']);
    expect([rowsOf?.(ONE, ONE), rowsOf?.(ONE, TWO), rowsOf?.(TWO, TWO)]).toEqual([3, 3, 0]);
    expect([rowsOf?.(TWO, THREE), rowsOf?.('2025-12-31', ONE)]).toEqual([undefined, undefined]);
  });
});
