import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { CliBench, CliChild } from '../../support/processes/cli-child.ts';

const EXAMPLE = join(import.meta.dirname, '../../../examples/library/load.mjs');

let bench: CliBench;
beforeAll(async () => {
  bench = await CliBench.start();
});
afterAll(() => bench.close());

it('the program of examples/library loads an export, and nothing the second time [R762]', async () => {
  const argv = [EXAMPLE, bench.config({ lookback_days: 0 }), bench.file];
  const run = () => new CliChild(process.execPath, argv, { TMPDIR: bench.dir }).ended;
  const first = await run();
  expect([first.code, first.stderr]).toEqual([0, '']);
  expect(first.stdout).toMatch(/^[1-9]\d* rows in 6 windows\n$/);
  const verified = await bench.start(['verify', 'duckdb', bench.file]).ended;
  expect([verified.code, verified.stdout]).toEqual([0, `${bench.file} agrees with its receipts.\n`]);
  expect((await run()).stdout).toBe('0 rows in 0 windows\n');
});
