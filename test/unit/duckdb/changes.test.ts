import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { silentLogger } from '../../../src/base/log.ts';
import type { Manifest } from '../../../src/sinks/parquet/manifest.ts';
import { parquet } from '../../../src/sinks/parquet/target.ts';
import { csvOf, DuckDbFixture } from '../../support/targets/duckdb.ts';
import { openParquetSink } from '../../support/targets/files.ts';

let fixture: DuckDbFixture;
beforeEach(() => {
  fixture = new DuckDbFixture();
});
afterEach(() => fixture.close());

const windows = () => [
  fixture.window('2026-01-01', csvOf([{ id: 'a', level: '1', color: 'red' }])),
  fixture.window('2026-01-02', csvOf([{ id: 'b', level: 'high', size: '7' }])),
  fixture.window('2026-01-03', csvOf([{ id: 'c', level: 'low' }])),
];

const CHANGES = [
  ['level', 'added', null, 'long', '9'],
  ['color', 'added', null, 'string', 'aaa'],
  ['level', 'widened', 'long', 'string', 'aaaa'],
  ['size', 'added', null, 'long', '9'],
  ['color', 'missing', 'string', null, null],
  ['size', 'missing', 'long', null, null],
];

describe('the changes of columns', () => {
  it('are kept with the window that makes them: added, widened, missing for the first time [R123]', async () => {
    const made = windows();
    await fixture.load(made);
    const found = await fixture.query(
      `SELECT source_name, change, from_type, to_type, shape, "window" AS w, changed_at IS NOT NULL AS is_dated FROM _dfinery_changes
      WHERE source_name IN ('level', 'color', 'size')`,
    );
    const rows = found.map(({ source_name, change, from_type, to_type, shape }) => [
      source_name,
      change,
      from_type,
      to_type,
      shape,
    ]);
    expect(rows).toHaveLength(CHANGES.length);
    expect(rows).toEqual(expect.arrayContaining(CHANGES));
    expect(found.find(({ change }) => change === 'widened')?.w).toBe(made[1].receipt.id);
    expect(found.every(({ is_dated }) => is_dated)).toBe(true);
  });

  it('tell once that a column is missing, also in later runs', async () => {
    for (const window of windows()) await fixture.load([window]);
    await fixture.load([fixture.window('2026-01-04', csvOf([{ id: 'd', level: 'low' }]))]);
    expect(
      await fixture.query(
        `SELECT source_name FROM _dfinery_changes WHERE change = 'missing' AND source_name IN ('color', 'size') ORDER BY 1`,
      ),
    ).toEqual([{ source_name: 'color' }, { source_name: 'size' }]);
  });

  it('are the same in the manifest of a Parquet dataset [R123]', async () => {
    const dir = `${fixture.dir}/set`;
    const sink = await openParquetSink({
      ...fixture.targetOptions,
      env: () => undefined,
      place: dir,
      spoolDir: fixture.dir,
      tables: ['events'],
    });
    for (const window of windows()) await sink.commit([window], fixture.signal);
    await sink.close();
    const options = {
      lockWaitMs: 0,
      clock: systemClock,
      logger: silentLogger,
      spoolDir: fixture.dir,
      env: () => undefined,
    };
    const report = await parquet.report?.(dir, options);
    const rows = report?.changes
      .filter(({ sourceName }) => ['level', 'color', 'size'].includes(sourceName))
      .map(({ sourceName, change, fromType, toType, shape }) => [sourceName, change, fromType, toType, shape]);
    expect(rows).toHaveLength(CHANGES.length);
    expect(rows).toEqual(expect.arrayContaining(CHANGES));
  });

  it('of a window that a Parquet dataset never committed are not told [R123]', async () => {
    const dir = `${fixture.dir}/lake`;
    const options = {
      ...fixture.targetOptions,
      env: () => undefined,
      place: dir,
      spoolDir: fixture.dir,
      tables: ['events'] as const,
    };
    const day = (n: number, color: string) =>
      fixture.window(`2026-01-0${n}`, csvOf([{ id: `e${n}`, ...(color !== '' && { color }) }]));
    await fixture.commitAll(await openParquetSink(options), [day(1, '')]);
    const journal = `${dir}/_dfinery/journal.json`;
    const sink = await openParquetSink(options);
    mkdirSync(`${journal}/refused`, { recursive: true });
    await expect(fixture.commitAll(sink, [day(2, 'red')])).rejects.toThrow();
    rmSync(journal, { recursive: true });
    const sizes = fixture.window('2026-01-02', csvOf([{ id: 'e2', size: '7' }]));
    await fixture.commitAll(await openParquetSink(options), [sizes]);
    const { changes }: Manifest = JSON.parse(readFileSync(`${dir}/_dfinery/manifest.json`, 'utf8'));
    expect(changes.map(({ sourceName }) => sourceName).filter((name) => !name.startsWith('df_'))).toEqual(['size']);
  });
});
