import { describe, expect, it } from 'vitest';
import { CliBench, daysBack, summaryIn } from '../../support/processes/cli-child.ts';
import { query } from '../../support/targets/query.ts';
import { until } from '../../support/wait.ts';

const WANTED = { from: daysBack(7), to: daysBack(2) };

async function withBench(scenario: unknown, work: (bench: CliBench) => Promise<void>): Promise<void> {
  const bench = await CliBench.start(scenario);
  try {
    await work(bench);
  } finally {
    await bench.close();
  }
}

/** Windows are whole: the rows of each receipt are there, and the cursor is behind the last of them. */
async function holdsWholeWindows(bench: CliBench, windows: number): Promise<void> {
  expect(await bench.verify()).toEqual([]);
  const [state] = await query(
    bench.file,
    "SELECT state->>'from_date' AS day, (SELECT count(*)::INTEGER FROM _dfinery_windows) AS n FROM _dfinery_state",
  );
  expect(state).toEqual({ day: daysBack(7 - windows), n: windows });
  expect(await bench.rows()).toBe(bench.sim.countRows({ from: daysBack(7), to: daysBack(8 - windows) }));
}

const stallAt = (nth: number | number[]) => ({ kind: 'stall', at: 'mid_row', after_rows: 20, when: { nth } });
const stalled = (bench: CliBench) => bench.sim.requests().some(({ fault, done }) => fault === 'stall' && !done);

describe.concurrent('a stop', () => {
  it.each(['SIGTERM', 'SIGINT'] as const)(
    'by %s in a download ends within 5 s, by it, with whole windows [R43]',
    (signal) =>
      withBench({ faults: [stallAt(4)] }, async (bench) => {
        const child = bench.start(bench.syncArgs({ max_concurrent_exports: 1 }, ['--log-level', 'debug']));
        await child.says('is committed', 3);
        await until(() => stalled(bench));
        child.process.kill(signal);
        const ended = await child.ended;
        expect([ended.code, ended.signal]).toEqual([null, signal]);
        // Its own watch ends it after 4.5 s without another word: what it says, it said in time.
        expect(ended.stderr).toContain(`stopped by ${signal}`);
        expect(summaryIn(ended)).toMatchObject({ windows: 3, next_from_date: daysBack(4) });
        await holdsWholeWindows(bench, 3);
        const next = await bench.sync();
        expect(next.code, next.stderr).toBe(0);
        expect(await bench.rows()).toBe(bench.sim.countRows(WANTED));
        expect(bench.spooled()).toEqual([]);
      }),
  );

  it('by SIGKILL leaves a spool that the next run removes; that of a living run it does not', () =>
    withBench({ faults: [stallAt(2)] }, async (bench) => {
      const config = { max_concurrent_exports: 2 };
      const dead = bench.start(bench.syncArgs(config, ['--log-level', 'debug']));
      await dead.says('is committed');
      await until(() => stalled(bench) && bench.spooled().some((name) => name.endsWith('.part')));
      dead.process.kill('SIGKILL');
      await dead.ended;
      expect(bench.spooled().filter((name) => name.endsWith('.part')).length).toBeGreaterThan(0);
      await until(() => !stalled(bench));
      bench.sim.setScenario({ faults: [stallAt(2)] });
      const living = bench.start(['sync', 'duckdb', `${bench.dir}/living.duckdb`, '--config', bench.config(config)]);
      await until(() => stalled(bench));
      const third = await bench.sync(config);
      expect(third.code, third.stderr).toBe(0);
      const left = new Set(bench.spooled().map((name) => name.slice(0, 17)));
      expect(left.size, 'the spool of the living run alone').toBe(1);
      living.process.kill('SIGTERM');
      expect((await living.ended).signal).toBe('SIGTERM');
      expect(await bench.rows()).toBe(bench.sim.countRows(WANTED));
    }));

  it('by a signal ends a wait for the quota and a wait for a lock at once', () =>
    withBench({ limits: { exports_per_hour: 2 } }, async (bench) => {
      const waiting = bench.start(bench.syncArgs({}, ['--log-level', 'debug']));
      await waiting.says('The limit of exports is reached');
      await waiting.says('is committed', 2);
      const locked = bench.start(['sync', 'duckdb', bench.file, '--config', bench.config({ lock_wait: '1h' })]);
      await new Promise((resolve) => setTimeout(resolve, 1_500));
      locked.process.kill('SIGINT');
      expect((await locked.ended).signal).toBe('SIGINT');
      waiting.process.kill('SIGTERM');
      const ended = await waiting.ended;
      expect([ended.signal, ended.stderr]).toEqual(['SIGTERM', expect.stringContaining('stopped by SIGTERM')]);
      await holdsWholeWindows(bench, 2);
    }));
});
