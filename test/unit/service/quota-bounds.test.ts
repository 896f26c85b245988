import { describe, expect, it } from 'vitest';
import {
  type AnswerHead,
  afterHead,
  budgetOf,
  concurrencyOf,
  decide,
  EMPTY_STATE,
  forecastOf,
  HOUR_MS,
  type QuotaState,
  refusedUntil,
} from '../../../src/service/quota.ts';
import { LIMITS, MINUTE, NOW, report, sent, slot, state } from '../../support/service/quota.ts';

const head = (status: number, remaining?: number, resetAt?: number, retryAt?: number): AnswerHead => ({
  status,
  limited: status === 429,
  limits: { remaining, resetAt, retryAt },
});
const answeredBy = (given: QuotaState, n: number, answer: AnswerHead, random = 0) =>
  afterHead(given, n, answer, { limits: LIMITS, now: NOW, random: () => random });

describe('what is left of the hour', () => {
  const left = (given: QuotaState, now = NOW, limits = LIMITS) => budgetOf(given, limits, now);

  it('is what the service said until a second behind its reset, then one question, and then our own count', () => {
    const told = state({ sent: sent(40), report: report(3, NOW, { upTo: 40 }) });
    expect(left(told, NOW + 999)).toEqual({ left: 3, nextAt: NOW + 1_000, known: true });
    expect(left(told, NOW + 1_000)).toMatchObject({ left: 60, known: false });
    expect(left({ ...told, sent: sent(140) }, NOW + 1_000)).toMatchObject({ left: 1, known: false });
    expect(left({ ...told, sent: sent(140, NOW) }, NOW + 1_000)).toMatchObject({ left: -40, known: true });
    expect(left({ ...told, sent: sent(140, NOW - 1) }, NOW + 1_000)).toMatchObject({ left: 1, known: false });
    const across = [...sent(139, NOW - 1), { n: 140, at: NOW }];
    expect(left({ ...told, sent: across }, NOW + 1_000)).toMatchObject({ left: -40, known: true });
  });

  it('is what the service said for an hour where it named no reset', () => {
    const told = state({ sent: sent(9), report: report(3, undefined, { at: NOW, upTo: 7 }) });
    expect(left(told, NOW + HOUR_MS - 1)).toEqual({ left: 1, nextAt: NOW + HOUR_MS, known: true });
    expect(left(told, NOW + HOUR_MS)).toMatchObject({ left: 91 });
  });

  it('is less by those under way when it was said, and by those sent since', () => {
    const told = state({ sent: sent(9), report: report(9, NOW + MINUTE, { upTo: 7, unanswered: 3 }) });
    expect(left(told).left).toBe(9 - 3 - 2);
  });

  it('is our own count, known as long as the service answers without saying more', () => {
    const counted = state({ sent: sent(9), unreportedAt: NOW });
    expect(left(counted, NOW + HOUR_MS - 1)).toMatchObject({ left: 91, known: true });
    expect(left(counted, NOW + HOUR_MS)).toMatchObject({ known: false });
    expect(left({ ...EMPTY_STATE })).toEqual({ left: 100, nextAt: NOW + HOUR_MS, known: false });
  });

  it('is more when the oldest that count are an hour old', () => {
    const spread = state({ sent: Array.from({ length: 7 }, (_, i) => ({ n: i + 1, at: NOW - 70 + 10 * i })) });
    const of = (exportsPerHour: number) => left(spread, NOW, { ...LIMITS, exportsPerHour });
    expect(of(5)).toMatchObject({ left: -2, nextAt: NOW - 50 + HOUR_MS + 1 });
    expect(of(7)).toMatchObject({ left: 0, nextAt: NOW - 70 + HOUR_MS + 1 });
    expect(of(9)).toMatchObject({ left: 2, nextAt: NOW - 70 + HOUR_MS + 1 });
  });
});

describe('whether an export may be sent', () => {
  it('a stop ends at its very end', () => {
    const blocked = { at: NOW - 5, until: NOW + 1 };
    expect(decide(state({ blocked }), LIMITS, NOW)).toEqual({ kind: 'until', at: NOW + 1, why: 'refused' });
    expect(decide(state({ blocked }), LIMITS, NOW + 1)).toEqual({ kind: 'go' });
  });

  it('waits for the answers still to come, and for none of exports that are over', () => {
    const over = slot(1, { answered: false, freeAt: NOW + 20 });
    const open = slot(2, { answered: false });
    const spent = { sent: sent(3), report: report(0, NOW + MINUTE) };
    expect(decide(state({ ...spent, slots: [over, open, slot(3)] }), LIMITS, NOW)).toEqual({
      kind: 'change',
      slots: [open],
    });
    expect(decide(state({ ...spent, slots: [over, slot(3)] }), LIMITS, NOW)).toMatchObject({
      kind: 'until',
      why: 'hour',
    });
    const { unreportedAt: _, ...unknown } = state({ sent: sent(2), slots: [over, slot(2)] });
    expect(decide(unknown, LIMITS, NOW)).toEqual({ kind: 'go' });
    expect(decide({ ...unknown, slots: [open] }, LIMITS, NOW)).toMatchObject({ kind: 'change' });
  });

  it('the last place and the last export of the hour are taken', () => {
    const slots = [1, 2, 3, 4].map((n) => slot(n));
    expect(decide(state({ sent: sent(99), slots }), LIMITS, NOW)).toEqual({ kind: 'go' });
    expect(decide(state({ sent: sent(5), slots: [...slots, slot(5)] }), LIMITS, NOW)).toMatchObject({ kind: 'change' });
    expect(decide(state({ sent: sent(100) }), LIMITS, NOW)).toMatchObject({ kind: 'until' });
  });
});

describe('how many may run at once', () => {
  const within = (ms: number, times: number, to = 1) =>
    concurrencyOf(state({ lowered: { to, at: NOW, times } }), LIMITS, NOW + ms);

  it('becomes more at the end of each quarter of an hour, twice as late each time it was wrong, 32 times at most', () => {
    expect([15 * MINUTE - 1, 15 * MINUTE].map((ms) => within(ms, 1))).toEqual([1, 2]);
    expect([60 * MINUTE - 1, 60 * MINUTE].map((ms) => within(ms, 3))).toEqual([1, 2]);
    for (const times of [6, 7, 50])
      expect([480 * MINUTE - 1, 480 * MINUTE].map((ms) => within(ms, times))).toEqual([1, 2]);
  });

  it('is never less than was learned, by whatever clock, and never more than configured', () => {
    expect([within(-HOUR_MS, 1, 3), within(0, 1, 9), within(99 * HOUR_MS, 1, 2)]).toEqual([3, 5, 5]);
  });
});

describe('a refusal', () => {
  it('beside others that run lowers to as many as these, and to fewer where fewer were allowed already', () => {
    const slots = [1, 2, 3, 4].map((n) => slot(n, n === 4 ? { freeAt: NOW + 20 } : {}));
    const before = state({ sent: sent(4), slots });
    expect(answeredBy(before, 1, head(429)).lowered).toEqual({ to: 2, at: NOW, times: 1 });
    expect(answeredBy(before, 9, head(429)).lowered).toEqual({ to: 3, at: NOW, times: 1 });
    const lowered = { to: 1, at: NOW - MINUTE, times: 4 };
    expect(answeredBy({ ...before, lowered }, 9, head(429)).lowered).toEqual({ to: 1, at: NOW, times: 5 });
    expect(answeredBy(before, 1, head(429)).blocked).toEqual({ at: NOW, until: NOW + 1_000 });
  });

  it('alone with some left is asked again after a pause that is spread and twice as long each time', () => {
    const before = state({ sent: sent(1), slots: [slot(1)] });
    const first = answeredBy(before, 1, head(429, 9), 0.25);
    expect(first).toMatchObject({ exclusiveRefusals: 1, refusals: 0, lowered: { to: 1, at: NOW, times: 1 } });
    expect(first.blocked).toEqual({ at: NOW, until: NOW + 2_500 });
    const second = answeredBy(first, 1, head(429, 9), 0.5);
    expect(second).toMatchObject({ exclusiveRefusals: 2, lowered: { times: 2 }, blocked: { until: NOW + 6_000 } });
    expect(answeredBy({ ...before, exclusiveRefusals: 3 }, 1, head(429, 9, NOW + MINUTE))).toMatchObject({
      refusals: 1,
      exclusiveRefusals: 3,
      blocked: { at: NOW, until: NOW + MINUTE + 1_000 },
    });
    expect(answeredBy(before, 1, head(429, 0, NOW + MINUTE))).toMatchObject({ refusals: 1, exclusiveRefusals: 0 });
  });

  it('without an instant waits a minute and longer each time, spread over a quarter more', () => {
    const none = { remaining: undefined, resetAt: undefined, retryAt: undefined };
    const waits = (random: number) =>
      [0, 1, 4, 99].map((before) => refusedUntil(none, before, NOW, () => random) - NOW);
    expect(waits(0)).toEqual([MINUTE, 2 * MINUTE, 15 * MINUTE, 15 * MINUTE]);
    expect(waits(0.5)).toEqual([67_500, 135_000, 1_012_500, 1_012_500]);
    expect(refusedUntil({ ...none, resetAt: NOW }, 0, NOW, () => 0)).toBe(NOW + MINUTE);
    expect(refusedUntil({ ...none, retryAt: NOW + 1 }, 0, NOW, () => 1)).toBe(NOW + 1_001);
  });
});

describe('what is left, as an answer says', () => {
  const before = state({ sent: sent(4), slots: [slot(1, { answered: false }), slot(2, { answered: false })] });

  it('counts those under way beside it, and not those that are over', () => {
    const slots = [
      slot(1, { answered: false }),
      slot(2, { answered: false, freeAt: NOW }),
      slot(3, { answered: false }),
    ];
    const { report: told } = answeredBy({ ...before, slots: [...slots, slot(4)] }, 3, head(200, 7));
    expect(told).toEqual({ remaining: 7, at: NOW, by: 3, upTo: 4, unanswered: 1 });
  });

  it('is believed of an older export only where it is less, or where what was said before is over', () => {
    const current = { ...before, report: report(5, NOW + MINUTE, { upTo: 3, unanswered: 0 }) };
    expect(answeredBy(current, 3, head(200, 5)).report).toMatchObject({ remaining: 5, by: 1, unanswered: 0 });
    expect(answeredBy(current, 3, head(200, 4)).report).toMatchObject({ remaining: 4, by: 3 });
    expect(answeredBy(current, 4, head(200, 9)).report).toMatchObject({ remaining: 9, by: 4 });
  });

  it('none, and no reset, is an hour behind the oldest that counts, or behind now', () => {
    expect(answeredBy(before, 1, head(200, 0)).report).toMatchObject({
      resetAt: NOW - MINUTE + HOUR_MS,
      isResetAssumed: true,
    });
    expect(answeredBy({ ...before, sent: [] }, 1, head(200, 0)).report?.resetAt).toBe(NOW + HOUR_MS);
    expect(answeredBy(before, 1, head(200, 1)).report).not.toHaveProperty('resetAt');
    expect(answeredBy(before, 1, head(200, 0, NOW + 5)).report).not.toHaveProperty('isResetAssumed');
  });

  it('forgets refusals with a success alone', () => {
    const refused = { ...before, refusals: 3, exclusiveRefusals: 2 };
    expect(answeredBy(refused, 1, head(200))).toMatchObject({ refusals: 0, exclusiveRefusals: 0, unreportedAt: NOW });
    expect(answeredBy(refused, 1, head(200, 5))).toMatchObject({ refusals: 0, exclusiveRefusals: 0 });
    expect(answeredBy(refused, 1, head(500, 5))).toMatchObject({
      refusals: 3,
      exclusiveRefusals: 2,
      report: { remaining: 5 },
    });
    expect(answeredBy(refused, 1, head(500)).unreportedAt).toBe(before.unreportedAt);
  });
});

describe('the forecast', () => {
  it('is as many as are left, free and wanted, and when the last of the others may start', () => {
    const of = (given: QuotaState, count: number, limits = LIMITS) => forecastOf(given, limits, count, NOW);
    const told = state({ report: report(2, NOW + MINUTE) });
    const nextAt = NOW + MINUTE + 1_000;
    expect(of(told, 2)).toEqual({ startableNow: 2, left: 2, earliestEnd: NOW });
    expect(of(told, 3)).toEqual({ startableNow: 2, left: 2, earliestEnd: nextAt });
    expect(of(told, 102).earliestEnd).toBe(nextAt);
    expect(of(told, 103).earliestEnd).toBe(nextAt + HOUR_MS);
    expect(of({ ...told, report: report(-3, NOW + MINUTE) }, 100)).toEqual({
      startableNow: 0,
      left: 0,
      earliestEnd: nextAt,
    });
    const blocked = { at: NOW, until: NOW + 2 * MINUTE };
    expect(of({ ...told, blocked }, 3)).toEqual({ startableNow: 0, left: 0, earliestEnd: blocked.until });
    expect(of({ ...told, blocked: { at: NOW - 5, until: NOW } }, 1)).toEqual({
      startableNow: 1,
      left: 2,
      earliestEnd: NOW,
    });
    expect(of(state({ slots: [1, 2, 3, 4, 5, 6].map((n) => slot(n)) }), 1).startableNow).toBe(0);
    expect(of(EMPTY_STATE, 3, { ...LIMITS, exportsPerHour: 0 }).earliestEnd).toBe(NOW + 3 * HOUR_MS);
  });
});
