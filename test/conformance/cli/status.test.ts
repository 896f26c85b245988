import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { subtractAge } from '../../../src/cli/commands/prune.ts';
import { CliFixture, daysBack } from '../../support/processes/cli-child.ts';
import { query } from '../../support/targets/query.ts';

let fixture: CliFixture;
beforeAll(async () => {
  fixture = await CliFixture.start();
});
afterAll(() => fixture.close());

const json = async (...words: string[]) => JSON.parse((await fixture.run([...words, '--json'])).stdout);

describe('a place over its life', () => {
  it('is planned by sync --dry-run, which sends and stores nothing', async () => {
    const argv = ['sync', 'duckdb', fixture.file, '--dry-run', '--config', fixture.config()];
    const { code, stdout } = await fixture.run(argv);
    expect([code, stdout]).toEqual([0, expect.stringContaining('6 days, ')]);
    expect(existsSync(fixture.file)).toBe(false);
    expect(fixture.sim.requests()).toEqual([]);
  });

  it('has a status: days, cursor and last run, for people and for scripts', async () => {
    expect((await fixture.run(['status', 'duckdb', fixture.file])).code).toBe(2);
    expect((await fixture.sync()).code).toBe(0);
    const { stdout } = await fixture.run(['status', 'duckdb', fixture.file]);
    expect(stdout).toContain(`in 6 days from ${daysBack(7)} to ${daysBack(2)}`);
    expect(stdout).toContain(`Next sync begins at: ${daysBack(1)}`);
    expect(stdout).toMatch(/Last run: .* UTC, exit 0, /);
    expect(await json('status', 'duckdb', fixture.file)).toMatchObject({
      ...{ v: 1, days: 6, cursor: daysBack(1), gaps: [], open_days: [], pruned_days: [], implausible_days: [] },
      last_run: { exit: 0, days: 6 },
    });
    const runs =
      "SELECT exit_code, cause, version <> '' AS has_version, rows, days, began <= ended AS ends FROM _dfinery_runs";
    const rows = `${fixture.sim.countRows({ from: daysBack(7), to: daysBack(2) })}`;
    expect(await query(fixture.file, runs)).toEqual([
      { exit_code: 0, cause: null, has_version: true, rows, days: '6', ends: true },
    ]);
  });

  it('loses old days by prune, after a plan, and says so', async () => {
    const prune = ['prune', 'duckdb', fixture.file, '--older-than', '5d'];
    expect(await json(...prune)).toMatchObject({ executed: false, days: [daysBack(7), daysBack(6)] });
    expect((await json('status', 'duckdb', fixture.file)).pruned_days).toEqual([]);
    expect((await fixture.run([...prune, '--execute'])).stdout).toMatch(/^Removed 2 days before /);
    const status = await json('status', 'duckdb', fixture.file);
    const pruned_days = [daysBack(7), daysBack(6)];
    expect(status).toMatchObject({ cursor: daysBack(1), days: 4, first_day: daysBack(5), pruned_days });
    const { stdout } = await fixture.run(['status', 'duckdb', fixture.file]);
    expect(stdout).toContain(`Removed from the place: ${daysBack(7)} to ${daysBack(6)}\n`);
    expect((await fixture.run(prune)).stdout).toMatch(/^Nothing to remove: /);
    const ancient = await fixture.run(['prune', 'duckdb', fixture.file, '--older-than', '99999mo']);
    expect(ancient).toMatchObject({ code: 2, stderr: expect.stringContaining('four digits at most') });
    expect((await fixture.run(['verify', 'duckdb', fixture.file])).code).toBe(0);
  });
});

it.each([
  ['2026-03-31', 1, 'mo', '2026-02-28'],
  ['2026-01-15', 25, 'mo', '2023-12-15'],
  ['2026-03-01', 2, 'w', '2026-02-15'],
  ['2026-03-01', 1, 'd', '2026-02-28'],
] as const)('the day %s less %i %s is %s', (today, amount, unit, day) => {
  expect(subtractAge(today, { amount, unit })).toBe(day);
});

it('a status names the days that the last run has lost in its cause, although on_gap fail records none', async () => {
  const file = join(fixture.dir, 'lost.duckdb');
  const early = fixture.config({ end_date: daysBack(6) });
  expect((await fixture.run(['sync', 'duckdb', file, '--config', early])).code).toBe(0);
  const later = await CliFixture.start({ days: { history_days: 3 } });
  const config = later.config({ history_days: 3 });
  const { code } = await later.run(['sync', 'duckdb', file, '--config', config]);
  await later.close();
  expect(code).toBe(4);
  const argv = ['status', 'duckdb', file, '--config', fixture.config({ history_days: 3 })];
  const cause = expect.stringContaining(`would be lost: ${daysBack(5)} to `);
  expect(await json(...argv)).toMatchObject({ cursor: daysBack(5), gaps: [], last_run: { exit: 4, cause } });
});
