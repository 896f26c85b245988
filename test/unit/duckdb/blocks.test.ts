import { copyFileSync, existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DuckDBConnection } from '@duckdb/node-api';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { begunRun } from '../../../src/table/runs.ts';
import { verifyDuckDb } from '../../../src/targets/duckdb/read.ts';
import { rewriteDuckDb } from '../../../src/targets/duckdb/rewrite.ts';
import { openDuckDbSink } from '../../../src/targets/duckdb/sink.ts';
import { csvOf } from '../../support/targets/csv.ts';
import { DuckDbFixture } from '../../support/targets/duckdb.ts';

const MANY = 600;
let fixture: DuckDbFixture;
beforeEach(() => {
  fixture = new DuckDbFixture();
});
afterEach(() => fixture.close());

const columns = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`c${i}`, `v${i}`]));
const windowOf = (day: string, count: number) => fixture.window(day, csvOf([{ id: day, ...columns(count) }]));
const options = () => ({ file: fixture.file, lockWaitMs: 0, clock: systemClock });

async function blockSize(): Promise<number> {
  const rows = await fixture.query("SELECT block_size FROM pragma_database_size() WHERE database_name <> 'memory'");
  return Number(rows[0].block_size);
}

describe('the blocks of a DuckDB file', () => {
  it('have the default size for a usual table', async () => {
    await fixture.load([windowOf('2026-01-01', 20)]);
    expect(await blockSize()).toBe(262_144);
  });

  it('are small when the first window has very many columns; the started run is still recorded', async () => {
    const sink = await openDuckDbSink({ ...fixture.targetOptions, file: fixture.file });
    try {
      await sink.runs.begin(begunRun('2026-01-02T00:00:00.000Z', '1'));
      for (const day of ['2026-01-01', '2026-01-02']) await sink.commit([windowOf(day, MANY)], fixture.signal);
    } finally {
      await sink.close();
    }
    expect(await blockSize()).toBe(16_384);
    expect(await verifyDuckDb(options())).toEqual([]);
    expect(await fixture.query('SELECT count(*)::INTEGER AS n, max(c599) AS c FROM events')).toEqual([
      { n: 2, c: 'v599' },
    ]);
    expect(await fixture.query('SELECT count(*)::INTEGER AS n FROM _dfinery_runs')).toEqual([{ n: 1 }]);
  });

  it('become small for one of two first runs; the other is to be run again, and changes nothing', async () => {
    const other = join(fixture.dir, 'other.duckdb');
    await fixture.load([windowOf('2026-01-01', MANY)], { file: other });
    const sink = await fixture.open();
    // The other run takes the lock while this one makes the file anew.
    const run = DuckDBConnection.prototype.run;
    const spy = vi.spyOn(DuckDBConnection.prototype, 'run');
    spy.mockImplementation(async function (this: DuckDBConnection, sql) {
      const result = await run.call(this, sql);
      if (sql === 'DETACH main_file') {
        spy.mockRestore();
        copyFileSync(other, fixture.file);
      }
      return result;
    });
    await expect(fixture.commitAll(sink, [windowOf('2026-01-01', MANY)])).rejects.toMatchObject({
      exitCode: 3,
      message: expect.stringContaining('was loaded by another run'),
    });
    expect(await verifyDuckDb(options())).toEqual([]);
    await fixture.load([windowOf('2026-01-01', MANY)]);
    expect(await verifyDuckDb(options())).toEqual([]);
    expect(await fixture.query('SELECT count(*)::INTEGER AS n FROM events')).toEqual([{ n: 1 }]);
  });

  it('become small by compact when the table has become wide', async () => {
    await fixture.load([windowOf('2026-01-01', 20), windowOf('2026-01-02', MANY)]);
    expect(await blockSize()).toBe(262_144);
    await rewriteDuckDb(options());
    expect(await blockSize()).toBe(16_384);
    expect(await verifyDuckDb(options())).toEqual([]);
  });
});

describe('the write-ahead log of a DuckDB file', () => {
  /** Size of the write-ahead log after two windows of 20 MB; the second commit sees what the first has left. */
  async function waiting(memoryLimit: string): Promise<number> {
    const rows = Array.from({ length: 1_200 }, (_, i) => ({ id: `id-${i}`, note: `${i}`.repeat(5_000) }));
    const sink = await openDuckDbSink({ ...fixture.targetOptions, file: fixture.file, memoryLimit });
    try {
      for (const day of ['2026-01-01', '2026-01-02'])
        await sink.commit([fixture.window(day, csvOf(rows))], fixture.signal);
      const log = `${fixture.file}.wal`;
      return existsSync(log) ? statSync(log).size : 0;
    } finally {
      await sink.close();
    }
  }

  it('holds several windows until there are enough rows for a checkpoint, given enough memory', async () => {
    expect(await waiting('2GB')).toBeGreaterThan(20_000_000);
  });

  it('holds fewer windows when memory is scarce', async () => {
    expect(await waiting('150MB')).toBeLessThan(1_000_000);
  });
});
