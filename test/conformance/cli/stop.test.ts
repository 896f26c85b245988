import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CliFixture, daysBack, summaryIn } from '../../support/processes/cli-child.ts';
import { onNth, STALL } from '../../support/service/faults.ts';
import type { ScenarioPatch } from '../../support/service/test-service.ts';
import { query } from '../../support/targets/query.ts';
import { until } from '../../support/wait.ts';

const WANTED = { from: daysBack(7), to: daysBack(2) };

async function withFixture(scenario: ScenarioPatch, work: (fixture: CliFixture) => Promise<void>): Promise<void> {
  const fixture = await CliFixture.start(scenario);
  try {
    await work(fixture);
  } finally {
    await fixture.close();
  }
}

/** Days are whole: the rows of each receipt are there, and the cursor is behind the last of them. */
async function holdsWholeDays(fixture: CliFixture, days: number): Promise<void> {
  expect(await fixture.verify()).toEqual([]);
  const [state] = await query(
    fixture.file,
    "SELECT export_state->>'from_date' AS day, (SELECT count(*)::INTEGER FROM _dfinery_days) AS n FROM _dfinery_state",
  );
  expect(state).toEqual({ day: daysBack(7 - days), n: days });
  expect(await fixture.rows()).toBe(fixture.sim.countRows({ from: daysBack(7), to: daysBack(8 - days) }));
}

describe.concurrent('a stopped run', () => {
  it.each(['SIGTERM', 'SIGINT'] as const)(
    'ends within 5 s of %s during a download, by that signal, with whole days committed',
    (signal) =>
      withFixture({ fault: onNth(4, STALL) }, async (fixture) => {
        const child = fixture.start(fixture.syncArgs({ max_concurrent_exports: 1 }, ['--log-level', 'debug']));
        await child.says('is committed', 2);
        await until(() => fixture.sim.isStalled);
        child.process.kill(signal);
        const ended = await child.ended;
        expect([ended.code, ended.signal]).toEqual([null, signal]);
        // Its own watch ends it after 4.5 s without another word: what it says, it said in time.
        expect(ended.stderr).toContain(`stopped by ${signal}`);
        const exit = 128 + constants.signals[signal];
        expect(summaryIn(ended)).toMatchObject({ days: 2, next_from_date: daysBack(5), exit });
        await holdsWholeDays(fixture, 2);
        const next = await fixture.sync();
        expect(next.code, next.stderr).toBe(0);
        expect(await fixture.rows()).toBe(fixture.sim.countRows(WANTED));
        expect(fixture.spooled()).toEqual([]);
      }),
  );

  it('leaves its folder after SIGKILL; the next run removes it, and no folder of a live process', () =>
    withFixture({ fault: onNth(3, STALL) }, async (fixture) => {
      const config = { max_concurrent_exports: 2 };
      const dead = fixture.start(fixture.syncArgs(config, ['--log-level', 'debug']));
      await dead.says('is committed');
      await until(() => fixture.sim.isStalled && fixture.spooled().some((name) => name.endsWith('.csv')));
      dead.process.kill('SIGKILL');
      await dead.ended;
      expect(fixture.spooled().filter((name) => name.endsWith('.csv')).length).toBeGreaterThan(0);
      await until(() => !fixture.sim.isStalled);
      fixture.sim.setScenario({ fault: onNth(2, STALL) });
      const living = fixture.start(fixture.syncInto('duckdb', `${fixture.dir}/living.duckdb`, config));
      await until(() => fixture.sim.isStalled);
      const third = await fixture.sync(config);
      expect(third.code, third.stderr).toBe(0);
      const left = readdirSync(fixture.spool).filter((name) => name.startsWith('dfinery-spool-'));
      expect(left, 'the folder of the living run alone').toHaveLength(1);
      living.process.kill('SIGTERM');
      expect((await living.ended).signal).toBe('SIGTERM');
      expect(await fixture.rows()).toBe(fixture.sim.countRows(WANTED));
    }));

  it('stops waiting for the reader of a pipe at once, and leaves no folder', () =>
    withFixture({}, async (fixture) => {
      const pipe = join(fixture.dir, 'pipe');
      spawnSync('mkfifo', [pipe]);
      const waiting = fixture.start(fixture.syncInto('arrow', pipe, {}));
      await until(() => existsSync(fixture.spool) && fixture.spooled().length > 0);
      waiting.process.kill('SIGTERM');
      const ended = await waiting.ended;
      expect([ended.signal, ended.stderr]).toEqual(['SIGTERM', expect.stringContaining('stopped by SIGTERM')]);
      expect(fixture.spooled()).toEqual([]);
    }));
});
