import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { type Day, daysOf } from '../../../src/base/days.ts';
import { Extraction } from '../../../src/extract/extraction.ts';
import { RunFolder } from '../../../src/fs/run-folder.ts';
import { Fixture, planFor, type ServiceSettings, steadyRows } from '../../support/extract/extraction.ts';
import { expectMode } from '../../support/modes.ts';
import { type FaultRule, refusal } from '../../support/service/faults.ts';
import { deferred, until } from '../../support/wait.ts';

const NOW = '2026-01-20T14:00:00Z';
const SETTINGS = { startDate: '2026-01-11', toDateInclusive: 'true' } as const;
const rows = steadyRows('2026-01-01', '2026-01-31', 4);

let fixture: Fixture;
const start = async (settings: ServiceSettings = {}): Promise<Fixture> => {
  fixture = await Fixture.start(NOW, { rows, ...settings });
  return fixture;
};

/** Answers of some days that are held back until they are released. */
function holding(...days: readonly Day[]) {
  const { promise, resolve } = deferred<undefined>();
  const fault: FaultRule = ({ from }) => (days.includes(from) ? promise : undefined);
  return { fault, release: () => resolve(undefined) };
}
/** Lets whatever is ready happen. */
const turns = () => new Promise((resolve) => setTimeout(resolve, 200));

describe('batches', () => {
  it('hold all days that are ready, in order', async () => {
    const { target } = await (await start()).run(SETTINGS);
    expect(target.commits.flat()).toEqual(daysOf('2026-01-11', '2026-01-20'));
    expect(target.commits.length).toBeLessThan(5);
  });

  it.each([
    ['rows', { rows: 9, bytes: 1e9, waitMs: 10_000 }],
    ['bytes', { rows: 1e9, bytes: 1_500, waitMs: 10_000 }],
  ])('end with the day that reaches the most %s', async (_, limits) => {
    await start();
    const sizes: number[] = [];
    const plan = planFor(fixture.clock, fixture.target.prior(), SETTINGS);
    for await (const { checkedDays } of new Extraction(plan, fixture.deps()).batches(limits))
      sizes.push(checkedDays.length);
    expect(sizes).toEqual([3, 3, 3, 1]);
  });

  it('wait for a slow day no longer than their time', async () => {
    const slow = holding('2026-01-13');
    await start({ fault: slow.fault });
    const batches = fixture.batches(SETTINGS);
    const first = batches.next();
    await until(() => fixture.extraction?.results.receipts.size === 2);
    await turns();
    fixture.clock.pass(10_000);
    const early = await Promise.race([first, turns()]);
    slow.release();
    const checkedDays = ['2026-01-11', '2026-01-12'].map((day) => ({ receipt: { day } }));
    expect(early).toMatchObject({ value: { checkedDays } });
    expect((await batches.next()).value?.checkedDays[0].receipt.day).toBe('2026-01-13');
    await batches.return();
  });
});

describe('a run', () => {
  it('exports max_concurrent_exports days at once, and never more', async () => {
    const two = holding('2026-01-11', '2026-01-12');
    const fault: FaultRule = (request, nth) => {
      if (request.from === '2026-01-13') two.release();
      return two.fault(request, nth);
    };
    await (await start({ fault })).run(SETTINGS);
    // The service refuses a fourth.
    expect(fixture.requests.every(({ status }) => status === 200)).toBe(true);
  });

  it('downloads no more days ahead of a slow one than may run at once', async () => {
    const slow = holding('2026-01-11');
    await start({ fault: slow.fault });
    const running = fixture.run(SETTINGS);
    await turns();
    expect(fixture.requests.length).toBeLessThanOrEqual(4);
    slow.release();
    await running;
    expect(fixture.target.state?.from_date).toBe('2026-01-20');
  });

  it('that was stopped ends with the reason of the signal', async () => {
    const slow = holding('2026-01-15');
    await start({ fault: slow.fault });
    const reason = new Error('stopped');
    const running = fixture.run(SETTINGS);
    await until(() => fixture.extraction?.results.receipts.size === 4);
    fixture.controller.abort(reason);
    await expect(running).rejects.toBe(reason);
    // The days before the slow one were waiting for their batch.
    expect(fixture.target.commits).toEqual([]);
    slow.release();
  });

  it.each([401, 200])('ends at once when the token is wrong, with exit 2, by a %i', async (status) => {
    const fault = refusal(status, { message: 'unauthorized_token' });
    const failure = await (await start({ fault: () => fault })).failure(SETTINGS);
    expect(failure.exitCode).toBe(2);
    expect(fixture.requests.length).toBeLessThanOrEqual(4);
  });

  it('gives up after three days that fail, and keeps those before them', async () => {
    const fault: FaultRule = ({ from }) => (from >= '2026-01-14' && from < '2026-01-19' ? refusal(503) : undefined);
    const failure = await (await start({ fault })).failure(SETTINGS);
    expect(failure.exitCode).toBe(3);
    expect(failure.message).toContain('2026-01-14');
    expect(fixture.target.state?.from_date).toBe('2026-01-14');
    // The first failure is the error of the run: whoever called prints it.
    expect(fixture.events('day.failed').map(({ fields }) => fields)).toMatchObject([
      { day: '2026-01-15' },
      { day: '2026-01-16' },
    ]);
  });

  it('gives up after three days that can never be read, if the service has exported none by then', async () => {
    const change = (csv: string) => csv.replaceAll('\n', '\r');
    const failure = await (await start({ fault: () => ({ kind: 'body', change }) })).failure(SETTINGS);
    expect([failure.exitCode, failure.message]).toEqual([2, expect.stringContaining('2026-01-11')]);
    expect(fixture.requests.map(({ from }) => from)).not.toContain('2026-01-18');
  });

  it('that cannot store a day logs the days that failed before it', async () => {
    await start({ fault: ({ from }) => (from === '2026-01-12' ? refusal(503) : undefined) });
    const batches = fixture.batches(SETTINGS);
    await batches.next();
    await batches.return();
    expect(fixture.events('day.failed').map(({ fields }) => fields)).toMatchObject([{ day: '2026-01-12' }]);
  });
});

describe('the folder of a run', () => {
  it('that cannot be removed fails the run', async () => {
    await start();
    const remove = vi.spyOn(RunFolder.prototype, 'remove').mockRejectedValueOnce(new Error('rows stay'));
    await expect(fixture.run(SETTINGS)).rejects.toThrow('rows stay');
    remove.mockRestore();
  });

  it('is private, and gone with the run', async () => {
    await start();
    const batches = fixture.batches(SETTINGS);
    await batches.next();
    const [folder] = readdirSync(fixture.spoolDir);
    expectMode(join(fixture.spoolDir, folder), 0o700);
    await batches.return();
    expect(readdirSync(fixture.spoolDir)).toEqual([]);
  });

  it('holds the files of a batch until the next one is requested', async () => {
    await start();
    const batches = fixture.batches({ ...SETTINGS, toDateInclusive: 'false' });
    const first = await batches.next();
    const [path] = first.value?.checkedDays.flatMap(({ files }) => files.map((file) => file.path)) ?? [];
    expect(existsSync(path)).toBe(true);
    await batches.next();
    expect(existsSync(path)).toBe(false);
    await batches.return();
  });

  it('holds no file of a download that was broken', async () => {
    const isBroken = new Set(['2026-01-12', '2026-01-13']);
    await start({
      fault: ({ from }) =>
        isBroken.delete(from) ? { kind: 'body', change: (csv) => csv.replace(',u-', '') } : undefined,
    });
    const batches = fixture.batches(SETTINGS);
    const { value: batch } = await batches.next();
    const [folder] = readdirSync(fixture.spoolDir);
    const files = readdirSync(join(fixture.spoolDir, folder)).filter((name) => name.endsWith('.csv'));
    expect(files).toHaveLength(batch?.checkedDays.length ?? 0);
    expect(files).toHaveLength(10);
    await batches.return();
  });
});
