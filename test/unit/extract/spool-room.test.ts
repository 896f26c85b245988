import fs, { readdirSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import { BATCH_LIMITS } from '../../../src/extract/batch.ts';
import type { ExtractDeps } from '../../../src/extract/deps.ts';
import { extractBatches } from '../../../src/extract/extract.ts';
import type { PlanSettings } from '../../../src/extract/plan/plan.ts';
import {
  type FakeServiceSettings,
  FakeTarget,
  type Fault,
  Fixture,
  planFor,
  steadyRows,
} from '../../support/extract/extraction.ts';
import { failureOf } from '../../support/failure.ts';
import { withCall } from '../../support/system-calls.ts';

const DAYS = { startDate: '2026-03-01', endDate: '2026-03-06', toDateInclusive: 'true' } as const;
const FIRST_TO_LAST = [1, 2, 3, 4, 5, 6];
let fixture: Fixture;
const open = (settings: Partial<FakeServiceSettings> = {}) => {
  fixture = new Fixture('2026-03-10T16:00:00Z', { rows: steadyRows('2026-03-01', '2026-03-11', 6), ...settings });
  fixture.options = { maxConcurrentExports: 4 };
  return fixture;
};
afterEach(() => fixture.close());

const spooled = () =>
  readdirSync(fixture.spoolDir, { recursive: true })
    .map(String)
    .filter((name) => /\.(part|csv)$/.test(name));

/** Does work while the disk of the spool has room for so many files, whether or not they are complete. */
const withRoomFor = <T>(files: number, work: () => T | Promise<T>): Promise<T> => {
  const statfs = async () => ({ bsize: 1, blocks: 1e9, bavail: 256e6 + files - spooled().length });
  return withCall(fs.promises, 'statfs', statfs, work);
};

/** Commits all batches of a run; returns the days of each. */
async function load(more: Partial<ExtractDeps> = {}, settings: Partial<PlanSettings> = DAYS): Promise<number[][]> {
  const batches: number[][] = [];
  const plan = planFor(fixture.clock, fixture.target.prior(), settings);
  for await (const batch of extractBatches(plan, { ...fixture.deps(), ...more }, BATCH_LIMITS)) {
    for (const window of batch) await fixture.target.commit(window);
    batches.push(batch.map(({ receipt }) => Number(receipt.from.slice(8))));
  }
  return batches;
}
const atOnce = () => fixture.events('spool.concurrency').map(({ fields }) => fields?.at_once);
const requested = () => fixture.service.ranges.map((range) => Number(range.slice(8, 10)));

describe('downloads that do not fit on the disk of the spool together', () => {
  it.each([1, 2, 3])('all get through, the last of them later, with room for %i', async (files) => {
    open();
    const batches = await withRoomFor(files, load);
    expect(batches.flat()).toEqual(FIRST_TO_LAST);
    expect(fixture.target.ids()).toHaveLength(36);
    const cut = 4 - files;
    expect(atOnce()).toEqual([3, 2, 1].slice(0, cut));
    expect(fixture.service.sent).toBe(6 + cut);
    expect([fixture.service.busy, readdirSync(fixture.spoolDir)]).toEqual([0, []]);
  });

  it('give way while they arrive, and the first of them keeps what it has', async () => {
    open();
    const large = (csv: string) => csv + csv.slice(csv.indexOf('\n') + 1).repeat(16_000);
    fixture.service.settings = { ...fixture.service.settings, fault: () => ({ body: large }) };
    const bytesIn = (name: string) => fs.statSync(`${fixture.spoolDir}/${name}`, { throwIfNoEntry: false })?.size ?? 0;
    const used = () => spooled().reduce((sum, name) => sum + bytesIn(name), 0);
    const statfs = async () => ({ bsize: 1, blocks: 1e9, bavail: 256e6 + 25e6 - used() });
    await withCall(fs.promises, 'statfs', statfs, () => load({}, { ...DAYS, endDate: '2026-03-04' }));
    expect(fixture.target.receipts.map(({ from, exports }) => [from.slice(9), exports])).toEqual(
      ['1', '2', '3', '4'].map((day) => [day, 1]),
    );
    expect(requested().filter((day) => day === 1)).toEqual([1]);
    expect(fixture.service.sent).toBeGreaterThan(4);
  }, 60_000);

  it('give way with every part of a day that was divided by event names', async () => {
    const tooBig = (from: string, all: boolean): Fault | undefined =>
      from === '2026-03-02' && all ? { refuse: 'retry_or_split' } : undefined;
    open({ fault: ({ from, eventsCondition }) => tooBig(from, eventsCondition === 'all') });
    fixture.options = { maxConcurrentExports: 3 };
    const answer = fixture.service.exportEvents.bind(fixture.service);
    fixture.service.exportEvents = async (request, signal) => {
      const isHeld = () =>
        request.from === '2026-03-01' && spooled().filter((name) => name.endsWith('.csv')).length < 3;
      while (isHeld() && !signal.aborted) await new Promise((resolve) => setImmediate(resolve));
      return answer(request, signal);
    };
    expect((await withRoomFor(3, load)).flat()).toEqual(FIRST_TO_LAST);
    expect(fixture.target.receipts[1].split).toBe('names');
    expect([atOnce(), fixture.target.ids().length, readdirSync(fixture.spoolDir)]).toEqual([[2, 1], 36, []]);
  });

  it('give way to files that further targets need; once they fill the disk the run ends, and the next one goes on', async () => {
    open();
    const sharing = {
      command: 'c',
      keep: true,
      refusals: new Map(),
      waitBudgets: new Map(),
      concurrency: { max: Number.POSITIVE_INFINITY },
    };
    const settings = { ...DAYS, lookbackDays: 0 };
    const failure = await withRoomFor(3, () => failureOf(load({ sharing }, settings)));
    expect(failure).toMatchObject({ exitCode: 3, message: expect.stringContaining('are kept free') });
    expect(fixture.target.state?.from_date).toBe('2026-03-04');
    expect(spooled()).toHaveLength(3);
    const [first, before] = [fixture.target, fixture.service.sent];
    fixture.target = new FakeTarget();
    await withRoomFor(3, () => failureOf(load({ sharing }, settings)));
    expect([fixture.target.state?.from_date, fixture.service.sent - before]).toEqual(['2026-03-04', 1]);
    fixture.target = first;
    sharing.concurrency.max = Number.POSITIVE_INFINITY;
    await withRoomFor(3, () => load({ sharing: { ...sharing, command: 'd' } }, settings));
    expect(fixture.target.state?.from_date).toBe('2026-03-07');
  });

  it('are requested again although one that gave way had failed, whose failure still ends the run', async () => {
    open({ fault: ({ from }) => (from === '2026-03-04' ? { refuse: 'config' } : undefined) });
    const failure = await withRoomFor(1, () => failureOf(load()));
    expect(failure).toMatchObject({ exitCode: 2 });
    expect(fixture.target.state?.from_date).toBe('2026-03-04');
  });
});

describe('windows that wait for their batch', () => {
  it('are committed before a download has to give way, and no export is repeated', async () => {
    open();
    fixture.options = { maxConcurrentExports: 1 };
    expect(await withRoomFor(2, load)).toEqual([
      [1, 2],
      [3, 4],
      [5, 6],
    ]);
    expect([fixture.service.sent, atOnce()]).toEqual([6, []]);
  });

  it('hold up a download that lacks room no longer than the run, if it is stopped', async () => {
    open();
    const plan = planFor(fixture.clock, fixture.target.prior(), DAYS);
    await withRoomFor(1, async () => {
      const batches = extractBatches(plan, fixture.deps(), BATCH_LIMITS);
      await batches.next();
      fixture.controller.abort(new Error('stop'));
      await expect(batches.next()).rejects.toThrow('stop');
    });
    expect(fixture.service.busy).toBe(0);
  });
});

describe('what ended runs left in the spool', () => {
  it('is used as far as it fits, and removed where a day would not fit otherwise', async () => {
    open();
    const windows = fixture.windows(DAYS);
    await windows.next();
    await fixture.kill(windows);
    const left = spooled().length;
    expect(left).toBeGreaterThan(1);
    fixture.options = { maxConcurrentExports: 1 };
    const before = fixture.service.sent;
    const settings = { ...DAYS, startDate: '2026-02-27' };
    expect((await withRoomFor(2, () => load({}, settings))).flat()).toEqual([27, 28, ...FIRST_TO_LAST]);
    expect(fixture.service.sent - before).toBeLessThanOrEqual(8);
  });
});
