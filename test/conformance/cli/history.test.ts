import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CliBench, daysBack } from '../../support/processes/cli-child.ts';
import { query } from '../../support/targets/query.ts';
import { until } from '../../support/wait.ts';

let bench: CliBench;
beforeEach(async () => {
  bench = await CliBench.start();
});
afterEach(() => bench.close());

const RUNS = `SELECT exit_code, cause, version <> '' AS has_version, rows, windows, exports, ended IS NOT NULL AS is_ended,
  began <= coalesce(ended, began) AS is_in_order FROM _dfinery_runs ORDER BY began`;

/** A run that is killed while it waits for an export that never begins. */
async function killedRun(target: readonly string[]) {
  bench.sim.setScenario({ faults: [{ kind: 'stall', after_rows: 1, when: { operation: 'export' } }] });
  const config = bench.config({ start_date: daysBack(7), end_date: daysBack(1) });
  const child = bench.start(['sync', ...target, '--config', config, '--log-level', 'debug']);
  const asked = bench.sim.requests().length;
  await until(() => bench.sim.requests().length > asked);
  child.process.kill('SIGKILL');
  await child.ended;
  bench.sim.setScenario({ faults: [] });
}

describe('the runs of a target', () => {
  it('are kept in a DuckDB file, each way out of them, and a killed one is told of by the next [R123]', async () => {
    expect((await bench.sync()).code).toBe(0);
    expect((await bench.sync({ export_token: 'wrong', end_date: daysBack(1) })).code).toBe(2);
    await killedRun(['duckdb', bench.file]);
    const next = await bench.sync();
    expect([next.code, next.stderr]).toEqual([0, expect.stringMatching(/The run before, begun at .*never ended/)]);
    const again = await bench.sync();
    expect(again.stderr).not.toMatch(/never ended/);
    const found = await query(bench.file, RUNS);
    expect(found.map(({ exit_code }) => exit_code)).toEqual([0, 2, null, 0, 0]);
    expect(found.map(({ is_ended }) => is_ended)).toEqual([true, true, false, true, true]);
    expect(found.every(({ is_in_order, has_version }) => is_in_order === true && has_version === true)).toBe(true);
    expect(found[0]).toMatchObject({ cause: null, windows: '6', exports: '6' });
    expect(Number(found[0].rows)).toBe(bench.sim.countRows({ from: daysBack(7), to: daysBack(2) }));
    expect(found[1].cause).toMatch(/token/i);
    expect(String(found[1].cause)).not.toContain('wrong');
  });

  it('are kept beside the manifest of a Parquet dataset [R123]', async () => {
    const dir = join(bench.dir, 'set');
    const sync = (more: Record<string, unknown> = {}) =>
      bench.run(['sync', 'parquet', dir, '--config', bench.config(more)]);
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
    expect((await bench.run(['verify', 'parquet', dir])).code).toBe(0);
  });

  it('are kept beside Delta tables, and shown by their page [R380][R381]', async () => {
    const [dir, page] = [join(bench.dir, 'lake'), join(bench.dir, 'report.html')];
    const sync = () => bench.run(['sync', 'delta', dir, '--config', bench.config()]);
    expect((await sync()).code).toBe(0);
    await killedRun(['delta', dir]);
    const last = await sync();
    expect([last.code, last.stderr]).toEqual([0, expect.stringMatching(/never ended: .*still at work/)]);
    const runs = join(dir, '_dfinery', 'runs');
    const found = readdirSync(runs).sort();
    expect(found.map((name) => name.endsWith('.begun.json'))).toEqual([false, true, false]);
    const { v, run } = JSON.parse(readFileSync(join(runs, found[0]), 'utf8'));
    expect([v, run]).toEqual([1, expect.objectContaining({ exitCode: 0, windows: 6, exports: 6, cause: null })]);
    expect((await bench.run(['report', 'delta', dir, '-o', page])).code).toBe(0);
    expect(readFileSync(page, 'utf8')).toContain('began and never ended');
    const plan = await bench.run(['plan', '--delta', dir, '--config', bench.config(), '--json']);
    expect(JSON.parse(plan.stdout).cursor).toBe(daysBack(1));
  });
});
