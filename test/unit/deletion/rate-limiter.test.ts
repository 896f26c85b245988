import { describe, expect, it } from 'vitest';
import { RateLimiter } from '../../../src/erasure/rate-limiter.ts';
import type { DeletionAnswer } from '../../../src/service/delete/client.ts';
import { quickClock } from '../../support/deletion/deletions.ts';

const never = new AbortController().signal;
const answer = (kind: DeletionAnswer['kind'], remaining?: number, resetAt?: number): DeletionAnswer => ({
  kind,
  code: 'x',
  status: 200,
  message: 'x',
  limits: { remaining, resetAt, retryAt: undefined },
});

async function sendsOf(requestsPerMinute: number, count: number): Promise<number[]> {
  const clock = quickClock();
  const limiter = new RateLimiter(clock, { requestsPerMinute, maxConcurrentRequests: 5 });
  const sent: number[] = [];
  for (let i = 0; i < count; i++) {
    await limiter.acquire(never);
    limiter.release(undefined);
    sent.push(clock.now());
  }
  return sent;
}

describe('the rate limiter', () => {
  it.each([1, 7, 60, 1_000, 5_000, 9_500])('never sends more than %i in any minute', async (rate) => {
    const sent = await sendsOf(rate, Math.min(3 * rate, 12_000) + 2);
    let first = 0;
    for (let i = 0; i < sent.length; i++) {
      while (sent[i] - sent[first] >= 60_000) first++;
      expect(i - first + 1).toBeLessThanOrEqual(rate);
    }
  });

  it('lets requests be announced no faster than they may be sent: a run that is killed leaves few in doubt', async () => {
    const clock = quickClock();
    const limiter = new RateLimiter(clock, { requestsPerMinute: 60, maxConcurrentRequests: 20 });
    const began = clock.now();
    for (let i = 0; i < 40; i++) await limiter.waitForTurn(never);
    expect(clock.now() - began).toBeGreaterThan(38_000);
  });

  it('never sends more in any minute when many were waiting', async () => {
    const clock = quickClock();
    const limiter = new RateLimiter(clock, { requestsPerMinute: 60, maxConcurrentRequests: 20 });
    const sent: number[] = [];
    const begin = clock.now();
    await limiter.acquire(never);
    limiter.release(answer('wait', 0, begin + 120_000));
    const held = Array.from({ length: 20 }, () => limiter.acquire(never).then(() => sent.push(clock.now())));
    await Promise.all(held);
    for (let i = 0; i < 60; i++) {
      limiter.release(answer('done'));
      await limiter.acquire(never);
      sent.push(clock.now());
    }
    expect(Math.min(...sent)).toBeGreaterThanOrEqual(begin + 120_000);
    for (const first of sent) expect(sent.filter((at) => at >= first && at < first + 60_000).length).toBeLessThan(61);
  });

  it('waits no longer when the clock is set back', async () => {
    const clock = quickClock();
    let setBackMs = 0;
    const setBack = { ...clock, now: () => clock.now() - setBackMs };
    const limiter = new RateLimiter(setBack, { requestsPerMinute: 60, maxConcurrentRequests: 20 });
    const began = clock.now();
    await limiter.acquire(never);
    limiter.release(answer('wait', 0, began + 10_000));
    setBackMs = 3_600_000;
    expect(limiter.pausedMs).toBe(10_000);
    for (let i = 0; i < 3; i++) await limiter.acquire(never);
    expect(clock.now() - began).toBeLessThan(15_000);
  });

  it('waits for the later of Reset and Retry-After', async () => {
    for (const [reset, retry] of [
      [20_000, 90_000],
      [90_000, 20_000],
    ]) {
      const clock = quickClock();
      const limiter = new RateLimiter(clock, { requestsPerMinute: 60, maxConcurrentRequests: 20 });
      const now = clock.now();
      await limiter.acquire(never);
      limiter.release({ ...answer('wait'), limits: { remaining: 0, resetAt: now + reset, retryAt: now + retry } });
      expect(limiter.pausedMs).toBe(90_000);
    }
  });

  it.each([60, 5_000, 9_500])('reaches at least 95 %% of %i a minute', async (rate) => {
    const sent = await sendsOf(rate, rate + 10);
    const inMinute = sent.filter((at) => at - sent[0] < 60_000).length;
    expect(inMinute).toBeGreaterThanOrEqual(0.95 * rate);
  });

  it('spreads requests evenly', async () => {
    const sent = await sendsOf(600, 100);
    const gaps = sent.slice(1).map((at, i) => at - sent[i]);
    expect(Math.max(...gaps.slice(2))).toBeLessThan(150);
    expect(Math.min(...gaps.slice(2))).toBeGreaterThan(90);
  });

  it('stops at a 429 until the reset that it names', async () => {
    const clock = quickClock();
    const limiter = new RateLimiter(clock, { requestsPerMinute: 5_000, maxConcurrentRequests: 5 });
    await limiter.acquire(never);
    const reset = clock.now() + 42_000;
    limiter.release(answer('wait', 0, reset));
    await limiter.acquire(never);
    expect(clock.now()).toBeGreaterThanOrEqual(reset);
  });

  it('also stops requests that were admitted when the 429 arrived', async () => {
    const clock = quickClock();
    const limiter = new RateLimiter(clock, { requestsPerMinute: 60, maxConcurrentRequests: 5 });
    await limiter.acquire(never);
    const next = limiter.acquire(never);
    // Long enough for it to wait for its send, which is a second away.
    await Promise.resolve();
    const reset = clock.now() + 42_000;
    limiter.release(answer('wait', 0, reset));
    await next;
    expect(clock.now()).toBeGreaterThanOrEqual(reset);
  });

  it('waits a minute after a 429 without a reset', async () => {
    const clock = quickClock();
    const limiter = new RateLimiter(clock, { requestsPerMinute: 5_000, maxConcurrentRequests: 5 });
    const start = clock.now();
    await limiter.acquire(never);
    limiter.release(answer('wait'));
    await limiter.acquire(never);
    expect(clock.now() - start).toBe(60_000);
  });

  it('keeps a fifth of the quota for other clients', async () => {
    const clock = quickClock();
    const limiter = new RateLimiter(clock, { requestsPerMinute: 5_000, maxConcurrentRequests: 5 });
    const reset = clock.now() + 30_000;
    await limiter.acquire(never);
    limiter.release(answer('done', 9_999, reset));
    await limiter.acquire(never);
    limiter.release(answer('done', 2_001, reset));
    expect(limiter.pausedMs).toBe(0);
    await limiter.acquire(never);
    limiter.release(answer('done', 1_999, reset));
    expect(limiter.pausedMs).toBe(reset - clock.now());
  });

  it('takes a quota as full after its reset, whatever was left before', async () => {
    const clock = quickClock();
    const limiter = new RateLimiter(clock, { requestsPerMinute: 5_000, maxConcurrentRequests: 5 });
    const reset = clock.now() + 30_000;
    for (let i = 0; i < 4; i++) await limiter.acquire(never);
    limiter.release(answer('done', 9_999, reset));
    limiter.release(answer('done', 2_002, reset));
    limiter.release(answer('done', 9_998, reset + 60_000));
    await limiter.acquire(never);
    await limiter.acquire(never);
    await limiter.acquire(never);
    limiter.release(answer('done', 9_997, reset + 60_000));
    expect(limiter.pausedMs).toBe(0);
  });

  it('uses the reserved fifth only as far as the configured rate requires', async () => {
    const clock = quickClock();
    const limiter = new RateLimiter(clock, { requestsPerMinute: 9_500, maxConcurrentRequests: 5 });
    const reset = clock.now() + 30_000;
    for (const remaining of [9_999, 600]) {
      await limiter.acquire(never);
      limiter.release(answer('done', remaining, reset));
    }
    expect(limiter.pausedMs).toBe(0);
    await limiter.acquire(never);
    limiter.release(answer('done', 499, reset));
    expect(limiter.pausedMs).toBe(reset - clock.now());
  });

  it('keeps a fifth of a quota that is smaller than the configured rate', async () => {
    const clock = quickClock();
    const limiter = new RateLimiter(clock, { requestsPerMinute: 5_000, maxConcurrentRequests: 5 });
    const reset = clock.now() + 30_000;
    for (const remaining of [999, 201]) {
      await limiter.acquire(never);
      limiter.release(answer('done', remaining, reset));
    }
    expect(limiter.pausedMs).toBe(0);
    await limiter.acquire(never);
    limiter.release(answer('done', 199, reset));
    expect(limiter.pausedMs).toBe(reset - clock.now());
  });

  it('never sends into an exhausted quota, counting requests under way', async () => {
    const clock = quickClock();
    const limiter = new RateLimiter(clock, { requestsPerMinute: 100_000, maxConcurrentRequests: 5 });
    const reset = clock.now() + 30_000;
    for (let i = 0; i < 3; i++) await limiter.acquire(never);
    limiter.release(answer('done', 2, reset));
    expect(limiter.pausedMs).toBe(reset - clock.now());
  });

  it('limits the number of requests under way', async () => {
    const limiter = new RateLimiter(quickClock(), { requestsPerMinute: 100_000, maxConcurrentRequests: 2 });
    await limiter.acquire(never);
    await limiter.acquire(never);
    let isIn = false;
    const third = limiter.acquire(never).then(() => {
      isIn = true;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(isIn).toBe(false);
    limiter.release(undefined);
    await third;
    expect(isIn).toBe(true);
  });

  it('takes the smallest Remaining among the answers of one minute, in any order', async () => {
    const clock = quickClock();
    const limiter = new RateLimiter(clock, { requestsPerMinute: 5_000, maxConcurrentRequests: 5 });
    const reset = clock.now() + 30_000;
    for (let i = 0; i < 3; i++) await limiter.acquire(never);
    limiter.release(answer('done', 9_999, reset));
    limiter.release(answer('done', 2_003, reset));
    for (let i = 0; i < 4; i++) await limiter.acquire(never);
    expect(limiter.pausedMs).toBe(0);
    limiter.release(answer('done', 9_000, reset));
    expect(limiter.pausedMs).toBe(reset - clock.now());
  });

  it('may use up a quota equal to the configured rate, and stops when nothing remains', async () => {
    const clock = quickClock();
    const limiter = new RateLimiter(clock, { requestsPerMinute: 5_000, maxConcurrentRequests: 5 });
    const reset = clock.now() + 30_000;
    for (const remaining of [4_999, 500]) {
      await limiter.acquire(never);
      limiter.release(answer('done', remaining, reset));
    }
    expect(limiter.pausedMs).toBe(0);
    await limiter.acquire(never);
    limiter.release(answer('done', 0, reset));
    expect(limiter.pausedMs).toBe(reset - clock.now());
  });

  it('keeps the known quota when an answer has no headers', async () => {
    const clock = quickClock();
    const limiter = new RateLimiter(clock, { requestsPerMinute: 5_000, maxConcurrentRequests: 5 });
    const reset = clock.now() + 30_000;
    for (const remaining of [9_999, undefined, 2_001]) {
      await limiter.acquire(never);
      limiter.release(answer('done', remaining, reset));
    }
    expect(limiter.pausedMs).toBe(0);
    await limiter.acquire(never);
    limiter.release(answer('done', 1_999, reset));
    expect(limiter.pausedMs).toBe(reset - clock.now());
  });

  const DAYS_400 = 400 * 24 * 60 * 60_000;
  it.each([
    ['none', undefined, 60_000],
    ['one that is past', -1, 60_000],
    ['one that is now', 0, 60_000],
    ['the next instant', 1, 1],
    ['one within 400 days', DAYS_400 - 1, DAYS_400 - 1],
    ['one that is 400 days away', DAYS_400, 60_000],
  ])('waits for a plausible reset, and a minute for another: %s', async (_name, after, wait) => {
    const clock = quickClock();
    const limiter = new RateLimiter(clock, { requestsPerMinute: 5_000, maxConcurrentRequests: 5 });
    await limiter.acquire(never);
    limiter.release(answer('wait', 0, after === undefined ? undefined : clock.now() + after));
    expect(limiter.pausedMs).toBe(wait);
  });

  it('waits for the latest reset of several 429s, which count as one', async () => {
    const clock = quickClock();
    const limiter = new RateLimiter(clock, { requestsPerMinute: 100_000, maxConcurrentRequests: 5 });
    for (let i = 0; i < 3; i++) await limiter.acquire(never);
    const now = clock.now();
    for (const after of [30_000, 42_000, 20_000]) limiter.release(answer('wait', 0, now + after));
    expect(limiter.pausedMs).toBe(now + 42_000 - clock.now());
    expect(limiter.waits).toBe(1);
    await limiter.acquire(never);
    limiter.release(answer('wait', 0, undefined));
    expect(limiter.waits).toBe(2);
  });

  it('sleeps only for a positive time', async () => {
    const clock = quickClock();
    const limiter = new RateLimiter(clock, { requestsPerMinute: 60, maxConcurrentRequests: 5 });
    await limiter.acquire(never);
    // The next send is 1,010 ms behind the first, which might have been 50 ms earlier.
    await clock.sleep(960);
    await limiter.acquire(never);
    expect(clock.slept).toEqual([960]);
    await limiter.acquire(never);
    expect(clock.slept).toEqual([960, 1_010]);
  });

  it('takes no slot for a request that is stopped before it waits', async () => {
    const clock = quickClock();
    const limiter = new RateLimiter(clock, { requestsPerMinute: 60, maxConcurrentRequests: 5 });
    const stopped = AbortSignal.abort(new Error('stopped'));
    for (let i = 0; i < 3; i++) await expect(limiter.acquire(stopped)).rejects.toThrow('stopped');
    await limiter.acquire(never);
    expect(clock.slept).toEqual([]);
  });
});
