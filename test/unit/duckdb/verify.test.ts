import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { verifyDuckDb } from '../../../src/targets/duckdb/read.ts';
import { csvOf } from '../../support/targets/csv.ts';
import { DuckDbFixture } from '../../support/targets/duckdb.ts';
import { query } from '../../support/targets/query.ts';

let fixture: DuckDbFixture;
beforeEach(async () => {
  fixture = new DuckDbFixture();
  await fixture.load([
    fixture.window('2026-01-01', csvOf([{ id: 'a', x: '1' }, { id: 'b' }])),
    fixture.window('2026-01-02', csvOf([{ id: 'b', x: '[1]' }, { id: 'c' }])),
  ]);
});
afterEach(() => fixture.close());

const verify = () => verifyDuckDb({ file: fixture.file, lockWaitMs: 0, clock: systemClock });

describe('verify', () => {
  it('finds nothing in loaded data', async () => {
    expect(await verify()).toEqual([]);
  });

  it.each([
    [
      "DELETE FROM events WHERE _key = 'a'",
      [{ check: 'rows', message: 'window 1 (2026-01-01 to 2026-01-01) should have 1 row of its 2, and has 0' }],
    ],
    [
      'UPDATE events SET _dfinery_window = 9 WHERE _dfinery_window = 2',
      [
        { check: 'rows', message: 'window 2 (2026-01-02 to 2026-01-02) should have 2 rows of its 2, and has 0' },
        { check: 'rows', message: '2 rows belong to window 9, which has no receipt' },
      ],
    ],
    ["UPDATE events SET _key = 'b' WHERE _key = 'c'", [{ check: 'keys', message: '1 keys occur more than once' }]],
    ["UPDATE events SET _key = NULL WHERE _key = 'c'", [{ check: 'keys', message: '1 row has no _key' }]],
    [
      `UPDATE _dfinery_state SET state = '{"version":1,"from_date":"2026-01-05"}'`,
      [{ check: 'days', message: 'the cursor is at 2026-01-05, but no receipt covers 2026-01-03 to 2026-01-04' }],
    ],
    [
      `UPDATE _dfinery_state SET state = '{"version":1,"from_date":"2026-01-05","gaps":["2026-01-03","2026-01-04"]}'`,
      [],
    ],
    ['ALTER TABLE events DROP COLUMN x', [{ check: 'columns', message: 'column x should be VARCHAR and is absent' }]],
    [
      'ALTER TABLE events ADD COLUMN y INTEGER',
      [{ check: 'columns', message: 'column y should be absent and is INTEGER' }],
    ],
  ])('reports %s', async (sql, differences) => {
    await query(fixture.file, sql);
    expect(await verify()).toEqual(differences);
  });

  it('reports a row that was removed from a window of which a later window holds other rows', async () => {
    await query(fixture.file, "DELETE FROM events WHERE _key = 'c'");
    await fixture.load([fixture.window('2026-01-02', csvOf([{ id: 'b', x: '[2]' }]))]);
    expect(await verify()).toEqual([
      { check: 'rows', message: 'window 2 (2026-01-02 to 2026-01-02) should have 1 row of its 2, and has 0' },
    ]);
  });

  it('refuses a missing or foreign file', async () => {
    await expect(verifyDuckDb({ file: `${fixture.file}.no`, lockWaitMs: 0, clock: systemClock })).rejects.toMatchObject(
      {
        exitCode: 2,
      },
    );
    await query(`${fixture.dir}/other`, 'CREATE TABLE events AS SELECT 1 AS x');
    await expect(
      verifyDuckDb({ file: `${fixture.dir}/other`, lockWaitMs: 0, clock: systemClock }),
    ).rejects.toMatchObject({ exitCode: 2 });
  });
});
