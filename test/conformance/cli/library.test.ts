import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { CliChild, CliFixture } from '../../support/processes/cli-child.ts';

const EXAMPLE = join(import.meta.dirname, '../../../examples/library/load.mjs');

let fixture: CliFixture;
beforeAll(async () => {
  fixture = await CliFixture.start();
});
afterAll(() => fixture.close());

it('the program in examples/library loads an export once, and a second run loads nothing', async () => {
  const argv = [EXAMPLE, fixture.config({ lookback_days: 0, erasure: { ledger_dir: 'ledger' } }), fixture.file];
  const run = () => new CliChild(process.execPath, argv, { TMPDIR: fixture.dir }).ended;
  const first = await run();
  expect([first.code, first.stderr]).toEqual([0, '']);
  expect(first.stdout).toMatch(/^[1-9]\d* rows; the next sync begins at /);
  const verified = await fixture.start(['verify', 'duckdb', fixture.file]).ended;
  expect([verified.code, verified.stdout]).toEqual([0, `${fixture.file} agrees with its receipts.\n`]);
  expect((await run()).stdout).toMatch(/^0 rows; /);
});
