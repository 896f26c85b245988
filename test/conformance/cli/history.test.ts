import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CliFixture, daysBack } from '../../support/processes/cli-child.ts';
import { query } from '../../support/targets/query.ts';

let fixture: CliFixture;
beforeEach(async () => {
  fixture = await CliFixture.start();
});
afterEach(() => fixture.close());

const RUNS = `SELECT exit_code, cause, version <> '' AS has_version, rows, days, exports, began <= ended AS is_in_order
  FROM _dfinery_runs ORDER BY began`;

describe('the runs of a target', () => {
  it('are kept in a DuckDB file for every exit code', async () => {
    expect((await fixture.sync()).code).toBe(0);
    expect((await fixture.sync({ export_token: 'wrong', end_date: daysBack(1) })).code).toBe(2);
    const found = await query(fixture.file, RUNS);
    expect(found.map(({ exit_code }) => exit_code)).toEqual([0, 2]);
    expect(found.every(({ is_in_order, has_version }) => is_in_order === true && has_version === true)).toBe(true);
    expect(found[0]).toMatchObject({ cause: null, days: '6' });
    expect(Number(found[0].rows)).toBe(fixture.sim.countRows({ from: daysBack(7), to: daysBack(2) }));
    expect(found[1].cause).toMatch(/token/i);
    expect(String(found[1].cause)).not.toContain('wrong');
  });

  it.each(['parquet', 'delta'])('are kept beside the files of %s: the last one', async (target) => {
    const dir = join(fixture.dir, 'lake');
    const path = join(dir, target === 'delta' ? '_dfinery/last-run.json' : '_dfinery.json');
    const sync = (more: Record<string, unknown> = {}) => fixture.run(fixture.syncInto(target, dir, more));
    const lastRun = () => {
      const state = JSON.parse(readFileSync(path, 'utf8'));
      return target === 'delta' ? state : state.last_run;
    };
    expect((await sync()).code).toBe(0);
    expect(lastRun()).toMatchObject({ exitCode: 0, days: 6, cause: null });
    expect((await sync({ export_token: 'wrong', end_date: daysBack(1) })).code).toBe(2);
    expect(lastRun()).toMatchObject({ exitCode: 2, cause: expect.stringMatching(/token/i) });
  });
});
