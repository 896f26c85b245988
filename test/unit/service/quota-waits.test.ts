import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { silentLogger } from '../../../src/base/log.ts';
import { HEARTBEAT_MS } from '../../../src/fs/lock.ts';
import type { ExportQuota, ExportQuotaOptions, Permit } from '../../../src/service/quota/quota.ts';
import type { AnswerHead } from '../../../src/service/quota/rules.ts';
import type { QuotaState } from '../../../src/service/quota/state.ts';
import { openTestQuota } from '../../support/service/quota.ts';
import { ManualClock, recorder, settle } from '../../support/service/service.ts';

const HOUR = 3_600_000;
const { signal } = new AbortController();
let folder = '';
let clock = new ManualClock();
let heard = recorder();
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'quota-'));
  clock = new ManualClock();
  heard = recorder();
});
/** How long the quota waited; the lock of its file is rewritten as long as it is held. */
const waitsOf = ({ set }: ManualClock) => set.filter((ms) => ms !== HEARTBEAT_MS);
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const openQuota = (more: Partial<ExportQuotaOptions> = {}): ExportQuota =>
  openTestQuota({ clock, logger: heard.logger, stateRoot: folder, ...more });
const head = (status: number, remaining?: number, resetAt?: number): AnswerHead => ({
  status,
  limited: status === 429,
  limits: { remaining, resetAt, retryAt: undefined },
});
const stateFile = (): string => {
  const place = join(folder, readdirSync(folder)[0] ?? '');
  return join(place, readdirSync(place)[0] ?? '');
};
const written = () => JSON.parse(readFileSync(stateFile(), 'utf8')) as QuotaState;
const events = (name: string) => heard.events.filter(({ event }) => event === name);
/** Enters; what it came to is filled in when it has. */
function entering(quota: ExportQuota) {
  const found: { permit?: Permit; error?: unknown } = {};
  void quota.enter(signal).then(
    (permit) => Object.assign(found, { permit }),
    (error: unknown) => Object.assign(found, { error }),
  );
  return found;
}
/** A quota whose first export was answered so, and has ended. */
async function endedWith(answer: AnswerHead, more: Partial<ExportQuotaOptions> = {}): Promise<ExportQuota> {
  const quota = openQuota(more);
  const first = await quota.enter(signal);
  await first.answered(answer);
  await first.release();
  clock.pass(60);
  clock.set.length = 0;
  return quota;
}

describe('a permit', () => {
  it('is released once: a second release changes nothing', async () => {
    const permit = await openQuota().enter(signal);
    const freeAt = clock.now() + 50;
    await permit.release();
    clock.pass(30);
    await permit.release();
    expect(written().slots.map((slot) => slot.freeAt)).toEqual([freeAt]);
  });

  it('keeps its slot for the moment in which the service notices its end', async () => {
    const quota = openQuota({ maxConcurrentExports: 1 });
    const first = await quota.enter(signal);
    await first.answered(head(200, 50, clock.now() + HOUR));
    const next = entering(quota);
    await first.release();
    await settle(40);
    expect(next.permit).toBeUndefined();
    expect(waitsOf(clock)).toContain(50);
    clock.pass(49);
    await settle(40);
    expect(next.permit).toBeUndefined();
    clock.pass(1);
    await settle(40);
    await next.permit?.release();
    expect(next.permit).toBeDefined();
  });

  it('is released with all others when the quota is closed', async () => {
    const quota = openQuota();
    const first = await quota.enter(signal);
    await first.answered(head(200, 50, clock.now() + HOUR));
    await quota.enter(signal);
    await quota.enterNow();
    await quota.close();
    expect(written().slots.map(({ freeAt }) => freeAt)).toEqual(Array(3).fill(clock.now() + 50));
    expect(clock.pending).toBe(0);
    clock.pass(60);
    expect(openQuota().forecast(9)).toMatchObject({ startableNow: 5, left: 48 });
  });
});

describe('a wait for a slot', () => {
  it('of this process is woken without polling', async () => {
    const quota = openQuota({ maxConcurrentExports: 1 });
    const first = await quota.enter(signal);
    const next = entering(quota);
    await settle(40);
    clock.set.length = 0;
    let looks = 0;
    const { now } = clock;
    clock.now = () => {
      looks++;
      return now.call(clock);
    };
    await settle(40);
    expect([looks, waitsOf(clock)]).toEqual([0, []]);
    await first.release();
    clock.pass(60);
    await settle(40);
    expect(next.permit).toBeDefined();
  });

  it('of another process polls every fifth of a second', async () => {
    const first = await openQuota({ maxConcurrentExports: 1 }).enter(signal);
    clock.set.length = 0;
    const next = entering(openQuota({ maxConcurrentExports: 1 }));
    await settle(40);
    expect(waitsOf(clock)).toEqual([200]);
    const { ino, mtimeNs } = statSync(stateFile(), { bigint: true });
    await clock.passUntil(() => false, 1_000, 200);
    // Nothing has changed, so nothing is written.
    expect(statSync(stateFile(), { bigint: true })).toMatchObject({ ino, mtimeNs });
    await first.release();
    clock.pass(199);
    await settle(40);
    expect(next.permit).toBeUndefined();
    await clock.passUntil(() => next.permit !== undefined, 1_000, 50);
    expect(next.permit).toBeDefined();
  });
});

describe('a wait for the hourly limit', () => {
  it('polls every five minutes, and reports its end', async () => {
    const resetAt = clock.now() + HOUR / 3;
    const quota = await endedWith(head(429, 0, resetAt));
    const until = resetAt + 1_000;
    entering(quota);
    await settle(40);
    expect(waitsOf(clock)).toEqual([300_000]);
    const at = new Date(until).toISOString();
    expect(events('quota.wait')).toMatchObject([{ level: 'info', fields: { until: at } }]);
    expect(events('quota.wait')[0].message).toContain(`the next is sent at ${at}, in 20 min`);
    await clock.passUntil(() => false, 600_000, 100_000);
    expect(events('quota.wait')).toHaveLength(1);
  });

  it.each([
    [3_999, 0],
    [4_000, 1],
  ])('is reported from five seconds on: a reset in %i ms', async (ms, reported) => {
    const waits: (number | undefined)[] = [];
    const quota = await endedWith(head(429, 0, clock.now() + ms + 60), { onWait: (until) => waits.push(until) });
    const next = entering(quota);
    await settle(40);
    expect([events('quota.wait').length, waits.length, waitsOf(clock)]).toEqual([reported, reported, [ms + 1_000]]);
    clock.pass(ms + 1_000);
    await settle(40);
    expect(next.permit).toBeDefined();
    expect(waits).toHaveLength(2 * reported);
  });

  it.each([
    [600_000, true],
    [599_999, false],
  ])('of exactly the allowed length begins: %i ms, %s', async (maxWaitMs, isBegun) => {
    const quota = await endedWith(head(429, 0, clock.now() + 599_060), { maxWaitMs });
    const next = entering(quota);
    await settle(40);
    expect(next.error === undefined).toBe(isBegun);
    if (!isBegun)
      expect(next.error).toMatchObject({ kind: 'transient', internal: 'quota: the wait is longer than allowed' });
  });
});

describe('a 429 beside other exports', () => {
  it('is reported with how many remain, and not again by later answers', async () => {
    const quota = openQuota();
    const first = await quota.enter(signal);
    await first.answered(head(200, 50, clock.now() + HOUR));
    const second = await quota.enter(signal);
    const third = await quota.enter(signal);
    await second.answered(head(429, 40, clock.now() + HOUR));
    await third.answered(head(200, 39, clock.now() + HOUR));
    expect(events('quota.concurrency')).toMatchObject([{ level: 'warn', fields: { at_once: 2 } }]);
  });
});

describe('the quota', () => {
  it('releases the slot of a permit granted at the moment of an abort', async () => {
    const controller = new AbortController();
    const clock = new ManualClock();
    const quota = openTestQuota({ clock, logger: silentLogger, stateRoot: undefined });
    const time = clock.now();
    clock.now = () => {
      controller.abort(new Error('enough'));
      return time;
    };
    await expect(quota.enter(controller.signal)).rejects.toThrow('enough');
    await settle(40);
    clock.now = () => time + 60_000;
    expect(quota.forecast(9)).toMatchObject({ startableNow: 5, left: 99 });
  });
});

describe('processes whose exports are refused because none are left, without a reset', () => {
  it('ask again one at a time, after the pause that is theirs together', async () => {
    const stop = new AbortController();
    const began = clock.now();
    const sent: number[] = [];
    const ask = async (quota: ExportQuota) => {
      for (;;) {
        const permit = await quota.enter(stop.signal);
        sent.push(clock.now() - began);
        await permit.answered(head(429, 0));
        await permit.release();
      }
    };
    const asking = [openQuota(), openQuota(), openQuota()].map((quota) => ask(quota).catch(() => {}));
    await clock.passUntil(() => sent.length > 5, HOUR, 5_000);
    stop.abort();
    await Promise.all(asking);
    const pauses = sent.slice(1).map((at, i) => Math.floor((at - (sent[i] ?? 0)) / 60_000));
    expect(pauses).toEqual([1, 2, 4, 8, 15]);
  });
});
