import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { openEngine } from '../../../src/engine/session/open.ts';
import { writeDates } from '../../../src/targets/files/parquet-file.ts';
import { query } from '../../support/targets/query.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'dfinery-files-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

describe('rows of very many dates', () => {
  it('are one complete file a date, though DuckDB closes files early', async () => {
    const engine = await openEngine({ file: join(dir, 'work'), lockWaitMs: 0, clock: systemClock });
    const [dates, each] = [40, 200];
    try {
      for (const set of [
        'threads = 1',
        'partitioned_write_flush_threshold = 2048',
        'partitioned_write_max_open_files = 2',
      ])
        await engine.run(`SET ${set}`);
      const sql = `SELECT i AS x, CASE WHEN i % ${dates} > 0 THEN DATE '2026-01-01' + CAST(i % ${dates} AS INTEGER) END AS event_date
        FROM range(${dates * each}) t(i)`;
      const folder = join(dir, 'window');
      const writer = { rows: (s: string) => engine.rows(s), isLowOnMemory: false, layout: {} };
      const found = await writeDates(writer, { table: 'events', query: sql, rows: each }, folder);
      expect(found.size).toBe(dates);
      expect([found.has(null), found.has('2026-01-02'), found.has('2026-01-01')]).toEqual([true, true, false]);
      const joined = [...found.values()].map(({ local }) => local).filter((path) => basename(path) !== 'data_0.part');
      expect(joined.length).toBeGreaterThan(0);
      for (const [date, { local: path, rows }] of found) {
        expect(rows).toBe(each);
        const [row] = await query(
          ':memory:',
          `SELECT count(*)::INT AS n, count(DISTINCT x)::INT AS xs FROM read_parquet('${path}', hive_partitioning = false)`,
        );
        expect({ date, ...row }).toEqual({ date, n: each, xs: each });
      }
      expect(joined.filter((path) => existsSync(path.replace(/\.part$/, '')))).toEqual([]);
      expect(readdirSync(folder)).toHaveLength(dates);
    } finally {
      await engine.close();
    }
  });
});
