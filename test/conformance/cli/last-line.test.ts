import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CliFixture, PROGRAM } from '../../support/processes/cli-child.ts';
import { SERVICE_ID, TOKENS } from '../../support/service/simulator.ts';

describe('with --json', () => {
  let fixture: CliFixture;
  beforeAll(async () => {
    fixture = await CliFixture.start();
  });
  afterAll(() => fixture.close());

  /** Both streams into one pipe, as a container's log has them. */
  async function bothStreams(...argv: string[]): Promise<{ code: number | null; lines: string[] }> {
    const words = ['-c', 'exec "$@" 2>&1', 'sh', process.execPath, PROGRAM, ...argv];
    const child = spawn('sh', words, { env: { PATH: process.env.PATH, TMPDIR: fixture.dir } });
    let text = '';
    child.stdout.setEncoding('utf8').on('data', (part: string) => {
      text += part;
    });
    const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
    return { code, lines: text.trimEnd().split('\n') };
  }

  const forgetConfig = (): string => {
    const path = join(fixture.dir, 'forget.json');
    const erasure = { import_token: TOKENS.import, ledger_dir: join(fixture.dir, 'ledger') };
    const value = { base_url: fixture.sim.url, service_id: SERVICE_ID, erasure };
    writeFileSync(path, JSON.stringify(value));
    return path;
  };

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
    ['a plan to forget', 0, () => ['forget', '--id', 'x', '--json', '--config', forgetConfig()]],
    ['an Arrow file', 0, () => ['sync', 'arrow', join(fixture.dir, 'x.arrow'), '--json', '--config', fixture.config()]],
  ])('the last line of stdout and stderr together is the JSON, after %s', async (_name, wanted, argv) => {
    const { code, lines } = await bothStreams(...argv());
    expect([code, lines]).toEqual([wanted, expect.anything()]);
    expect(JSON.parse(lines.at(-1) ?? '')).toEqual(expect.any(Object));
    expect(lines.filter((line) => line.startsWith('{'))).toHaveLength(1);
  });
});
