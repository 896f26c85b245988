import { expect, it, onTestFinished } from 'vitest';
import { CliFixture } from '../../support/processes/cli-child.ts';
import { FakeS3 } from '../../support/targets/fake-s3.ts';

const URL = 's3://bucket/lake';

it('a bucket is loaded and verified without SDK output on stderr, and a refusal is one sentence', async () => {
  const [fixture, s3] = [await CliFixture.start(), await FakeS3.start()];
  onTestFinished(() => fixture.close());
  onTestFinished(() => s3.close());
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
