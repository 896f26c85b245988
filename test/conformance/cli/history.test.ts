import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CliFixture, daysBack } from '../../support/processes/cli-child.ts';
import { query } from '../../support/targets/query.ts';
import { until } from '../../support/wait.ts';

let fixture: CliFixture;
beforeEach(async () => {
  fixture = await CliFixture.start();
});
afterEach(() => fixture.close());

const RUNS = `SELECT exit_code, cause, version <> '' AS has_version, rows, windows, exports, ended IS NOT NULL AS is_ended,
  began <= coalesce(ended, began) AS is_in_order FROM _dfinery_runs ORDER BY began`;

/** A run that is killed while it waits for an export that never begins. */
async function killedRun(target: readonly string[]) {
  fixture.sim.setScenario({ faults: [{ kind: 'stall', after_rows: 1, when: { operation: 'export' } }] });
  const config = fixture.config({ start_date: daysBack(7), end_date: daysBack(1) });
  const child = fixture.start(['sync', ...target, '--config', config, '--log-level', 'debug']);
  const asked = fixture.sim.requests().length;
  await until(() => fixture.sim.requests().length > asked);
  child.process.kill('SIGKILL');
  await child.ended;
  fixture.sim.setScenario({ faults: [] });
}

describe('the run history of a target', () => {
  it('is kept in a DuckDB file for every exit code, and the next run records a killed one', async () => {
    expect((await fixture.sync()).code).toBe(0);
    expect((await fixture.sync({ export_token: 'wrong', end_date: daysBack(1) })).code).toBe(2);
    await killedRun(['duckdb', fixture.file]);
    const next = await fixture.sync();
    expect([next.code, next.stderr]).toEqual([0, expect.stringMatching(/The run before, begun at .*never ended/)]);
    const again = await fixture.sync();
    expect(again.stderr).not.toMatch(/never ended/);
    const found = await query(fixture.file, RUNS);
    expect(found.map(({ exit_code }) => exit_code)).toEqual([0, 2, null, 0, 0]);
    expect(found.map(({ is_ended }) => is_ended)).toEqual([true, true, false, true, true]);
    expect(found.every(({ is_in_order, has_version }) => is_in_order === true && has_version === true)).toBe(true);
    expect(found[0]).toMatchObject({ cause: null, windows: '6', exports: '6' });
    expect(Number(found[0].rows)).toBe(fixture.sim.countRows({ from: daysBack(7), to: daysBack(2) }));
    expect(found[1].cause).toMatch(/token/i);
    expect(String(found[1].cause)).not.toContain('wrong');
  });

  it('is kept beside the manifest of a Parquet dataset', async () => {
    const dir = join(fixture.dir, 'set');
    const sync = (more: Record<string, unknown> = {}) =>
      fixture.run(['sync', 'parquet', dir, '--config', fixture.config(more)]);
    expect((await sync()).code).toBe(0);
    await killedRun(['parquet', dir]);
    const last = await sync();
    expect([last.code, last.stderr]).toEqual([0, expect.stringMatching(/never ended/)]);
    const folder = join(dir, '_dfinery', 'runs');
    const runs = readdirSync(folder)
      .sort()
      .map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')));
    expect(runs.map(({ v, run }) => [v, run.exitCode])).toEqual([
      [1, 0],
      [1, null],
      [1, 0],
    ]);
    expect(runs[0].run).toMatchObject({ windows: 6, exports: 6, cause: null });
    expect((await fixture.run(['verify', 'parquet', dir])).code).toBe(0);
  });

  it('is kept beside Delta tables and shown in the report page', async () => {
    const [dir, page] = [join(fixture.dir, 'lake'), join(fixture.dir, 'report.html')];
    const sync = () => fixture.run(['sync', 'delta', dir, '--config', fixture.config()]);
    expect((await sync()).code).toBe(0);
    await killedRun(['delta', dir]);
    const last = await sync();
    expect([last.code, last.stderr]).toEqual([0, expect.stringMatching(/never ended: .*still at work/)]);
    const runs = join(dir, '_dfinery', 'runs');
    const found = readdirSync(runs)
      .sort()
      .map((name) => JSON.parse(readFileSync(join(runs, name), 'utf8')));
    expect(found.map(({ run: { ended } }) => ended === null)).toEqual([false, true, false]);
    const [{ v, run }] = found;
    expect([v, run]).toEqual([1, expect.objectContaining({ exitCode: 0, windows: 6, exports: 6, cause: null })]);
    expect((await fixture.run(['report', 'delta', dir, '-o', page])).code).toBe(0);
    expect(readFileSync(page, 'utf8')).toContain('began and never ended');
    const plan = await fixture.run(['plan', 'delta', dir, '--config', fixture.config(), '--json']);
    expect(JSON.parse(plan.stdout).cursor).toBe(daysBack(1));
  });
});
