import { readFileSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { verifyDuckDb } from '../../../src/targets/duckdb/read.ts';
import { purgeDuckDb } from '../../../src/targets/duckdb/rewrite.ts';
import { duckdb } from '../../../src/targets/duckdb/target.ts';
import { csvOf } from '../../support/targets/csv.ts';
import { DuckDbFixture } from '../../support/targets/duckdb.ts';
import { query } from '../../support/targets/query.ts';

let fixture: DuckDbFixture;
beforeEach(async () => {
  fixture = new DuckDbFixture();
  const rows = ['erna', 'hans'].map((person) => ({ id: person, df_unified_id: person }));
  await fixture.load([fixture.window('2026-01-01', csvOf(rows))]);
});
afterEach(() => fixture.close());

const options = () => ({ file: fixture.file, lockWaitMs: 0, clock: systemClock });
const removal = { column: 'df_unified_id', ids: ['erna'] };
const run = (sql: string) => query(fixture.file, sql);

describe('foreign tables in a DuckDB file', () => {
  it('are unchanged by a purge, also those of another schema with our names', async () => {
    await run('CREATE SCHEMA theirs');
    await run(`CREATE TABLE theirs.events AS SELECT 'erna' AS df_unified_id, 1 AS x`);
    await run('CREATE TABLE mine AS SELECT 42 AS x');
    expect(await purgeDuckDb(options(), removal)).toMatchObject({ rows: 1, rowsRemoved: 1 });
    expect(await fixture.query('SELECT df_unified_id AS p FROM events')).toEqual([{ p: 'hans' }]);
    expect(await fixture.query('SELECT * FROM theirs.events')).toEqual([{ df_unified_id: 'erna', x: 1 }]);
    expect(await fixture.query('SELECT * FROM mine')).toEqual([{ x: 42 }]);
    expect(await verifyDuckDb(options())).toEqual([]);
  });

  it('are named when DuckDB cannot copy them, and nothing is changed', async () => {
    await run('CREATE SCHEMA theirs');
    await run('CREATE TABLE theirs.parts (x INTEGER, twice INTEGER GENERATED ALWAYS AS (x * 2))');
    await run('INSERT INTO theirs.parts VALUES (1)');
    await run('CREATE TABLE mine AS SELECT 42 AS x');
    await expect(purgeDuckDb(options(), removal)).rejects.toMatchObject({
      kind: 'config',
      message: expect.stringContaining('DuckDB refuses to copy its tables (mine, theirs.parts)'),
    });
    expect(await fixture.query('SELECT count(*)::INT AS n FROM events')).toEqual([{ n: 2 }]);
  });
});

describe('a table that gains many columns at once', () => {
  it('keeps its instants, and its new datetimes are instants, when a zone is configured', async () => {
    const zoned = new DuckDbFixture();
    try {
      const timezone = 'America/New_York';
      const row = (id: string, more: Record<string, string>) =>
        csvOf([{ id, df_server_datetime: '2026-07-01 12:00:00', ...more }]);
      const windows = [
        zoned.window('2026-01-01', row('a', { t: '2026-07-01 12:00:00.000' }), timezone),
        zoned.window('2026-01-02', row('b', { late: '2026-07-01T12:00:00+00:00', n: '1', m: '1' }), timezone),
      ];
      await zoned.load(windows, { timezone });
      const held = await zoned.query(
        `SELECT _key AS k, typeof(t) AS t, typeof(late) AS late, epoch(t)::BIGINT::VARCHAR AS at, epoch(late)::BIGINT::VARCHAR AS other
        FROM events ORDER BY 1`,
      );
      const type = 'TIMESTAMP WITH TIME ZONE';
      const noon = Date.UTC(2026, 6, 1, 12) / 1_000;
      expect(held).toEqual([
        { k: 'a', t: type, late: type, at: String(noon + 4 * 3_600), other: null },
        { k: 'b', t: type, late: type, at: null, other: String(noon) },
      ]);
    } finally {
      zoned.close();
    }
  });
});

describe('a DuckDB file that is opened for reading', () => {
  const all = () => ({ ...fixture.targetOptions, spoolDir: fixture.dir, env: () => undefined });

  it('is unchanged, and the temporary files of a running purge stay', async () => {
    writeFileSync(`${fixture.file}.rewriting`, 'half');
    const maintenance = await duckdb.maintenance();
    await maintenance.report(fixture.file, all());
    await maintenance.readState(fixture.file, all());
    await maintenance.verify(fixture.file, all());
    await (await duckdb.people()).find(fixture.file, { column: 'df_unified_id', ids: ['u'] }, all());
    expect(readFileSync(`${fixture.file}.rewriting`, 'utf8')).toBe('half');
  });

  it('with foreign tables alone has no state, and its report is refused', async () => {
    const file = `${fixture.dir}/theirs.duckdb`;
    await query(file, 'CREATE TABLE mine AS SELECT 1 AS x');
    const maintenance = await duckdb.maintenance();
    expect(await maintenance.readState(file, all())).toBeUndefined();
    await expect(maintenance.report(file, all())).rejects.toMatchObject({
      kind: 'config',
      message: expect.stringContaining('holds no table of this program'),
    });
  });
});
