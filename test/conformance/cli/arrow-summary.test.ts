import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { tableFromIPC } from 'apache-arrow';
import { afterEach, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { Secret } from '../../../src/base/secrets.ts';
import { SuppressionList } from '../../../src/erasure/suppression-list.ts';
import { CliFixture, daysBack } from '../../support/processes/cli-child.ts';
import { onDay, refusal } from '../../support/service/faults.ts';

let fixture: CliFixture;
afterEach(() => fixture.close());

const KEY = 'a suppression key of 32 characters';

async function sync(env: Readonly<Record<string, string>>) {
  const out = join(fixture.dir, 'events.arrows');
  const { code, stdout } = await fixture.run(['sync', 'arrow', out, '--json', '--config', fixture.config()], env);
  return { code, out, summary: JSON.parse(stdout) };
}

it('the summary of an unfinished Arrow file counts no rows', async () => {
  fixture = await CliFixture.start({ fault: onDay(daysBack(7), refusal(401)) });
  const { code, out, summary } = await sync({});
  expect(code).toBe(2);
  expect(existsSync(out)).toBe(false);
  expect(summary).toMatchObject({ exit: 2, rows: 0, days: 0, next_from_date: null });
  expect(summary.bytes).toBeGreaterThan(0);
});

it('a stream with a given schema that fails warns of the cells of its days that did not fit', async () => {
  fixture = await CliFixture.start({ fault: onDay(daysBack(5), refusal(401)) });
  const schema = join(fixture.dir, 'schema.json');
  writeFileSync(schema, JSON.stringify({ columns: [{ source: 'level', type: 'long' }] }));
  const { code, stderr } = await fixture.start(fixture.syncInto('arrow', '-', {}, ['--schema', schema])).ended;
  expect([code, stderr]).toEqual([2, expect.stringMatching(/column level: \d+ cells? not of its type/)]);
});

it('the summary of an Arrow stream names each column once, and counts the suppressed rows', async () => {
  fixture = await CliFixture.start();
  const whole = await sync({});
  expect([whole.code, whole.summary.suppressed_rows]).toEqual([0, 0]);
  expect(whole.summary.columns_added).toEqual([...new Set(whole.summary.columns_added)]);
  const ids = tableFromIPC(readFileSync(whole.out)).getChild('df_unified_id')?.toArray() ?? [];
  const id = String([...ids].find((one) => one !== null && one !== ''));
  const count = [...ids].filter((one) => one === id).length;
  const list = join(fixture.dir, 'list.jsonl');
  const suppressionList = SuppressionList.of({ suppressionFile: list, suppressionKey: new Secret(KEY) });
  await suppressionList?.add([id], { clock: systemClock });
  const { summary } = await sync({ DFINERY_SUPPRESSION_FILE: list, DFINERY_SUPPRESSION_KEY: KEY });
  expect(summary).toMatchObject({ suppressed_rows: count, rows: whole.summary.rows - count });
});
