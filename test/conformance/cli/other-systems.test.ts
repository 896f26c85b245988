import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, onTestFinished } from 'vitest';
import { STATEFUL_TARGETS } from '../../../src/targets/targets.ts';
import { json, SUCCESS, startDeletionServer } from '../../support/erasure/deletions.ts';
import { CliFixture, daysBack } from '../../support/processes/cli-child.ts';
import { DEAD_PID, ownerText } from '../../support/processes/lock-owner.ts';
import { TOKENS } from '../../support/service/start-service.ts';

const PRELOAD = join(import.meta.dirname, '../../support/processes/other-system.cjs');
const WANTED = { from: daysBack(7), to: daysBack(2) };

let fixture: CliFixture;
beforeEach(async () => {
  fixture = await CliFixture.start();
});
afterEach(() => fixture.close());

const runOn = (system: string, argv: readonly string[]) =>
  fixture.start(argv, { SYSTEM: system, NODE_OPTIONS: `--require=${PRELOAD}` }).ended;

it.for(STATEFUL_TARGETS.flatMap(({ name }) => ['windows', 'share'].map((system) => ({ name, system }))))(
  'loads $name where files behave as on $system, and loads it again',
  async ({ name, system }) => {
    const place = join(fixture.dir, name);
    const argv = fixture.syncInto(name, place, {});
    const first = await runOn(system, argv);
    const second = await runOn(system, [...argv, '--full-refresh']);
    for (const { code, stdout, stderr } of [first, second]) {
      expect(code, stderr).toBe(0);
      expect(JSON.parse(stdout).rows).toBe(fixture.sim.countRows(WANTED));
    }
    expect(first.stderr.match(/keeps no modes/g) ?? []).toHaveLength(system === 'share' ? 1 : 0);
  },
);

it('erases with a ledger in a folder that keeps no modes, and warns once', async () => {
  expect((await fixture.sync()).code).toBe(0);
  const ledger = join(fixture.dir, 'ledger');
  mkdirSync(ledger);
  const server = await startDeletionServer(({ url }, response) =>
    url.includes('/export/') ? json(response, { message: 'not_found' }, 404) : json(response, SUCCESS),
  );
  onTestFinished(() => server.close());
  const config = fixture.config({
    base_url: server.url,
    erasure: { import_token: TOKENS.import, ledger_dir: ledger },
  });
  const erase = ['forget', '--config', config, '--json'];
  const argv = [...erase, '--in', 'duckdb', fixture.file, '--by-column', 'df_unified_id', '--id', 'nobody'];
  const plan = await runOn('share', argv);
  expect(plan.code, plan.stderr).toBe(0);
  const { hash } = JSON.parse(plan.stdout.trimEnd().split('\n').at(-1) ?? '');
  // The second run reads the keys that the first has made.
  for (let run = 1; run <= 2; run++) {
    const { code, stderr } = await runOn('share', [...argv, '--execute', '--confirm', hash]);
    expect(code, stderr).toBe(0);
    expect(stderr.match(/keeps no modes/g)).toHaveLength(1);
  }
});

it('compacts a DuckDB file where no open file can be replaced', async () => {
  expect((await fixture.sync()).code).toBe(0);
  const { code, stderr } = await runOn('windows', ['compact', 'duckdb', fixture.file]);
  expect(code, stderr).toBe(0);
  expect(await fixture.rows()).toBe(fixture.sim.countRows(WANTED));
});

it('without /proc, a lock of this host is free once no process has the id of its owner', async () => {
  const place = join(fixture.dir, 'lake');
  mkdirSync(join(place, '_dfinery'), { recursive: true });
  const lock = join(place, '_dfinery', 'lock');
  const argv = fixture.syncInto('parquet', place, { lock_wait: '10ms' });
  writeFileSync(lock, ownerText({ pidSpace: '', started: '' }));
  expect(await runOn('macos', argv)).toMatchObject({
    code: 3,
    stderr: expect.stringContaining('is in use by process'),
  });
  writeFileSync(lock, ownerText({ pid: DEAD_PID, pidSpace: '', started: '' }));
  expect((await runOn('macos', argv)).code).toBe(0);
});
