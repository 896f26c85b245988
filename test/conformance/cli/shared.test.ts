import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { CliFixture, daysBack, summaryIn } from '../../support/processes/cli-child.ts';

let fixture: CliFixture;
afterEach(() => fixture.close());

it('two runs load one file at the same time, and it is locked only while one commits', async () => {
  fixture = await CliFixture.start();
  const runs = [0, 1].map(() => fixture.start(fixture.syncArgs()));
  for (const { ended } of runs) {
    const { code, stderr } = await ended;
    expect(code, stderr).toBe(0);
  }
  expect(await fixture.verify()).toEqual([]);
  expect(await fixture.rows()).toBe(fixture.sim.countRows({ from: daysBack(7), to: daysBack(2) }));
});

it('three processes that a scheduler limits export at the same time, each day once', async () => {
  fixture = await CliFixture.start({}, { latencyMs: 30, rowsPerDay: 40 });
  const config = fixture.config({ start_date: daysBack(13), max_concurrent_exports: 1 });
  const files = ['a', 'b', 'c'].map((name) => join(fixture.dir, `${name}.duckdb`));
  const children = files.map((file) => fixture.start(['sync', 'duckdb', file, '--config', config, '--json']));
  for (const child of children) {
    const ended = await child.ended;
    expect(ended.code, ended.stderr).toBe(0);
    expect(summaryIn(ended)).toMatchObject({ days: 12, exports: 12 });
  }
  expect(fixture.sim.requests().map(({ status }) => status)).toEqual(Array(36).fill(200));
  const wanted = fixture.sim.countRows({ from: daysBack(13), to: daysBack(2) });
  for (const file of files) expect(await fixture.rows(file)).toBe(wanted);
});

it('--max-wait commits what was downloaded, exits with 3, and the next hour continues', async () => {
  fixture = await CliFixture.start({ limits: { exports_per_hour: 4 } });
  const ended = await fixture.sync({}, ['--max-wait', '30s']);
  expect(ended.code, ended.stderr).toBe(3);
  expect(ended.stderr).toMatch(/limit of exports is reached.*longer than this run waits/);
  expect(summaryIn(ended)).toMatchObject({ days: 3, exports: 4, next_from_date: daysBack(4) });
  expect(await fixture.verify()).toEqual([]);
  const again = await fixture.sync({}, ['--max-wait', '30s']);
  expect([again.code, summaryIn(again).days]).toEqual([3, 0]);
});
