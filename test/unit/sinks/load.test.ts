import { afterEach, describe, expect, it } from 'vitest';
import { configError, transientError } from '../../../src/base/errors.ts';
import { BATCH_LIMITS } from '../../../src/extract/batch.ts';
import type { PlanSettings } from '../../../src/extract/plan/plan.ts';
import { NO_PRIOR_LOADS, type Window } from '../../../src/extract/window.ts';
import { load, newLoadCounts } from '../../../src/targets/load.ts';
import type { Commit, Sink } from '../../../src/targets/sink.ts';
import { Fixture, planFor, steadyRows } from '../../support/extract/extraction.ts';

const DAYS = { startDate: '2026-03-01', endDate: '2026-03-04', toDateInclusive: 'true' } as const;
let fixture: Fixture;
afterEach(() => fixture.close());

/** A sink that keeps the days of its commits and the sizes of all attempts, and takes only what `accepts` does. */
class DaysSink implements Sink {
  readonly stored: string[][] = [];
  readonly attempts: number[] = [];
  readonly accepts: (days: readonly string[]) => boolean;

  constructor(accepts: (days: readonly string[]) => boolean) {
    this.accepts = accepts;
  }

  async commit(batch: readonly Window[]): Promise<Commit> {
    const days = batch.map(({ receipt }) => receipt.from.slice(-2));
    this.attempts.push(days.length);
    if (!this.accepts(days)) throw configError(`not ${days}`);
    this.stored.push(days);
    return { ...CHANGED, windows: batch.length, rows: batch.reduce((sum, { receipt }) => sum + receipt.rows, 0) };
  }
  readonly state = undefined;
  readonly runs = { begin: async () => [], end: async () => {} };
  async close() {}
}

const CHANGED: Commit = {
  windows: 1,
  rows: 6,
  columnsAdded: ['c'],
  columnsWidened: [{ name: 'n', from: 'long', to: 'double' }],
  rescued: new Map([['d', 2]]),
  idRepeats: 1,
};

async function loadInto(sink: Sink, settings: Partial<PlanSettings> = {}) {
  const rows = steadyRows('2026-03-01', '2026-03-11', 6);
  fixture = new Fixture('2026-03-10T16:00:00Z', { rows, historyDays: 200 });
  const counts = newLoadCounts();
  const plan = planFor(fixture.clock, NO_PRIOR_LOADS, { ...DAYS, ...settings });
  const done = await load(plan, sink, { ...fixture.deps(), counts }).then(
    () => undefined,
    (error: Error) => error.message,
  );
  return { counts, done };
}

describe('a load', () => {
  it('commits windows together that are ready', async () => {
    const sink = new DaysSink(() => true);
    const { counts, done } = await loadInto(sink);
    expect(done).toBeUndefined();
    expect(sink.stored).toEqual([['01', '02', '03', '04']]);
    expect(counts.stored).toMatchObject({ rows: 24, windows: 4 });
    expect(fixture.log.filter(({ event }) => event === 'window.committed')).toHaveLength(4);
  });

  it('keeps the windows before one that cannot be stored, and says so', async () => {
    const sink = new DaysSink((days) => !days.includes('03'));
    const { counts, done } = await loadInto(sink);
    expect(done).toBe('not 03');
    expect(sink.stored).toEqual([['01'], ['02']]);
    expect(counts.stored).toMatchObject({ rows: 12, windows: 2 });
    expect(counts.nextFromDate).toBe('2026-03-03');
  });

  it('stores windows one by one when they do not fit together', async () => {
    const sink = new DaysSink((days) => days.length === 1);
    const { counts, done } = await loadInto(sink);
    expect(done).toBeUndefined();
    expect(sink.stored).toEqual([['01'], ['02'], ['03'], ['04']]);
    expect(counts.stored).toEqual({
      windows: 4,
      rows: 24,
      columnsAdded: ['c', 'c', 'c', 'c'],
      columnsWidened: [{ name: 'n', from: 'long', to: 'double' }],
      rescued: new Map([['d', 8]]),
      idRepeats: 4,
    });
    expect(counts.nextFromDate).toBe('2026-03-05');
  });

  it('tries windows together no more once some could only be stored one by one', async () => {
    const sink = new DaysSink((days) => days.length === 1);
    const begun: Window[] = [];
    const { done } = await loadInto(Object.assign(sink, { begin: (window: Window) => void begun.push(window) }), {
      startDate: '2025-11-01',
      historyDays: 200,
    });
    expect(done).toBeUndefined();
    const days = 124;
    expect(sink.stored).toHaveLength(days);
    expect(sink.attempts).toEqual([BATCH_LIMITS.windows, ...sink.stored.map(() => 1)]);
    expect(begun).toHaveLength(BATCH_LIMITS.windows);
  });
});

/** A sink that takes two windows at a time. */
class PairsSink extends DaysSink {
  override async commit(batch: readonly Window[]): Promise<Commit> {
    return super.commit(batch.slice(0, 2));
  }
}

describe('a batch that is stored in several commits', () => {
  it('counts every commit, also when a later one fails temporarily', async () => {
    const all = new PairsSink(() => true);
    const { counts } = await loadInto(all);
    expect(all.stored).toEqual([
      ['01', '02'],
      ['03', '04'],
    ]);
    expect(counts.stored).toMatchObject({ rows: 24, windows: 4 });
    await fixture.close();
    const full = new PairsSink((days) => {
      if (days.includes('03')) throw transientError('the disk is full');
      return true;
    });
    const half = await loadInto(full);
    expect(half.done).toBe('the disk is full');
    expect(half.counts.stored).toMatchObject({ rows: 12, windows: 2 });
    expect(half.counts.nextFromDate).toBe('2026-03-03');
  });
});
