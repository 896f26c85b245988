import { describe, expect, it } from 'vitest';
import { Ledger } from '../../../src/erasure/ledger/ledger.ts';
import { RateLimiter } from '../../../src/erasure/rate-limiter.ts';
import { type RequestSettings, sendRequests } from '../../../src/erasure/requests.ts';
import type { DeletionAnswer } from '../../../src/service/deletion-client.ts';
import { LeapingClock } from '../../support/clock.ts';
import { newFolder } from '../../support/new-folder.ts';
import { logRecorder } from '../../support/service/service.ts';

type Kind = DeletionAnswer['kind'];
const answerOf = (kind: Kind, remaining?: number, resetAt?: number) => ({
  kind,
  code: kind,
  status: 200,
  message: `answer ${kind}`,
  quotaReport: { remaining, resetAt, retryAt: undefined },
});

type Answering = (id: string, nth: number, hasConfirmed: boolean) => DeletionAnswer | Promise<DeletionAnswer>;
interface SendOptions extends Partial<RequestSettings> {
  readonly ledgerDir?: string;
  readonly signal?: AbortSignal;
  /** Called before each line that the requests write, with its kind. */
  readonly onLine?: (kind: string) => void;
}

async function send(ids: readonly string[], answer: Answering, options: SendOptions = {}) {
  const { ledgerDir, signal = new AbortController().signal, onLine, ...settings } = options;
  const clock = new LeapingClock();
  const { events, logger } = logRecorder();
  const seen: string[] = [];
  const service = { baseUrl: 'https://host', serviceId: 's', ledgerDir, ledgerKey: undefined };
  const ledger = await Ledger.open(service, { clock, isPlan: false, ids });
  await ledger.begin({ ids: ids.length, places: [], requests: true });
  const { write } = ledger;
  ledger.write = (content) => {
    for (const { kind } of [content].flat()) onLine?.(kind);
    return write.call(ledger, content);
  };
  const deleter = {
    async deleteProfile(id: string, _: AbortSignal, hasConfirmed: boolean) {
      seen.push(id);
      return answer(id, seen.filter((seenId) => seenId === id).length, hasConfirmed);
    },
  };
  const decisions = new Map<string, string>();
  const listedIds = ids.map((id, i) => ({ id, rowNumber: i + 1, requestedAt: undefined }));
  const requested = await sendRequests(listedIds, {
    ledger,
    settings: { deleter, again: false, requestsPerMinute: 60_000, maxConcurrentRequests: 4, ...settings },
    clock,
    random: () => 1,
    logger,
    signal,
    onDecided: (id, decision) => void decisions.set(id, decision),
  });
  return {
    ...requested,
    seen,
    decisions: Object.fromEntries(decisions),
    slept: clock.slept,
    events,
    history: ledger.history,
  };
}

describe('the requests of a run', () => {
  it('go one after the other until the service has decided the first', async () => {
    let active = 0;
    const most: number[] = [];
    await send(['a', 'b', 'c', 'd', 'e', 'f'], async (id, nth) => {
      most.push(++active);
      await new Promise((resolve) => setImmediate(resolve));
      active--;
      return answerOf(id === 'a' && nth < 3 ? 'retry' : 'done');
    });
    expect(most.slice(0, 3)).toEqual([1, 1, 1]);
    expect(Math.max(...most)).toBeGreaterThan(1);
  });

  it('know whether the service has confirmed a deletion before', async () => {
    const seen: boolean[] = [];
    const answer: Answering = (id, _, hasConfirmed) => {
      seen.push(hasConfirmed);
      return answerOf(id === 'no' ? 'rejected' : 'done');
    };
    await send(['no', 'yes', 'more'], answer, { maxConcurrentRequests: 1 });
    expect(seen).toEqual([false, false, true]);
  });

  it('are repeated where the outcome is unknown: six times without an answer, twice with an unclear one', async () => {
    const kinds: Readonly<Record<string, Kind>> = { ok: 'done', no: 'rejected', down: 'retry', odd: 'undecided' };
    const { counts, decisions, seen } = await send(Object.keys(kinds), (id) => answerOf(kinds[id]));
    expect(decisions).toEqual({ ok: 'done', no: 'rejected' });
    expect(seen.filter((id) => id === 'down')).toHaveLength(6);
    expect(seen.filter((id) => id === 'odd')).toHaveLength(2);
    expect(counts).toMatchObject({ done: 1, rejected: 1, requests: 10, rejected_codes: { rejected: 1 } });
    expect(counts.undecided_codes).toEqual({ retry: 1, undecided: 1 });
  });

  it('go on while the service answers now and then', async () => {
    const silent = (letter: string) => Array.from({ length: 9 }, (_, i) => `${letter}${i}`);
    const ids = ['first', ...silent('a'), 'second', ...silent('b'), 'third'];
    const answer: Answering = (id) => answerOf(id.length > 2 ? 'done' : 'retry');
    const { counts, decisions } = await send(ids, answer, { maxConcurrentRequests: 1 });
    expect([counts.done, decisions.third]).toEqual([3, 'done']);
  });

  it('end when ten ids in a row had no answer', async () => {
    const ids = Array.from({ length: 50 }, (_, i) => `p${i}`);
    const { seen, events } = await send(ids, () => answerOf('retry'));
    expect(new Set(seen).size).toBe(10);
    expect(events.map(({ event }) => event)).toContain('erase.given_up');
  });

  it('wait for the limit without counting that as an attempt', async () => {
    const { decisions, slept, seen } = await send(['a'], (_, nth) => answerOf(nth < 9 ? 'wait' : 'done'));
    expect([decisions.a, seen.length]).toEqual(['done', 9]);
    expect(slept.filter((ms) => ms === 60_000)).toHaveLength(8);
  });

  it('have their time to finish if a stop comes once their line is on the disk', async () => {
    const stop = new AbortController();
    const onLine = (kind: string) => kind === 'before' && stop.abort(new Error('stopped'));
    const { decisions, seen } = await send(['a', 'b'], () => answerOf('done'), { signal: stop.signal, onLine });
    expect([decisions, seen]).toEqual([{ a: 'done' }, ['a']]);
  });

  it('may have deleted whom a stop has cut off: a rejection is then the last answer', async () => {
    const ledgerDir = newFolder();
    const stop = new AbortController();
    const cutOff = () => Promise.reject(stop.abort());
    await send(['a'], cutOff, { ledgerDir, signal: stop.signal });
    const { history } = await send(['a'], () => answerOf('rejected'), { ledgerDir });
    expect(history.of('a').isFinal).toBe(true);
  });

  it.each(['wait', 'stop'] as const)('count the code of an answer that ends them: %s', async (kind) => {
    const { counts } = await send(['a', 'b'], () => answerOf(kind));
    expect(counts.undecided_codes).toEqual({ [kind]: 1 });
  });
});

describe('the pace of requests', () => {
  it('never exceeds the rate in any minute', async () => {
    const clock = new LeapingClock(0);
    const limiter = new RateLimiter(clock, 600);
    const sent: number[] = [];
    for (let i = 0; i < 1_500; i++) {
      await limiter.waitForTurn(new AbortController().signal);
      sent.push(clock.now());
    }
    const most = Math.max(...sent.map((from) => sent.filter((at) => at >= from && at < from + 60_000).length));
    expect([most <= 600, most > 580]).toEqual([true, true]);
  });

  it('pauses until the reset, or as Retry-After says if that is too far, else for a minute', async () => {
    const clock = new LeapingClock(0);
    const limiter = new RateLimiter(clock, 600);
    limiter.noteLimits(answerOf('done', 1, 5_000));
    expect(limiter.pausedMs).toBe(0);
    limiter.noteLimits(answerOf('done', 0, 5_000));
    expect(limiter.pausedMs).toBe(5_000);
    limiter.noteLimits(answerOf('wait', 0, 10 * 3_600_000));
    expect(limiter.pausedMs).toBe(60_000);
    const quotaReport = { remaining: 0, resetAt: 10 * 3_600_000, retryAt: 600_000 };
    limiter.noteLimits({ ...answerOf('wait'), quotaReport });
    expect(limiter.pausedMs).toBe(600_000);
    await limiter.waitForTurn(new AbortController().signal);
    expect(clock.now()).toBeGreaterThanOrEqual(600_000);
  });
});
