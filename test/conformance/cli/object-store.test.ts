import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CliFixture, daysBack, summaryIn } from '../../support/processes/cli-child.ts';
import { onDay, STALL } from '../../support/service/faults.ts';
import { FakeS3 } from '../../support/targets/fake-s3.ts';
import { until } from '../../support/wait.ts';

let fixture: CliFixture;
let s3: FakeS3;
beforeEach(async () => {
  fixture = await CliFixture.start();
  s3 = await FakeS3.start();
});
afterEach(async () => {
  await fixture.close();
  await s3.close();
});

const URL = 's3://bucket/lake';

describe('a target in a bucket', () => {
  it('is loaded and verified without SDK output on stderr; a refusal is one sentence with its exit code', async () => {
    // A process of its own: the SDK's chain reads its environment.
    const run = (argv: readonly string[], env = {}) => fixture.start(argv, { ...s3.env, ...env }).ended;
    const sync = ['sync', 'delta', URL, '--config', fixture.config(), '--json', '--log-level', 'warn'];
    const loaded = await run(sync);
    expect([loaded.code, loaded.stderr]).toEqual([0, '']);
    expect(JSON.parse(loaded.stdout)).toMatchObject({ days: 6, exit: 0, error: null });
    const verified = await run(['verify', 'delta', URL]);
    expect([verified.code, verified.stderr]).toEqual([0, '']);
    const keys = [...s3.objects.keys()];
    expect(keys.filter((key) => key.startsWith('lake/_dfinery/'))).toEqual(['lake/_dfinery/last-run.json']);
    const wrong = await run(sync, { AWS_ACCESS_KEY_ID: 'somebody' });
    expect([wrong.code, wrong.stderr.trim().split('\n').length]).toEqual([2, 1]);
    expect(wrong.stderr).toContain('refused a request (403 InvalidAccessKeyId');
    expect([...s3.objects.keys()]).toEqual(keys);
  }, 60_000);

  it('remembers how a stopped run ended', async () => {
    const run = (argv: readonly string[]) => fixture.start(argv, s3.env);
    expect((await run(fixture.syncInto('delta', URL, { end_date: daysBack(3) })).ended).code).toBe(0);
    fixture.sim.setScenario({ fault: onDay(daysBack(2), STALL) });
    const child = run(fixture.syncInto('delta', URL, {}));
    await until(() => fixture.sim.isStalled);
    child.process.kill('SIGTERM');
    expect((await child.ended).stderr).not.toContain('could not be recorded');
    const { last_run } = summaryIn(await run(['status', 'delta', URL, '--json']).ended);
    expect(last_run).toMatchObject({ exit: 143, cause: expect.stringContaining('stopped by SIGTERM') });
  }, 60_000);
});
