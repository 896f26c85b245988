import { appendFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { addDays } from '../../src/base/days.ts';
import { START } from './common.ts';
import type { Outcome } from './execution.ts';
import { twoCuts } from './faults.ts';
import type { Effect } from './machine/process.ts';
import type { StoredTarget } from './places.ts';
import type { TestCase } from './test-case.ts';

vi.mock('node:fs', async () => (await import('./machine/disk.ts')).simulatedFs);
vi.mock('node:fs/promises', async () => (await import('./machine/disk.ts')).simulatedFsPromises);
vi.mock('node:http', async () => (await import('./machine/network.ts')).simulatedHttp);
vi.mock('node:crypto', async () => (await import('./machine/chance.ts')).simulatedCrypto);
vi.mock('../../src/fs/process-identity.ts', async (original) => {
  const real = await original<typeof import('../../src/fs/process-identity.ts')>();
  const { simulatedIdentity, simulatedLiveness } = await import('./machine/identity.ts');
  type Identity = Parameters<typeof simulatedLiveness>[0];
  return {
    ...real,
    OWN_IDENTITY: simulatedIdentity(real.OWN_IDENTITY),
    livenessOf: (one: Identity) => simulatedLiveness(one) ?? real.livenessOf(one),
  };
});

const { installMachine } = await import('./machine/index.ts');
const { execute } = await import('./execution.ts');
const { testCase } = await import('./test-case.ts');
const { actionOf, stepOf } = await import('./actions.ts');
const { caseOf } = await import('./fixed-cases.ts');
const { TARGET_NAMES } = await import('./places.ts');
installMachine();
await (await import('./command-line.ts')).loadCommands();

/** How many seeds, the first of them, and the path of shrinking that a failure has printed. */
const SEEDS = Number(process.env.SOAK_SEEDS ?? 2);
const FIRST = Number(process.env.SOAK_FIRST ?? 72);
const IS_SOAK = process.env.SOAK_SEEDS !== undefined;
const EARLY = Array.from({ length: 24 }, (_, i) => i + 1);
const PATH = process.env.SOAK_PATH;
const LOG = process.env.SOAK_LOG;
/** How long a failing test case is shrunk, ms. */
const SHRINK_MS = Number(process.env.SOAK_SHRINK_MS ?? 120_000);

interface Found {
  readonly first: Outcome;
  readonly failure: string | undefined;
}

/** Executes the test case of a seed; one that fails is shrunk as far as the time allows. */
async function outcomeOf(seed: number): Promise<Found> {
  let first: Outcome | undefined;
  let last: Outcome | undefined;
  const until = Date.now() + SHRINK_MS;
  const property = fc.asyncProperty(testCase, async (one) => {
    if (first !== undefined && Date.now() > until) return;
    const outcome = await execute(one);
    first ??= outcome;
    if (outcome.problems.length === 0) return;
    last = outcome;
    throw new Error(outcome.problems.join('\n'));
  });
  const result = await fc.check(property, {
    seed,
    numRuns: 1,
    unbiased: true,
    ...(PATH !== undefined && { path: PATH }),
  });
  if (first === undefined) throw new Error('no test case was executed');
  if (last === undefined) return { first, failure: undefined };
  const smallest = JSON.stringify(result.counterexample?.[0]);
  const target = process.env.SOAK_TARGET === undefined ? undefined : `--target ${process.env.SOAK_TARGET}`;
  const repeat = [seed, result.counterexamplePath, target].filter((one) => one !== undefined && one !== null).join(' ');
  const parts = [last.problems.join('\n'), last.history.join('\n'), smallest, `Repeat it: npm run soak -- ${repeat}`];
  return { first, failure: parts.join('\n\n') };
}

/** Executes a fixed test case, in which everything must hold; returns what was run. */
async function keepsPromises(one: TestCase): Promise<readonly string[]> {
  const { problems, history } = await execute(one);
  expect(problems, history.join('\n')).toEqual([]);
  return history;
}

describe('a simulation of one seed', () => {
  it.each(Array.from({ length: SEEDS }, (_, i) => FIRST + i))('seed %i keeps every promise', async (seed) => {
    const began = process.cpuUsage();
    const { failure, first } = await outcomeOf(seed);
    const { user, system } = process.cpuUsage(began);
    const { events, requests, kills } = first;
    const line = { seed, events, requests, kills, cpu_ms: Math.round((user + system) / 1_000), failure };
    if (LOG !== undefined) appendFileSync(LOG, `${JSON.stringify(line)}\n`);
    if (failure !== undefined) expect.unreachable(failure);
  });

  it('is identical for the same seed, event for event', async () => {
    const killed = actionOf('sync', { end: { how: 'kill', side: 'before', effect: 'store', nth: 3 } });
    const one = caseOf('delta', [stepOf([killed, actionOf('sync')])], { order: 5 });
    const first = await execute(one);
    expect(first).toMatchObject({ problems: [], kills: 1 });
    expect(await execute(one)).toEqual(first);
  });
});

describe('a full disk', () => {
  const runs = (IS_SOAK ? [0, 100, 600, 3_000] : [0, 600]).flatMap((disk) => [
    stepOf([actionOf('sync', { disk })]),
    stepOf([actionOf('forget', { disk, users: [2] })]),
  ]);

  it.each(TARGET_NAMES)(
    'ends sync %s and forget with exit code 3 for every failing write, and no data is lost',
    async (target) => {
      const history = await keepsPromises(caseOf(target, runs));
      expect(history).toContain(`sync ${target}: 3`);
      expect(history).toContain('forget execute: 3');
    },
  );
});

describe('a killed process', () => {
  const killedAfter = (what: 'sync' | 'forget', effect: Effect | 'any', nth: number) =>
    stepOf([actionOf(what, { end: { how: 'kill', side: 'after', effect, nth } })]);

  it.each(TARGET_NAMES)(
    'leaves, while it loads %s, right after any move or commit, either both rows and state or neither',
    async (target) => {
      for (const nth of IS_SOAK ? EARLY : [3]) {
        await keepsPromises(
          caseOf(target, [killedAfter('sync', 'store', nth)], { tables: 'events,event_items,event_logs' }),
        );
      }
    },
  );

  it.each([
    ['duckdb', 1],
    ['parquet', 2],
    ['delta', 5],
  ] as const satisfies [StoredTarget, number][])(
    'leaves, while it loads %s, after a power cut after any move or commit (%i), either both rows and state or neither',
    async (target, usual) => {
      for (const nth of IS_SOAK ? EARLY : [usual]) {
        const cut = actionOf('sync', { end: { how: 'power', side: 'after', effect: 'store', nth } });
        await keepsPromises(caseOf(target, [stepOf([cut])]));
      }
    },
  );

  it('has sent no deletion without its line in the ledger', async () => {
    const steps = (IS_SOAK ? EARLY : [9]).flatMap((nth) => [
      killedAfter('forget', 'send', nth),
      killedAfter('forget', 'any', nth * 3),
      killedAfter('forget', 'sync', nth),
    ]);
    await keepsPromises(caseOf('delta', steps));
  });

  it.each([
    ['duckdb', 2],
    ['parquet', 1],
    ['delta', 1],
  ] as const satisfies [StoredTarget, number][])(
    'leaves, while it loads %s, nothing that names a person whom the next command purges',
    async (target, nth) => {
      const end = { how: 'kill', side: 'before', effect: 'commit', nth } as const;
      const steps = [
        stepOf([actionOf('sync')]),
        stepOf([actionOf('sync', { end })], { hours: 5 }),
        stepOf([actionOf('purge', { users: [0, 1, 2] })], { hours: 1 }),
      ];
      const { problems, history, kills } = await execute(caseOf(target, steps));
      expect(problems, history.join('\n')).toEqual([]);
      expect(kills).toBe(1);
    },
  );

  it('leaves deleted ids that do not count against the cap of the next run of the list', async () => {
    const end = { how: 'kill', side: 'after', effect: 'send', nth: 6 } as const;
    const users = [0, 1, 2, 3];
    const steps = [
      stepOf([actionOf('write', { users, cap: 6, end })]),
      stepOf([actionOf('write', { users })], { hours: 1 }),
    ];
    const history = await keepsPromises(caseOf('airbyte', steps));
    expect(history.filter((line) => line.startsWith('write'))).toEqual(['write: killed', 'write: 0']);
  });
});

describe('a load that crosses noon in UTC, when a day ends everywhere', () => {
  // As many seconds before noon as a load of such days takes.
  const SECONDS = Array.from({ length: 30 }, (_, i) => i + 1);
  const days = { zone_hours: -12, to_date_inclusive: true };
  const atDayEnd = { users: 6, at_day_end: true };
  const allDays = Array.from({ length: 8 }, (_, n) => addDays(START, n));
  const crossing = (more: Partial<TestCase>) => async (before: number) => {
    const beforeNoonMs = before * 1_000;
    const steps = [stepOf([actionOf('sync')]), stepOf([actionOf('sync')], { hours: 13, beforeNoonMs })];
    await keepsPromises(caseOf('duckdb', steps, { latencyMs: 1_500, ...more }));
  };

  it('completes a day exported in parts only if it was over before the first part', async () => {
    const cross = crossing({
      scenario: { days, rows: atDayEnd, too_big: { days: allDays, status: 500 } },
      config: { window_days: 1, to_date_inclusive: 'true', max_concurrent_exports: 1 },
    });
    for (const before of IS_SOAK ? SECONDS : [10]) await cross(before);
  });

  it('does not take a day that was not over when requested as proof of an exclusive end', async () => {
    const cross = crossing({
      scenario: { days, rows: { ...atDayEnd, by_day: Object.fromEntries(allDays.map((day) => [day, 1])) } },
      config: { window_days: 1, max_concurrent_exports: 1 },
    });
    for (const before of IS_SOAK ? SECONDS : [5]) await cross(before);
  });
});

describe('days that are loaded in any order', () => {
  it.each(['parquet', 'delta'] as const)('give each event one row in event_logs of %s', async (target) => {
    const part = (from: number, to: number) => stepOf([actionOf('part', { from, to })]);
    await keepsPromises(
      caseOf(target, [part(3, 3), part(2, 2), part(0, 0), part(1, 1)], {
        hoursBefore: 130,
        rowsPerDay: 12,
        tables: 'events,event_items,event_logs',
        scenario: { rows: { users: 6 }, ids: { carried_share: 0.4 } },
      }),
    );
  });
});

describe('a read of all days with shared rows', () => {
  const cases = (['Arrow stream', 'full refresh'] as const).flatMap((name) => [
    [name, true] as const,
    [name, false] as const,
  ]);

  it.each(cases)('has each row once: %s, to_date included: %s', async (name, to_date_inclusive) => {
    const { refreshProblems, streamProblems } = await import('./whole-reads.ts');
    // A row a day proves nothing about the end, so that exports share days.
    const by_day = Object.fromEntries(Array.from({ length: 8 }, (_, n) => [addDays(START, n), 1]));
    const scenario = { days: { to_date_inclusive }, rows: { users: 6, by_day } };
    for (const hoursBefore of IS_SOAK ? [50, 74, 98, 99, 108, 109, 110, 122] : [98]) {
      const one = caseOf('duckdb', [], { hoursBefore, scenario, config: { window_days: 1 } });
      const problems = await (name === 'Arrow stream' ? streamProblems : refreshProblems)(one);
      expect(problems, `after ${hoursBefore} hours`).toEqual([]);
    }
  });
});

describe('a run after another run', () => {
  it('retries a deletion that failed before a kill, with the rest of the list', async () => {
    const faults = [{ kind: 'status', status: 503, when: { operation: 'delete', nth: [2] } }];
    for (const nth of IS_SOAK ? EARLY : [2]) {
      const end = { how: 'kill', side: 'before', effect: 'send', nth } as const;
      const list = { users: [0, 1, 2] };
      const steps = [stepOf([actionOf('forget', { ...list, end })], { faults }), stepOf([actionOf('forget', list)])];
      await keepsPromises(caseOf('duckdb', steps));
    }
  });

  it('adds people to a suppression list that a power cut truncated', async () => {
    for (const nth of IS_SOAK ? EARLY : [1]) {
      const end = { how: 'power', side: 'after', effect: 'write', nth } as const;
      const steps = [
        stepOf([actionOf('sync')]),
        stepOf([actionOf('purge', { users: [0, 1], end })], { hours: 1 }),
        // A lock file that is truncated as well is respected for a minute.
        stepOf([actionOf('purge', { users: [1, 2] })], { hours: 1 }),
      ];
      await keepsPromises(caseOf('duckdb', steps, { order: 3 }));
    }
  });

  it('does not take two bodies truncated at different rows for a whole day', async () => {
    for (const first of IS_SOAK ? [1, 2, 3] : [1]) {
      const steps = [stepOf([actionOf('sync')], { faults: twoCuts([0, first, 0]) })];
      await keepsPromises(
        caseOf('duckdb', steps, { rowsPerDay: 6, config: { window_days: 1, to_date_inclusive: 'true' } }),
      );
    }
  });

  it('does not warn of rows that are missing because their people were purged', async () => {
    const steps = [
      stepOf([actionOf('sync')]),
      stepOf([actionOf('purge', { users: [0, 1] })]),
      stepOf([actionOf('sync')]),
    ];
    await keepsPromises(caseOf('duckdb', steps, { config: { window_days: 1, to_date_inclusive: 'true' } }));
  });

  it('purges people from the leftovers of a killed Arrow stream', async () => {
    for (const nth of IS_SOAK ? EARLY : [9]) {
      const end = { how: 'kill', side: 'after', effect: 'write', nth } as const;
      const steps = [
        stepOf([actionOf('sync')]),
        stepOf([actionOf('stream', { end })]),
        stepOf([actionOf('purge', { users: [0, 1, 2] })], { hours: 1 }),
      ];
      await keepsPromises(caseOf('duckdb', steps));
    }
  });
});
