import { rmSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { silentLogger } from '../../../src/base/log.ts';
import type { Window } from '../../../src/extract/window.ts';
import { delta } from '../../../src/sinks/delta/target.ts';
import { duckdb } from '../../../src/sinks/duckdb/target.ts';
import { ducklake } from '../../../src/sinks/ducklake/target.ts';
import { parquet } from '../../../src/sinks/parquet/target.ts';
import type { TargetReport } from '../../../src/sinks/report.ts';
import type { Sink } from '../../../src/sinks/sink.ts';
import type { PlaceOptions, Target } from '../../../src/sinks/target.ts';
import { DeltaFixture } from '../../support/targets/delta.ts';
import { type Cells, csvOf, DuckDbFixture, on } from '../../support/targets/duckdb.ts';
import { DuckLakeFixture } from '../../support/targets/ducklake.ts';
import { ParquetFixture } from '../../support/targets/parquet.ts';

type Kept = Required<Pick<Target, 'report' | 'people' | 'verify' | 'purge' | 'checkPurge' | 'readPriorLoads'>>;

/** A target, its place, and how a sink of it is opened. */
interface Kind {
  readonly target: Target;
  readonly fixture: DuckDbFixture;
  readonly place: string;
  readonly open: (timezone?: string) => Promise<Sink>;
}

let kinds: Kind[];
beforeEach(() => {
  const [file, folder, lake, ducks] = [
    new DuckDbFixture(),
    new ParquetFixture(),
    new DeltaFixture(),
    new DuckLakeFixture(),
  ];
  kinds = [
    { target: duckdb, fixture: file, place: file.file, open: (timezone) => file.open({ timezone }) },
    { target: parquet, fixture: folder, place: folder.root, open: (timezone) => folder.openFolder({ timezone }) },
    { target: delta, fixture: lake, place: lake.root, open: (timezone) => lake.openLake({ timezone }) },
    { target: ducklake, fixture: ducks, place: ducks.place, open: (timezone) => ducks.openLake({ timezone }) },
  ];
});
afterEach(() => {
  for (const { fixture } of kinds) fixture.close();
});

const options = (fixture: DuckDbFixture): PlaceOptions => ({
  lockWaitMs: 0,
  spoolDir: fixture.dir,
  env: () => undefined,
  clock: systemClock,
  logger: silentLogger,
});

const RUN = { exitCode: 4, cause: 'a day is lost', rows: 7, windows: 2, exports: 3, bytes: 5 };

/** Commits windows in a run that ends, and begins another one that does not. */
async function loadInRuns(open: Kind['open'], windows: readonly Window[], timezone?: string): Promise<void> {
  const sink = await open(timezone);
  expect(await sink.runs?.begin('2026-01-03T00:00:00.000Z', '1.2.3')).toEqual([]);
  for (const window of windows) await sink.commit([window], new AbortController().signal);
  await sink.runs?.end('2026-01-03T00:01:00.000Z', RUN);
  await sink.close();
  const next = await open(timezone);
  expect(await next.runs?.begin('2026-01-04T00:00:00.000Z', '1.2.4')).toEqual([]);
  await next.close();
}

/** What each target tells after the same windows; those of the others are compared with those of DuckDB. */
async function inEach<T>(
  windows: (fixture: DuckDbFixture) => Window[],
  ask: (kind: Kind, kept: Kept) => Promise<T>,
  timezone?: string,
): Promise<T> {
  const told: T[] = [];
  for (const kind of kinds) {
    await loadInRuns(kind.open, windows(kind.fixture), timezone);
    told.push(await ask(kind, kind.target as Kept));
  }
  for (const other of told.slice(1)) expect(other).toEqual(told[0]);
  return told[0];
}

const event = (id: string, day: '2026-01-01' | '2026-01-02', more: Cells = {}): Cells => ({ id, ...on(day), ...more });

describe('what every target tells of the same days', () => {
  const days = (timezone?: string) => (fixture: DuckDbFixture) => {
    const first = csvOf([
      event('a', '2026-01-01', { level: '1' }),
      event('b:0', '2026-01-01', { df_items_df_price: '1.5' }),
    ]);
    const second = csvOf([
      event('b:1', '2026-01-02', { df_items_df_price: 'free', level: '2.5' }),
      event('c', '2026-01-02', { df_event_name: '', df_unified_id: '' }),
    ]);
    const last = fixture.window('2026-01-02', second, timezone);
    const windows = [
      fixture.window('2026-01-01', first, timezone),
      { ...last, receipt: { ...last.receipt, covers_to: null } },
    ];
    return windows.map((window, i) => ({ ...window, receipt: { ...window.receipt, id: `r-${i}` } }));
  };
  const report = async ({ place, fixture }: Kind, kept: Kept): Promise<Omit<TargetReport, 'sizeBytes'>> => {
    const { sizeBytes, columns, changes, ...rest } = await kept.report(place, options(fixture));
    if (rest.rows > 0) expect(sizeBytes).toBeGreaterThan(1_000);
    const own = changes.filter(({ sourceName }) => !sourceName.startsWith('df_'));
    return {
      ...rest,
      columns: columns.toSorted((a, b) => (a.name < b.name ? -1 : 1)),
      changes: own.map((change) => ({ ...change, changedAt: '' })),
    };
  };

  it('is in its report: rows, days, columns, runs and changes', async () => {
    const told = await inEach(days(), report);
    expect(told).toMatchObject({
      rows: 4,
      lastEventAt: '2026-01-02 10:00:00',
      timezone: null,
      events: [
        { day: '2026-01-01', name: 'df_login', events: 2 },
        { day: '2026-01-02', name: null, events: 1 },
      ],
      windows: [
        {
          from: '2026-01-01',
          to: '2026-01-01',
          coversFrom: '2026-01-01',
          coversTo: '2026-01-01',
          rows: 2,
          exports: 1,
          verifiedAt: '2026-02-01T00:00:00.000Z',
        },
        { from: '2026-01-02', to: '2026-01-02', coversFrom: '2026-01-02', coversTo: null, rows: 2 },
      ],
      runs: [
        { began: '2026-01-03T00:00:00.000Z', ended: '2026-01-03T00:01:00.000Z', version: '1.2.3', ...RUN },
        {
          began: '2026-01-04T00:00:00.000Z',
          ended: null,
          exitCode: null,
          cause: null,
          version: '1.2.4',
          rows: 0,
          windows: 0,
          exports: 0,
          bytes: 0,
        },
      ],
      changes: [
        { sourceName: 'level', change: 'added', fromType: null, toType: 'long', window: 'r-0', shape: '9' },
        { sourceName: 'level', change: 'widened', fromType: 'long', toType: 'double', window: 'r-1', shape: '9.9' },
      ],
      state: { version: 1, from_date: '2026-01-03' },
    });
    expect(told.hours).toEqual(Array.from({ length: 24 }, (_, hour) => (hour === 10 ? 3 : 0)));
    const column = (source: string) => told.columns.find((one) => one.source === source);
    expect(column('level')).toMatchObject({ type: 'double', group: 'custom', filled: 2, rescued: 0 });
    expect(column('df_items_df_price')).toMatchObject({ type: 'double', filled: 1, rescued: 1 });
    expect(column('df_unified_id')).toMatchObject({ filled: 3 });
  });

  it('is by the clock of the configured zone', async () => {
    const told = await inEach(days('America/New_York'), report, 'America/New_York');
    expect(told).toMatchObject({ timezone: 'America/New_York', lastEventAt: '2026-01-02 10:00:00' });
    expect(told.hours[10]).toBe(3);
  });

  it('is nothing where no row was loaded', async () => {
    const told = await inEach((fixture) => [fixture.window('2026-01-01', csvOf([]))], report);
    expect(told).toMatchObject({ rows: 0, lastEventAt: null, events: [], hours: Array(24).fill(0) });
    expect(told.columns.every(({ filled, rescued }) => filled === 0 && rescued === 0)).toBe(true);
  });

  it('is refused by a place that is not there', async () => {
    for (const { target, fixture, place } of kinds) {
      rmSync(place, { recursive: true, force: true });
      await expect((target as Kept).report(place, options(fixture)), target.name).rejects.toMatchObject({
        kind: 'config',
      });
    }
  });
});

describe('the people of a target', () => {
  const rows = (fixture: DuckDbFixture) => [
    fixture.window(
      '2026-01-01',
      csvOf([
        event('a', '2026-01-01', { level: '1', df_unified_id: 'erna' }),
        event('b', '2026-01-01', { level: '2', df_unified_id: 'hans', df_items_df_price: 'free' }),
        event('c', '2026-01-01', { level: '3', df_unified_id: '', df_items_df_price: '1.5' }),
      ]),
    ),
    // A file without the column.
    fixture.window(
      '2026-01-02',
      csvOf([event('d', '2026-01-02', { df_unified_id: 'erna', df_items_df_price: 'free' })]),
    ),
  ];
  const find = (source: string, texts: readonly string[]) => async (kind: Kind, kept: Kept) => {
    const found = await kept.people(kind.place, { column: source, ids: texts }, options(kind.fixture));
    const people = found.unifiedIds.map(({ text }) => text).sort();
    return { people, ids: [...found.ids].sort(), idsWithoutUnifiedId: found.idsWithoutUnifiedId };
  };

  it('are found by typed cells, and rows without one are told apart', async () => {
    expect(await inEach(rows, find('level', ['1', '3', '4']))).toEqual({
      people: ['erna'],
      ids: ['1', '3'],
      idsWithoutUnifiedId: ['3'],
    });
  });

  it('are found by cells that did not fit, in each file', async () => {
    expect(await inEach(rows, find('df_items_df_price', ['free', '1.50']))).toEqual({
      people: ['erna', 'hans'],
      ids: ['1.50', 'free'],
      idsWithoutUnifiedId: ['1.50'],
    });
  });

  it('are none for no text, and where there is no row', async () => {
    const none = { people: [], ids: [], idsWithoutUnifiedId: [] };
    expect(await inEach(rows, find('level', []))).toEqual(none);
  });

  it('are none where no row was loaded', async () => {
    const none = { people: [], ids: [], idsWithoutUnifiedId: [] };
    expect(
      await inEach((fixture) => [fixture.window('2026-01-01', csvOf([]))], find('df_unified_id', ['erna'])),
    ).toEqual(none);
  });

  it('are not looked for in a column that is not there', async () => {
    const refused = async ({ place, fixture }: Kind, kept: Kept) =>
      String(
        await kept
          .people(place, { column: 'absent', ids: ['1'] }, options(fixture))
          .catch((error: Error) => error.message),
      ).replace(place, 'PLACE');
    expect(await inEach(rows, refused)).toContain('has no column absent: nothing was done.');
  });

  it('leave with their rows, and what stays is as its receipts say', async () => {
    const purged = async ({ place, fixture }: Kind, kept: Kept) => {
      const removal = { column: 'df_unified_id', ids: ['erna', 'nobody'] };
      expect((await kept.checkPurge(place, removal, options(fixture))).found.rows).toBe(2);
      const { rows: left, rowsRemoved } = await kept.purge(place, removal, {
        ...options(fixture),
        onFound: async () => {},
      });
      expect(await kept.verify(place, options(fixture))).toEqual([]);
      const prior = await kept.readPriorLoads(place, options(fixture));
      const query = { column: 'df_unified_id', ids: ['erna', 'hans'] };
      const people = (await kept.people(place, query, options(fixture))).unifiedIds.map(({ text }) => text);
      return {
        left,
        rowsRemoved,
        people,
        covered: [...prior.covered].sort(),
        of: prior.rowsOf?.('2026-01-01', '2026-01-01'),
      };
    };
    expect(await inEach(rows, purged)).toEqual({
      left: 2,
      rowsRemoved: 2,
      people: ['hans'],
      covered: ['2026-01-01', '2026-01-02'],
      of: 3,
    });
  });
});

describe('days that were read before', () => {
  const windows = (fixture: DuckDbFixture) => [
    fixture.window('2026-01-01', csvOf([event('a', '2026-01-01')])),
    fixture.window(
      '2026-01-01',
      csvOf([event('a', '2026-01-01'), event('b', '2026-01-02'), event('c', '2026-01-02')]),
      undefined,
      2,
    ),
    fixture.window('2026-01-01', csvOf([event('a', '2026-01-01'), event('d', '2026-01-01')])),
  ];

  it('have the rows of the last window that was of exactly these days', async () => {
    const rowsOf = async ({ place, fixture }: Kind, kept: Kept) => {
      const prior = await kept.readPriorLoads(place, options(fixture));
      return [
        prior.rowsOf?.('2026-01-01', '2026-01-01'),
        prior.rowsOf?.('2026-01-01', '2026-01-02'),
        prior.rowsOf?.('2026-01-02', '2026-01-02'),
      ];
    };
    expect(await inEach(windows, rowsOf)).toEqual([2, 3, undefined]);
  });
});
