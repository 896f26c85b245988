import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { noTableError } from '../../../src/targets/failures.ts';
import { CliFixture, daysBack, summaryIn } from '../../support/processes/cli-child.ts';
import { SeededRandom } from '../../support/seeded-random.ts';
import { compareRows, storedIn } from '../../support/targets/stored-rows.ts';

const KILLS = Number(process.env.CLI_KILLS ?? 4);
const ROWS = Number(process.env.CLI_ROWS ?? 250);
const RANGE = { from: daysBack(14), to: daysBack(2) };

describe('SIGKILL at any instant', () => {
  let fixture: CliFixture;
  beforeAll(async () => {
    fixture = await CliFixture.start({ limits: { exports_per_hour: 100_000 } }, { rowsPerDay: ROWS });
  });
  afterAll(() => fixture.close());

  it('loses no row, duplicates no row, and leaves a valid file', async () => {
    const config = { start_date: RANGE.from, end_date: RANGE.to, max_concurrent_exports: 3 };
    const random = new SeededRandom(KILLS);
    let [killed, needed, runs] = [0, 1_500, 0];
    while (killed < KILLS && runs++ < 4 * KILLS) {
      // Every day again: the work never runs out.
      const child = fixture.start(fixture.syncArgs(config, killed % 2 === 1 ? ['--full-refresh'] : []));
      const timer = delay(random.int(Math.min(300, needed / 2), needed));
      await Promise.race([child.ended, timer]);
      child.process.kill('SIGKILL');
      const ended = await child.ended;
      if (ended.signal === null) {
        // It was done before the signal came, be it by a millisecond.
        expect(ended.code, ended.stderr).toBe(0);
        needed = Math.max(50, Math.floor(ended.ms) - 100);
        continue;
      }
      expect(ended.signal).toBe('SIGKILL');
      killed++;
      const names = readdirSync(fixture.dir).filter((name) => name.startsWith('events.duckdb'));
      for (const name of names) expect(statSync(join(fixture.dir, name)).mode & 0o077, name).toBe(0);
      if (readdirSync(fixture.dir).includes('events.duckdb')) {
        const found = await fixture.verify().catch((error: Error) => error.message);
        if (found !== noTableError(fixture.file).message) expect(found).toEqual([]);
      }
    }
    const last = await fixture.sync(config);
    expect(last.code, last.stderr).toBe(0);
    expect(summaryIn(last)).toMatchObject({ next_from_date: daysBack(1), to_date_inclusive: true });
    const found = compareRows(await storedIn(fixture.file), fixture.sim.truth(RANGE), []);
    expect(found).toEqual({ missing: 0, doubled: 0, wrong: 0, strange: 0, examples: [] });
    expect(await fixture.verify()).toEqual([]);
    expect(fixture.spooled()).toEqual([]);
    expect(fixture.refused()).toBe(0);
    expect(killed).toBeGreaterThan(0);
  });
});
