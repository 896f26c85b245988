import { readFileSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Window } from '../../../src/extract/window.ts';
import { duckdb } from '../../../src/sinks/duckdb/target.ts';
import { parquet } from '../../../src/sinks/parquet/target.ts';
import type { Sink } from '../../../src/sinks/sink.ts';
import type { Target } from '../../../src/sinks/target.ts';
import { type Cells, csvOf, on } from '../../support/targets/duckdb.ts';
import { ParquetFixture } from '../../support/targets/parquet.ts';
import { query } from '../../support/targets/query.ts';

let fixture: ParquetFixture;
beforeEach(() => {
  fixture = new ParquetFixture();
});
afterEach(() => fixture.close());

const TARGETS: readonly (readonly [string, Required<Pick<Target, 'report' | 'readPriorLoads' | 'verify'>>])[] = [
  ['DuckDB', duckdb as Required<Target>],
  ['Parquet', parquet as Required<Target>],
];
const OUTCOME = { exitCode: 3, cause: 'The service is down.', rows: 7, windows: 2, exports: 4, bytes: 99 };
const instant = (minute: number) => `2026-01-01T00:0${minute}:00.125Z`;

describe.each(TARGETS)('%s', (name, target) => {
  const isFile = name === 'DuckDB';
  const place = () => (isFile ? fixture.file : fixture.root);
  const options = () => ({ ...fixture.targetOptions, spoolDir: fixture.dir, env: () => undefined });
  const open = (timezone?: string): Promise<Sink> =>
    isFile ? fixture.open({ timezone }) : fixture.openFolder({ timezone });
  const load = async (windows: readonly Window[], timezone?: string) =>
    fixture.commitAll(await open(timezone), windows);
  const report = () => target.report(place(), options());
  const day = (n: number, rows: readonly Cells[], timezone?: string) =>
    fixture.window(`2026-01-0${n}`, csvOf(rows.map((row) => ({ ...on(`2026-01-0${n}`), ...row }))), timezone);

  it('remembers its runs, and which of the latest never ended', async () => {
    const begin = async (minute: number, isEnding = false) => {
      const sink = await open();
      const found = await sink.runs?.begin(instant(minute), `1.${minute}`);
      if (isEnding) await sink.runs?.end(instant(minute + 1), OUTCOME);
      await sink.close();
      return found;
    };
    await load([day(1, [{ id: 'a' }])]);
    expect((await report()).runs).toEqual([]);
    expect(await begin(0)).toEqual([]);
    expect(await begin(2)).toEqual([instant(0)]);
    expect(await begin(4, true)).toEqual([instant(0), instant(2)]);
    expect(await begin(6)).toEqual([]);
    const never = { ended: null, exitCode: null, cause: null, rows: 0, windows: 0, exports: 0, bytes: 0 };
    expect((await report()).runs).toEqual([
      { ...never, began: instant(0), version: '1.0' },
      { ...never, began: instant(2), version: '1.2' },
      { ...OUTCOME, began: instant(4), ended: instant(5), version: '1.4' },
      { ...never, began: instant(6), version: '1.6' },
    ]);
  });

  it('tells of every window, and of one that a clock has not ended yet', async () => {
    const open1 = day(2, [{ id: 'b' }]);
    await load([day(1, [{ id: 'a' }]), { ...open1, receipt: { ...open1.receipt, covers_to: null, exports: 3 } }]);
    const found = await report();
    const common = { rows: 1, bytes: open1.receipt.bytes, verifiedAt: '2026-02-01T00:00:00.000Z' };
    const [one, two] = ['2026-01-01', '2026-01-02'];
    expect(found.windows).toEqual([
      { ...common, from: one, to: one, coversFrom: one, coversTo: one, exports: 1 },
      { ...common, from: two, to: two, coversFrom: two, coversTo: null, exports: 3 },
    ]);
    expect(found).toMatchObject({ timezone: null, rows: 2, lastEventAt: '2026-01-02 10:00:00' });
    expect([...(await target.readPriorLoads(place(), options())).covered]).toEqual([one]);
  });

  it('tells of a column that is new, wider or missing, when and by which window', async () => {
    const windows = [day(1, [{ id: 'a', level: '1' }]), day(2, [{ id: 'b', level: 'x-7' }]), day(3, [{ id: 'c' }])];
    await load(windows);
    const changes = (await report()).changes.filter(({ sourceName }) => sourceName === 'level');
    const ids = windows.map(({ receipt }) => receipt.id);
    expect(changes).toMatchObject([
      { change: 'added', fromType: null, toType: 'long', window: ids[0], shape: '9' },
      { change: 'widened', fromType: 'long', toType: 'string', window: ids[1], shape: 'a-9' },
      { change: 'missing', fromType: 'string', toType: null, window: ids[2], shape: null },
    ]);
    for (const { changedAt } of changes) expect(changedAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  });

  it('counts hours and days by the clock of its zone, an event by its correction, and rows without a time in none', async () => {
    const zone = 'Asia/Seoul';
    const rows = [
      { id: 'a', df_server_datetime: '2026-01-01 23:30:00.000', df_correction_datetime: '2026-01-01 22:30:00.000' },
      { id: 'b', df_server_datetime: '2026-01-02 00:10:00.000', df_correction_datetime: '' },
      { id: 'c', df_server_datetime: '', df_correction_datetime: '' },
    ];
    await load([day(1, rows, zone)], zone);
    const { timezone, lastEventAt, hours, events, rows: all } = await report();
    expect({ timezone, lastEventAt, all }).toEqual({ timezone: zone, lastEventAt: '2026-01-02 00:10:00', all: 3 });
    expect(hours.flatMap((n, hour) => (n === 0 ? [] : [[hour, n]]))).toEqual([
      [0, 1],
      [22, 1],
    ]);
    expect(hours).toHaveLength(24);
    expect(events).toEqual([
      { day: '2026-01-01', name: 'df_login', events: 1 },
      { day: '2026-01-02', name: 'df_login', events: 1 },
    ]);
  });

  it('counts the values of very many columns, each in its place, and what was rescued', async () => {
    const many = Array.from({ length: 450 }, (_, i) => [`c${i}`, 'x'] as const);
    await load([
      day(1, [
        { id: 'a', ...Object.fromEntries(many) },
        { id: 'b', df_discount: 'free', c449: 'y', none: '' },
        { id: 'c' },
      ]),
    ]);
    const columns = new Map((await report()).columns.map((column) => [column.source, column]));
    const counts = ['c0', 'c199', 'c200', 'c201', 'c448', 'c449', 'none'].map((column) => columns.get(column)?.filled);
    expect(counts).toEqual([1, 1, 1, 1, 1, 2, 0]);
    expect(columns.get('none')).toMatchObject({ type: null, rescued: 0 });
    expect(columns.get('df_discount')).toMatchObject({ type: 'double', filled: 0, rescued: 1 });
  });

  it('says that nothing was loaded where nothing was, and makes nothing', async () => {
    const prior = await target.readPriorLoads(place(), options());
    expect([prior.state, [...prior.covered], prior.eventNames]).toEqual([undefined, [], []]);
    await expect(report()).rejects.toMatchObject({ kind: 'config' });
    await expect(target.verify(place(), options())).rejects.toMatchObject({ kind: 'config' });
    expect(fixture.files()).toEqual([]);
    await (await open()).close();
    if (isFile) expect(await report()).toMatchObject({ rows: 0, windows: [], runs: [], changes: [], state: undefined });
    await load([fixture.window('2026-01-01', csvOf([]))]);
    const found = await report();
    expect(found).toMatchObject({ rows: 0, lastEventAt: null, events: [], windows: [{ rows: 0 }] });
    expect(found.hours).toEqual(Array(24).fill(0));
    expect(found.columns.find(({ source }) => source === 'df_event_name')).toMatchObject({ filled: 0, rescued: 0 });
    expect([...(await target.readPriorLoads(place(), options())).covered]).toEqual(['2026-01-01']);
  });

  it('remembers each event name once, also of names that come back', async () => {
    const named = (n: number, ...names: string[]) =>
      day(
        n,
        names.map((df_event_name, i) => ({ id: `${n}-${i}`, df_event_name })),
      );
    await load([named(1, 'b', 'a'), named(2, 'a'), named(3, 'c', 'b')]);
    await load([named(4, 'a', 'd')]);
    expect((await target.readPriorLoads(place(), options())).eventNames).toEqual(['a', 'b', 'c', 'd']);
  });
});

describe('a DuckDB file', () => {
  it('is only read by those who look into it: what a purge under way has beside it stays', async () => {
    const all = { ...fixture.targetOptions, spoolDir: fixture.dir, env: () => undefined };
    await fixture.load([fixture.window('2026-01-01', csvOf([{ id: 'a' }]))]);
    writeFileSync(`${fixture.file}.rewriting`, 'half');
    await duckdb.report?.(fixture.file, all);
    await duckdb.readPriorLoads?.(fixture.file, all);
    await duckdb.verify?.(fixture.file, all);
    await duckdb.people?.(fixture.file, { column: 'df_unified_id', ids: ['u'] }, all);
    expect(readFileSync(`${fixture.file}.rewriting`, 'utf8')).toBe('half');
  });

  it('with tables of somebody else alone has loaded nothing, and one without our state is not read', async () => {
    const options = { ...fixture.targetOptions, spoolDir: fixture.dir, env: () => undefined };
    await query(fixture.file, 'CREATE TABLE mine AS SELECT 1 AS x');
    expect((await duckdb.readPriorLoads?.(fixture.file, options))?.state).toBeUndefined();
    await expect(duckdb.report?.(fixture.file, options)).rejects.toMatchObject({
      kind: 'config',
      message: expect.stringContaining('holds no events loaded by this program'),
    });
  });

  it.each([undefined, 'Asia/Seoul'])(
    'of many rows gets new and wider columns beside them: zone %s',
    async (timezone) => {
      const rows = Array.from({ length: 400 }, (_, i) => ({ id: `a${i}`, n: `${i}`, day: '2026-01-05' }));
      const more = { id: 'b', n: '1.5', day: '2026-01-05 10:00:00', late: '2026-01-05 11:00:00', word: 'x' };
      const zoned = { timezone };
      await fixture.load([fixture.window('2026-01-01', csvOf(rows), timezone)], zoned);
      await fixture.load([fixture.window('2026-01-02', csvOf([more]), timezone)], zoned);
      const instant = timezone === undefined ? 'TIMESTAMP' : 'TIMESTAMP WITH TIME ZONE';
      const [types] = await fixture.query(
        'SELECT typeof(n) AS n, typeof(day) AS day, typeof(late) AS late FROM events LIMIT 1',
      );
      expect(types).toEqual({ n: 'DOUBLE', day: instant, late: instant });
      const shown = timezone === undefined ? 'day' : `timezone('${timezone}', day)`;
      expect(
        await fixture.query(
          `SELECT n, CAST(${shown} AS VARCHAR) AS day, word FROM events WHERE _key IN ('a399', 'b') ORDER BY _key`,
        ),
      ).toEqual([
        { n: 399, day: '2026-01-05 00:00:00', word: null },
        { n: 1.5, day: '2026-01-05 10:00:00', word: 'x' },
      ]);
      // What no longer fits is kept, and the rest of the row.
      const columnTypes = new Map([['n', 'long' as const]]);
      await fixture.load([fixture.window('2026-01-03', csvOf([{ id: 'c', n: '2' }]), timezone)], {
        ...zoned,
        columnTypes,
      });
      expect(
        await fixture.query(`SELECT n, word, _rescued AS r FROM events WHERE _key IN ('a399', 'b', 'c') ORDER BY _key`),
      ).toEqual([
        { n: '399', word: null, r: null },
        { n: null, word: 'x', r: '{"n":"1.5"}' },
        { n: '2', word: null, r: null },
      ]);
    },
  );
});
