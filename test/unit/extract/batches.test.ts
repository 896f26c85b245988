import { existsSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import type { Day } from '../../../src/base/days.ts';
import { BATCH_LIMITS, type BatchLimits } from '../../../src/extract/batch.ts';
import { extractBatches } from '../../../src/extract/extract.ts';
import type { PlanSettings } from '../../../src/extract/plan/plan.ts';
import type { Window } from '../../../src/extract/window.ts';
import { type FakeServiceSettings, Fixture, planFor, steadyRows } from '../../support/extract/extraction.ts';

const DAYS = { startDate: '2026-03-01', endDate: '2026-03-08', toDateInclusive: 'true' } as const;
let fixture: Fixture;
/** A time that nothing else waits. */
const WAIT_MS = 9_876;
/** Rings the timer of the latest batch. */
let ring = () => {};
let waits = 0;
/** Windows that have waited for their batch. */
let waiting = 0;

function open(serviceSettings: Partial<FakeServiceSettings> = {}): Fixture {
  fixture = new Fixture('2026-03-10T16:00:00Z', {
    rows: steadyRows('2026-03-01', '2026-03-11', 6),
    ...serviceSettings,
  });
  waits = 0;
  waiting = 0;
  fixture.clock.after = (ms?: number, callback?: () => void) => {
    if (ms === WAIT_MS) {
      waits++;
      ring = callback ?? ring;
    }
    return () => {};
  };
  return fixture;
}
afterEach(() => fixture.close());

const batchesOf = (settings: Partial<PlanSettings> = DAYS, limits: Partial<BatchLimits> = {}) =>
  extractBatches(
    planFor(fixture.clock, fixture.target.prior(), settings),
    fixture.deps(),
    {
      ...BATCH_LIMITS,
      waitMs: WAIT_MS,
      ...limits,
    },
    () => waiting++,
  );

async function daysOf(batches: AsyncIterable<readonly Window[]>): Promise<Day[][]> {
  const days: Day[][] = [];
  for await (const batch of batches) {
    days.push(batch.map(({ receipt }) => receipt.from));
    for (const window of batch) await fixture.target.commit(window);
  }
  return days;
}
const march = (...days: number[]) => days.map((day) => `2026-03-0${day}`);

/** Answers for a day that wait until they are let go. */
function hold(day: Day): () => void {
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const answer = fixture.service.exportEvents.bind(fixture.service);
  fixture.service.exportEvents = async (request, signal) => {
    const aborted = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
    if (request.from === day) await Promise.race([held, aborted]);
    return answer(request, signal);
  };
  return release;
}

describe('consecutive windows that are ready', () => {
  it('are handed on together, in order, and at the end of the run', async () => {
    open();
    expect(await daysOf(batchesOf())).toEqual([march(1, 2, 3, 4, 5, 6, 7, 8)]);
    expect(fixture.target.state?.from_date).toBe('2026-03-09');
  });

  it('keep their files until the next batch is requested', async () => {
    open();
    const batches = batchesOf(DAYS, { rows: 24 });
    const first = (await batches.next()).value ?? [];
    expect(first).toHaveLength(4);
    const paths = first.flatMap(({ files }) => files.map(({ path }) => path));
    expect(paths.every((path) => existsSync(path))).toBe(true);
    await batches.next();
    expect(paths.some((path) => existsSync(path))).toBe(false);
    await batches.return(undefined);
  });

  it('end with the window that reaches the limit of rows, of bytes or of windows', async () => {
    open();
    expect(await daysOf(batchesOf(DAYS, { rows: 13 }))).toEqual([march(1, 2, 3), march(4, 5, 6), march(7, 8)]);
    fixture.target.covered.clear();
    fixture.target.state = undefined;
    expect(await daysOf(batchesOf(DAYS, { windows: 5 }))).toEqual([march(1, 2, 3, 4, 5), march(6, 7, 8)]);
    fixture.target.covered.clear();
    fixture.target.state = undefined;
    expect((await daysOf(batchesOf(DAYS, { bytes: 1 }))).map((days) => days.length)).toEqual(Array(8).fill(1));
  });

  it('wait for the next one at most the given time, ten seconds by default', async () => {
    open();
    expect(BATCH_LIMITS).toMatchObject({ rows: 500_000, bytes: 2 ** 28, waitMs: 10_000 });
    const release = hold('2026-03-03');
    const batches = batchesOf();
    const next = batches.next();
    while (waits === 0) await new Promise((resolve) => setImmediate(resolve));
    while (waiting < 2) await new Promise((resolve) => setImmediate(resolve));
    ring();
    expect(((await next).value ?? []).map(({ receipt }) => receipt.from)).toEqual(march(1, 2));
    release();
    expect(await daysOf(batches)).toEqual([march(3, 4, 5, 6, 7, 8)]);
  });

  it('are in separate batches when they share a day', async () => {
    open({ rows: steadyRows('2026-03-01', '2026-03-11', 1) });
    const asked: string[][] = [];
    for await (const batch of batchesOf({ startDate: '2026-03-01', endDate: '2026-03-04' })) {
      asked.push(batch.map(({ receipt: { from, to } }) => `${from.slice(8)}..${to.slice(8)}`));
    }
    expect(asked).toEqual([['01..02'], ['02..03'], ['03..04'], ['04..05']]);
  });

  it('share no day once the service is known to exclude the last one', async () => {
    open({ inclusive: false });
    expect(await daysOf(batchesOf({ ...DAYS, toDateInclusive: 'false' }))).toEqual([march(1, 2, 3, 4, 5, 6, 7, 8)]);
  });

  it('are handed on before the failure of the next window is thrown', async () => {
    open({ fault: ({ from }) => (from === '2026-03-04' ? { refuse: 'config' } : undefined) });
    await expect(daysOf(batchesOf())).rejects.toMatchObject({ exitCode: 2 });
    expect(fixture.target.state?.from_date).toBe('2026-03-04');
  });

  it('are dropped when the run is stopped', async () => {
    open();
    hold('2026-03-03');
    const batches = batchesOf();
    const next = batches.next();
    while (waits === 0) await new Promise((resolve) => setImmediate(resolve));
    fixture.controller.abort(new Error('stop'));
    await expect(next).rejects.toThrow('stop');
  });
});
