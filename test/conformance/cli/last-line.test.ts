import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CliFixture } from '../../support/processes/cli-child.ts';
import { TOKENS } from '../../support/service/start-service.ts';

describe('with --json', () => {
  let fixture: CliFixture;
  beforeAll(async () => {
    fixture = await CliFixture.start();
  });
  afterAll(() => fixture.close());

  /** Both streams in one pipe, as a container's log has them. */
  const BOTH_STREAMS = ['sh', '-c', 'exec "$@" 2>&1', 'sh'];

  const toAnother = (config: Record<string, unknown>): string[] => {
    const file = join(fixture.dir, 'another.duckdb');
    return ['sync', 'duckdb', file, '--json', '--config', fixture.config(config)];
  };

  it.each([
    ['a sync that commits', 0, () => fixture.syncArgs()],
    ['a wrong token', 2, () => toAnother({ export_token: 'wrong' })],
    ['a service that is down', 3, () => toAnother({ base_url: 'http://127.0.0.1:9' })],
    ['a place that is not there', 2, () => ['status', 'duckdb', join(fixture.dir, 'none.duckdb'), '--json']],
    [
      'a plan with a warning',
      0,
      () => ['plan', 'duckdb', join(fixture.dir, 'none.duckdb'), '--json', '--config', fixture.config()],
    ],
    [
      'a plan to forget',
      0,
      () => ['forget', '--id', 'x', '--json', '--config', fixture.config({ erasure: { import_token: TOKENS.import } })],
    ],
    ['an Arrow file', 0, () => ['sync', 'arrow', join(fixture.dir, 'x.arrow'), '--json', '--config', fixture.config()]],
  ])('the last line of stdout and stderr together is the JSON, after %s', async (_name, wanted, argv) => {
    const { code, stdout } = await fixture.startWords(BOTH_STREAMS, argv()).ended;
    const lines = stdout.trimEnd().split('\n');
    expect([code, lines]).toEqual([wanted, expect.anything()]);
    expect(JSON.parse(lines.at(-1) ?? '')).toEqual(expect.any(Object));
    expect(lines.filter((line) => line.startsWith('{'))).toHaveLength(1);
  });
});
