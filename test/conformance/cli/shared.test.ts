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
