import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { silentLogger } from '../../../src/base/log.ts';
import { delta } from '../../../src/sinks/delta/target.ts';
import { reportDuckDb } from '../../../src/sinks/duckdb/report.ts';
import { parquet } from '../../../src/sinks/parquet/target.ts';
import type { TargetReport } from '../../../src/sinks/report.ts';
import { runHere } from '../../support/processes/command-line.ts';
import { csvOf, DuckDbFixture } from '../../support/targets/duckdb.ts';
import { openDeltaSink, openParquetSink } from '../../support/targets/files.ts';

let fixture: DuckDbFixture;
beforeEach(() => {
  fixture = new DuckDbFixture();
});
afterEach(() => fixture.close());

const event = (id: string, name: string, at: string, more: Record<string, string> = {}) => ({
  id,
  df_event_name: name,
  df_correction_datetime: at,
  df_server_datetime: at,
  ...more,
});

/** Eleven names on two days; one purchase of two items; a rescued cell; a column that is half full. */
function windows() {
  const names = Array.from({ length: 9 }, (_, i) => [`name${i}`, 10 - i] as const);
  const rows = names.flatMap(([name, n]) =>
    Array.from({ length: n }, (_, i) =>
      event(`${name}-${i}`, name, `2026-01-05 ${String(i).padStart(2, '0')}:30:00.000`),
    ),
  );
  const items = [0, 1].map((n) =>
    event(`p:${n}`, 'df_purchase', '2026-01-06 23:59:59.000', {
      df_items_df_price: n === 0 ? '1' : 'free',
      level: '7',
    }),
  );
  return [fixture.window('2026-01-05', csvOf(rows)), fixture.window('2026-01-06', csvOf(items))];
}

function check(report: TargetReport) {
  expect(report.rows).toBe(56);
  expect(report.lastEventAt).toBe('2026-01-06 23:59:59');
  expect(report.events.reduce((sum, { events }) => sum + events, 0)).toBe(55);
  expect(report.events.filter(({ name }) => name === null)).toEqual([
    { day: '2026-01-05', name: null, events: 2 },
    { day: '2026-01-06', name: null, events: 1 },
  ]);
  expect(report.events.find(({ name }) => name === 'name0')?.events).toBe(10);
  expect(report.hours.reduce((sum, events) => sum + events, 0)).toBe(55);
  expect([report.hours[0], report.hours[9], report.hours[23]]).toEqual([9, 1, 1]);
  const column = (name: string) => report.columns.find(({ source }) => source === name);
  expect(column('level')).toMatchObject({ type: 'long', filled: 2, rescued: 0 });
  expect(column('df_items_df_price')).toMatchObject({ group: 'standard_item', filled: 1, rescued: 1 });
  expect(report.windows.map(({ from, coversTo, rows }) => [from, coversTo, rows])).toEqual([
    ['2026-01-05', '2026-01-05', 54],
    ['2026-01-06', '2026-01-06', 2],
  ]);
  expect(report.state?.from_date).toBe('2026-01-07');
  expect(report.sizeBytes).toBeGreaterThan(1_000);
}

describe('a report', () => {
  const options = {
    lockWaitMs: 0,
    clock: systemClock,
    logger: silentLogger,
    spoolDir: tmpdir(),
    env: () => undefined,
  };

  it('counts what is in a DuckDB file [R121]', async () => {
    await fixture.load(windows());
    check(await reportDuckDb({ ...options, file: fixture.file }));
  });

  it('counts the same in a Parquet dataset [R121]', async () => {
    const dir = `${fixture.dir}/set`;
    const signal = fixture.signal;
    const sink = await openParquetSink({ ...fixture.targetOptions, ...options, place: dir, tables: ['events'] });
    for (const window of windows()) await sink.commit([window], signal);
    await sink.close();
    const report = await parquet.report?.(dir, options);
    if (report === undefined) throw new Error('no report');
    check(report);
  });

  it('counts the same in Delta tables, although later windows have other columns [R121]', async () => {
    const url = `${fixture.dir}/lake`;
    const more = { ...options, place: url, tables: ['events' as const], retentionMs: 86_400_000 };
    const sink = await openDeltaSink({ ...fixture.targetOptions, ...more });
    for (const window of windows()) await sink.commit([window], fixture.signal);
    await sink.close();
    const report = await delta.report?.(url, options);
    if (report === undefined) throw new Error('no report');
    check(report);
    await expect(delta.report?.(`${fixture.dir}/none`, options)).rejects.toThrow(/holds no table of this program/);
  });

  it('takes a day for lost when the service no longer has it, by the days that are given [R559]', async () => {
    await fixture.load([fixture.window('2026-01-06', csvOf([]))]);
    const page = `${fixture.dir}/page.html`;
    const lost = async (...more: string[]) => {
      const done = await runHere(['report', 'duckdb', fixture.file, '-o', page, ...more]);
      expect(done.code, done.stderr).toBe(0);
      return readFileSync(page, 'utf8').includes('class="lost-soon" title="2026-01-07: lost in 0 days"');
    };
    expect([await lost(), await lost('--history-days', '3650')]).toEqual([true, false]);
  });

  it('is refused for a file that is not there', async () => {
    await expect(reportDuckDb({ ...options, file: `${fixture.dir}/none.duckdb` })).rejects.toThrow(/does not exist/);
  });
});
