import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { withFile } from '../../../src/engine/session/open.ts';
import { queryDuckDb } from '../../../src/targets/duckdb/query.ts';
import { csvOf } from '../../support/targets/csv.ts';
import { DuckDbFixture } from '../../support/targets/duckdb.ts';
import { attachElsewhere } from '../../support/targets/query.ts';

let fixture: DuckDbFixture;
beforeEach(async () => {
  fixture = new DuckDbFixture();
  await fixture.load([fixture.window('2026-01-01', csvOf([{ id: 'a', n: '1' }, { id: 'b' }]))]);
});
afterEach(() => fixture.close());

const ask = (...queries: string[]) => queryDuckDb({ file: fixture.file, lockWaitMs: 0, clock: systemClock }, queries);

describe('a query of a DuckDB file', () => {
  it('returns names, types and rows, as texts and as values', async () => {
    const [first, second] = await ask(
      `SELECT _key, n, DATE '2026-01-05' AS day, TIMESTAMP '2026-01-05 10:00:00' AS at, TRUE AS ok FROM events ORDER BY _key`,
      'SELECT count(*) AS many FROM events',
    );
    expect(first.header).toEqual(['_key', 'n', 'day', 'at', 'ok']);
    expect(first.types).toEqual(['VARCHAR', 'BIGINT', 'DATE', 'TIMESTAMP', 'BOOLEAN']);
    expect(first.rows).toEqual([
      ['a', '1', '2026-01-05', '2026-01-05T10:00:00.000Z', 'true'],
      ['b', '', '2026-01-05', '2026-01-05T10:00:00.000Z', 'true'],
    ]);
    expect(first.values.map(([key, n]) => [key, n])).toEqual([
      ['a', 1n],
      ['b', null],
    ]);
    expect(second.rows).toEqual([['2']]);
  });

  it('must be one SELECT: no other statement is executed', async () => {
    const refused = { exitCode: 2, message: expect.stringContaining('not one SELECT statement') };
    for (const sql of ['DELETE FROM events', 'SELECT 1; SELECT 2', ' ', '', 'SHOW TABLES', 'PRAGMA database_list']) {
      await expect(ask(sql), sql).rejects.toMatchObject(refused);
    }
    for (const sql of ['-- mine\nSELECT 1', '/* mine */ (SELECT 1)', 'FROM range(1)', 'values (1)']) {
      expect(await ask(sql), sql).toHaveLength(1);
    }
    expect(await fixture.query('SELECT count(*) AS n FROM events')).toEqual([{ n: '2' }]);
  });

  it('that is invalid is refused with the message of DuckDB', async () => {
    await expect(ask('SELECT nothing FROM events')).rejects.toMatchObject({
      exitCode: 2,
      message: expect.stringMatching(/^The query is not usable: .*nothing.*$/),
    });
  });

  it('reads no other file', async () => {
    const other = join(fixture.dir, 'other.csv');
    writeFileSync(other, 'x\n1\n');
    await expect(ask(`SELECT * FROM '${other}'`)).rejects.toMatchObject({
      exitCode: 2,
      message: expect.stringContaining('not usable'),
    });
  });

  it('writes nothing, and removes none of the temporary files of a running purge', async () => {
    writeFileSync(`${fixture.file}.rewriting`, 'half');
    await ask('SELECT 1');
    expect(readFileSync(`${fixture.file}.rewriting`, 'utf8')).toBe('half');
  });

  it('lets other processes read the file meanwhile, and follows one of the same process', async () => {
    const options = { file: fixture.file, lockWaitMs: 30_000, clock: systemClock };
    const two = await withFile({ ...options, readOnly: true }, async () => {
      expect(attachElsewhere(fixture.file, 'READ_ONLY')).toBe('');
      expect(attachElsewhere(fixture.file)).toContain('Could not set lock on file');
      return [queryDuckDb(options, ['SELECT 2 AS x'])] as const;
    });
    expect((await two[0])[0].values).toEqual([[2]]);
  });

  it('creates no file', async () => {
    const file = join(fixture.dir, 'none.duckdb');
    const asked = queryDuckDb({ file, lockWaitMs: 0, clock: systemClock }, ['SELECT 1']);
    await expect(asked).rejects.toMatchObject({ exitCode: 2, message: `${file} does not exist.` });
  });
});
