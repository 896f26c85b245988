import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { tableFromIPC } from 'apache-arrow';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { addDays, dayAt } from '../../../src/base/days.ts';
import { Secret } from '../../../src/base/secrets.ts';
import { suppressionFileOf, suppressPeople } from '../../../src/erasure/suppression.ts';
import { runHere } from '../../support/processes/command-line.ts';
import { type FaultRule, onDay, refusal } from '../../support/service/faults.ts';
import { SERVICE_ID, startTestSimulator, TOKENS } from '../../support/service/simulator.ts';
import type { TestService } from '../../support/service/test-service.ts';

let sim: TestService;
let folder: string;
const start = async (fault: FaultRule = () => undefined) => {
  sim = await startTestSimulator({ fault }, { clock: systemClock, rowsPerDay: 20 });
};
const back = (days: number) => addDays(dayAt(systemClock.now()), -days);
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'dfinery-arrow-summary-'));
});
afterEach(async () => {
  await sim.close();
  rmSync(folder, { recursive: true, force: true });
});

const KEY = 'a suppression key of 32 characters';

async function sync(env: Readonly<Record<string, string>>) {
  const out = join(folder, 'events.arrows');
  const given = {
    DFINERY_BASE_URL: sim.url,
    DFINERY_SERVICE_ID: SERVICE_ID,
    DFINERY_EXPORT_TOKEN: TOKENS.export,
    DFINERY_SPOOL_DIR: folder,
    DFINERY_START_DATE: back(8),
    DFINERY_END_DATE: back(5),
    ...env,
  };
  const { code, stdout } = await runHere(['sync', 'arrow', out, '--json'], { env: given });
  return { code, out, summary: JSON.parse(stdout) };
}

it('the summary of an unfinished Arrow file counts no rows', async () => {
  await start(onDay(back(7), refusal(401)));
  const { code, out, summary } = await sync({});
  expect(code).toBe(2);
  expect(existsSync(out)).toBe(false);
  expect(summary).toMatchObject({ exit: 2, rows: 0, days: 0, next_from_date: null });
  expect(summary.bytes).toBeGreaterThan(0);
});

it('the summary of an Arrow stream counts the suppressed rows', async () => {
  await start();
  const whole = await sync({});
  expect([whole.code, whole.summary.suppressed_rows]).toEqual([0, 0]);
  const ids = tableFromIPC(readFileSync(whole.out)).getChild('df_unified_id')?.toArray() ?? [];
  const id = String([...ids].find((one) => one !== null && one !== ''));
  const count = [...ids].filter((one) => one === id).length;
  const list = join(folder, 'list.jsonl');
  const file = suppressionFileOf({ suppressionFile: list, suppressionKey: new Secret(KEY) });
  await suppressPeople(new Map([[id, undefined]]), file ?? expect.fail(), { clock: systemClock });
  const { summary } = await sync({ DFINERY_SUPPRESSION_FILE: list, DFINERY_SUPPRESSION_KEY: KEY });
  expect(summary).toMatchObject({ suppressed_rows: count, rows: whole.summary.rows - count });
});
