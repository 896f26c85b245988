import { describe, expect, it } from 'vitest';
import { ExportQuota, type ExportQuotaOptions } from '../../../src/service/export/quota.ts';
import type { QuotaAnswer } from '../../../src/service/export/quota-rules.ts';
import { ManualClock, settle } from '../../support/clock.ts';
import { logRecorder } from '../../support/service/service.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const NEVER = new AbortController().signal;

const answer = (status: number, remaining?: number, resetAt?: number, retryAt?: number): QuotaAnswer => ({
  kind: status === 429 ? 'wait' : 'data',
  quotaReport: { remaining, resetAt, retryAt },
});

function open(more: Partial<ExportQuotaOptions> = {}) {
  const clock = new ManualClock();
  const waits: (number | undefined)[] = [];
  const { events, logger } = logRecorder();
  const onWait = (until: number | undefined) => void waits.push(until);
  const quota = new ExportQuota({ maxConcurrentExports: 5, clock, logger, onWait, ...more });
  return { quota, clock, waits, events };
}

/** An export under way, which ends with an answer or without one. */
interface RunningExport {
  end(head?: QuotaAnswer): void;
}

/** Begins so many exports; those under way and the failures come when they do. */
async function begin(quota: ExportQuota, count: number) {
  const running: RunningExport[] = [];
  const failures: unknown[] = [];
  for (let i = 0; i < count; i++) {
    const exporting = quota.run(NEVER, () => {
      return new Promise<void>((resolve) => {
        const end = (head?: QuotaAnswer) => {
          if (head !== undefined) quota.record(head);
          resolve();
        };
        running.push({ end });
      });
    });
    exporting.catch((error: unknown) => failures.push(error));
  }
  await settle();
  return { running, failures };
}

/** One export from its request to its end. */
const exportWith = (quota: ExportQuota, head: QuotaAnswer) => quota.run(NEVER, async () => quota.record(head));

/** Milliseconds until the next export may be sent. */
async function waitOf({ quota, clock }: Pick<ReturnType<typeof open>, 'quota' | 'clock'>) {
  const before = clock.now();
  const { running } = await begin(quota, 1);
  await clock.passUntil(() => running.length === 1, 2 * HOUR);
  running[0]?.end();
  await settle();
  return clock.now() - before;
}

describe('exports at once', () => {
  it('are as many as configured, and each that ends lets the next one in', async () => {
    const { quota } = open({ maxConcurrentExports: 3 });
    const { running } = await begin(quota, 5);
    expect(running).toHaveLength(3);
    running[0].end();
    await settle();
    expect(running).toHaveLength(4);
  });

  it('that wait leave the queue when their run is aborted', async () => {
    const opened = open({ maxConcurrentExports: 1 });
    await exportWith(opened.quota, answer(429));
    const stop = new AbortController();
    const waiting = opened.quota.run(stop.signal, async () => {});
    await settle();
    stop.abort(new Error('stopped'));
    await expect(waiting).rejects.toThrow('stopped');
    expect(await waitOf(opened)).toBe(MINUTE);
  });
});

describe('after a 429', () => {
  it('exports wait Retry-After, at most until the reset that it names and an hour', async () => {
    const wait = async (retry: number, reset?: number) => {
      const opened = open();
      const at = (ms: number | undefined) => (ms === undefined ? undefined : opened.clock.now() + ms);
      await exportWith(opened.quota, answer(429, 0, at(reset), at(retry)));
      return waitOf(opened);
    };
    expect(await wait(MINUTE)).toBe(MINUTE + 1_000);
    expect(await wait(30 * MINUTE)).toBe(30 * MINUTE + 1_000);
    expect(await wait(30 * MINUTE, 20 * MINUTE)).toBe(20 * MINUTE + 1_000);
    expect(await wait(20 * MINUTE, 30 * MINUTE)).toBe(20 * MINUTE + 1_000);
    expect(await wait(5 * HOUR)).toBe(HOUR + 1_000);
  });

  it('without Retry-After exports wait a minute, and twice as long each time until one succeeds', async () => {
    const opened = open();
    const waits: number[] = [];
    for (const status of [429, 429, 429, 200, 429]) {
      await exportWith(opened.quota, answer(status, status === 200 ? 90 : 0));
      waits.push(await waitOf(opened));
    }
    expect(waits).toEqual([MINUTE, 2 * MINUTE, 4 * MINUTE, 0, MINUTE]);
  });

  it('exports that were refused together count as one refusal', async () => {
    const opened = open();
    const { running } = await begin(opened.quota, 5);
    for (const exporting of running) exporting.end(answer(429));
    await settle();
    expect(await waitOf(opened)).toBe(MINUTE);
  });

  it('the reset is not waited for, and its Remaining does not count', async () => {
    for (const remaining of [0, 40]) {
      const opened = open();
      await exportWith(opened.quota, answer(429, remaining, opened.clock.now() + HOUR));
      expect(await waitOf(opened)).toBe(MINUTE);
    }
  });

  it('the pause ends with the reset that it names', async () => {
    const opened = open();
    await exportWith(opened.quota, answer(429, 0, opened.clock.now() + 20_000));
    expect(await waitOf(opened)).toBe(21_000);
  });
});

describe('with Remaining', () => {
  it('at zero no export is sent before the reset', async () => {
    const opened = open();
    await exportWith(opened.quota, answer(200, 0, opened.clock.now() + 10 * MINUTE));
    expect(await waitOf(opened)).toBe(10 * MINUTE + 1_000);
  });

  it('above zero so many are sent before the reset, in whatever order answers come', async () => {
    const { quota, clock } = open();
    const resetAt = clock.now() + 10 * MINUTE;
    await exportWith(quota, answer(200, 3, resetAt));
    await exportWith(quota, answer(200, 7, resetAt));
    const { running } = await begin(quota, 5);
    expect(running).toHaveLength(2);
    await clock.passUntil(() => running.length > 2, HOUR);
    expect(clock.now()).toBe(resetAt + 1_000);
    expect(running).toHaveLength(5);
  });
});

describe('a wait', () => {
  it('is shown in the log and to the caller, with its end, until it is over', async () => {
    const { quota, clock, waits, events } = open();
    const until = clock.now() + 20 * MINUTE + 1_000;
    await exportWith(quota, answer(429, 0, undefined, until - 1_000));
    await begin(quota, 3);
    await clock.passUntil(() => false, HOUR);
    expect(waits).toEqual([until, undefined]);
    const at = new Date(until).toISOString();
    expect(events.map(({ message }) => message)).toEqual([
      `The limit of exports is reached: the next is sent at ${at}, in 20 min 1 s.`,
    ]);
  });

  it('longer than allowed ends with exit 3 and names its end', async () => {
    const { quota, clock } = open({ maxWaitMs: 10 * MINUTE });
    await exportWith(quota, answer(429, 0, undefined, clock.now() + 11 * MINUTE));
    const { failures } = await begin(quota, 2);
    expect(failures).toMatchObject([{ exitCode: 3 }, { exitCode: 3 }]);
    expect(String(failures[0])).toContain('longer than this run waits (10 min)');
  });
});
