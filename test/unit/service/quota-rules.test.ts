import { describe, expect, it } from 'vitest';
import { HOUR_MS } from '../../../src/base/durations.ts';
import {
  type AnswerHead,
  afterAnswer,
  budgetOf,
  concurrencyOf,
  decide,
  forecastOf,
  refusedUntil,
} from '../../../src/service/quota/rules.ts';
import { EMPTY_STATE, pruned, type QuotaState } from '../../../src/service/quota/state.ts';
import { LIMITS, MINUTE, NOW, report, sent, slot, state } from '../../support/service/quota.ts';

const now = { limits: LIMITS, now: NOW, random: () => 0 };

const head = (status: number, remaining?: number, resetAt?: number, retryAt?: number): AnswerHead => ({
  status,
  limited: status === 429,
  limits: { remaining, resetAt, retryAt },
});

describe('the decision on an export', () => {
  const rows: [string, QuotaState, unknown][] = [
    ['the first export of a new state: go', EMPTY_STATE, { kind: 'go' }],
    [
      'the second export while the first has no answer: wait for it',
      { ...EMPTY_STATE, sent: sent(1), next: 2, slots: [slot(1, { answered: false })] },
      { kind: 'change' },
    ],
    ['the hundredth export without limit headers: go', state({ sent: sent(99), slots: [slot(99)] }), { kind: 'go' }],
    [
      'the export after a hundred in the hour: wait until the oldest is an hour old',
      state({ sent: sent(100) }),
      { kind: 'until', at: NOW - MINUTE + HOUR_MS + 1 },
    ],
    [
      'the sixth export beside five: wait for one of them',
      state({ sent: sent(5), slots: sent(5).map(({ n }) => slot(n)) }),
      { kind: 'change' },
    ],
    [
      'an export while a slot is about to be released: wait for it',
      state({ sent: sent(5), slots: sent(5).map(({ n }) => slot(n, n === 1 ? { freeAt: NOW + 20 } : {})) }),
      { kind: 'change' },
    ],
    [
      'an export of which the service has more left than our count: go',
      state({ sent: sent(100), report: report(40, NOW + MINUTE) }),
      { kind: 'go' },
    ],
    [
      'an export when Remaining is zero: wait for the reset',
      state({ sent: sent(3), report: report(0, NOW + 20 * MINUTE) }),
      { kind: 'until', at: NOW + 20 * MINUTE + 1_000 },
    ],
    [
      'an export when those sent since the answer used up Remaining: wait for the reset',
      state({ sent: sent(12), report: report(2, NOW + MINUTE, { lastSent: 10 }) }),
      { kind: 'until', at: NOW + MINUTE + 1_000 },
    ],
    [
      'an export when those under way at the answer may use up Remaining: wait for their answers',
      state({
        sent: sent(4),
        report: report(2, NOW + MINUTE, { lastSent: 4, unanswered: 2 }),
        slots: [slot(4, { answered: false })],
      }),
      { kind: 'change' },
    ],
    [
      'the first export after a reset: go, whatever our own count is',
      state({ sent: sent(100, NOW - 2 * MINUTE), report: report(0, NOW - MINUTE) }),
      { kind: 'go' },
    ],
    [
      'an export after an assumed reset: our own count decides',
      state({ sent: sent(100, NOW - 2 * MINUTE), report: report(0, NOW - MINUTE, { isResetAssumed: true }) }),
      { kind: 'until', at: NOW - 2 * MINUTE + HOUR_MS + 1 },
    ],
    [
      'the second export after a reset: wait for the answer to the first',
      {
        ...EMPTY_STATE,
        sent: [...sent(9), { n: 10, at: NOW }],
        report: report(0, NOW - MINUTE, { lastSent: 9 }),
        slots: [slot(10, { answered: false })],
      },
      { kind: 'change' },
    ],
    [
      'the fourth export beside three after a reduced concurrency: wait for one of them',
      state({ slots: [slot(1), slot(2), slot(3)], reduced: { limit: 3, at: NOW, times: 1 } }),
      { kind: 'change' },
    ],
  ];
  it.each(rows)('for %s', (_name, given, decision) => {
    expect(decide(given, LIMITS, NOW)).toMatchObject(decision as object);
  });
});

describe('the quota after an answer', () => {
  const running = (count: number) =>
    state({ sent: sent(count), slots: sent(count).map(({ n }) => slot(n, { answered: n !== 1 })) });

  it('takes the Remaining of a success, less the exports that the service may not know of', () => {
    const before = state({ sent: sent(4), slots: [slot(3, { answered: false }), slot(4, { answered: false })] });
    const after = afterAnswer(before, 3, head(200, 50, NOW + MINUTE), now);
    expect(after.report).toEqual({ remaining: 50, resetAt: NOW + MINUTE, at: NOW, lastSent: 4, unanswered: 1 });
    expect(after.slots[0].answered).toBe(true);
  });

  it('does not increase what remains after a late, older answer', () => {
    const before = state({ sent: sent(4), report: report(40, NOW + MINUTE, { lastSent: 4, unanswered: 2 }) });
    expect(budgetOf(before, LIMITS, NOW).left).toBe(38);
    expect(budgetOf(afterAnswer(before, 2, head(200, 42, NOW + MINUTE), now), LIMITS, NOW).left).toBe(39);
    expect(afterAnswer(before, 2, head(200, 42, NOW + MINUTE), now).report?.remaining).toBe(40);
    expect(afterAnswer(before, 2, head(200, 12, NOW + MINUTE), now).report?.remaining).toBe(12);
    expect(afterAnswer(before, 5, head(200, 99, NOW + MINUTE), now).report?.remaining).toBe(99);
  });

  it('takes the least Remaining of concurrent exports, in any order', () => {
    const unanswered = { answered: false };
    const before = state({ sent: sent(4), slots: [slot(2, unanswered), slot(3, unanswered), slot(4, unanswered)] });
    // Processes that are slow to send and to read: the second came last to the service, and is answered first.
    let at = afterAnswer(before, 2, head(200, 0, NOW + MINUTE), now);
    for (const [n, remaining] of [
      [3, 2],
      [4, 1],
    ]) {
      expect(decide(at, LIMITS, NOW)).toMatchObject({ kind: 'change' });
      at = afterAnswer(at, n, head(200, remaining, NOW + MINUTE), now);
    }
    expect(decide(at, LIMITS, NOW)).toMatchObject({ kind: 'until' });
    expect(afterAnswer(at, 5, head(200, 99, NOW + 2 * MINUTE), now).report?.remaining).toBe(99);
  });

  it('is unchanged by a 503 without headers', () => {
    const before: QuotaState = { ...EMPTY_STATE, sent: sent(1), next: 2 };
    expect(afterAnswer(before, 1, head(503), now)).toEqual(before);
  });

  it('has a lower concurrency after a 429 beside other exports, without a wait for the reset', () => {
    for (const remaining of [57, 0, undefined]) {
      const after = afterAnswer(running(5), 1, head(429, remaining, NOW + 30 * MINUTE, NOW + 40 * MINUTE), now);
      expect(concurrencyOf(after, LIMITS, NOW)).toBe(4);
      expect(after.blocked?.until).toBe(NOW + 1_000);
      expect(after.report?.remaining ?? 0).toBe(remaining ?? 0);
      const oneEnded = { ...after, slots: after.slots.slice(2) };
      expect(decide(oneEnded, LIMITS, NOW + 2_000)).toEqual({ kind: 'go' });
    }
  });

  it('keeps an existing stop until the reset after a 429 beside other exports', () => {
    const blocked = { at: NOW - MINUTE, until: NOW + 40 * MINUTE };
    const after = afterAnswer({ ...running(3), blocked }, 1, head(429, undefined), now);
    expect(decide(after, LIMITS, NOW + 30 * MINUTE)).toMatchObject({ kind: 'until', at: blocked.until });
  });

  it('takes the Remaining of a long export once the earlier one has expired', () => {
    const before = { ...running(3), report: report(0, NOW - MINUTE, { at: NOW - 50 * MINUTE }) };
    expect(afterAnswer(before, 1, head(200, 80, NOW + 59 * MINUTE), now).report?.remaining).toBe(80);
  });

  it('stops everybody until the reset after a 429 to a lone export, and one export goes first then', () => {
    const after = afterAnswer(running(1), 1, head(429, 0, NOW + 30 * MINUTE), now);
    expect(decide({ ...after, slots: [] }, LIMITS, NOW)).toMatchObject({
      kind: 'until',
      at: NOW + 30 * MINUTE + 1_000,
    });
    expect(
      decide(
        pruned({ ...after, slots: [] }, NOW + 31 * MINUTE, () => true),
        LIMITS,
        NOW + 31 * MINUTE,
      ),
    ).toEqual({
      kind: 'go',
    });
  });

  it('waits longer after each 429 without a reset', () => {
    let at = running(1);
    const waits: number[] = [];
    for (let i = 0; i < 7; i++) {
      at = afterAnswer(at, 1, head(429, undefined, undefined), now);
      waits.push(((at.blocked?.until ?? 0) - NOW) / MINUTE);
    }
    expect(waits).toEqual([1, 2, 4, 8, 15, 15, 15]);
    expect(afterAnswer(at, 1, head(200, 50, NOW + MINUTE), now).hourlyRefusals).toBe(0);
  });

  it('waits no longer where it says that none are left and names no reset', () => {
    let at: QuotaState = state({ sent: sent(1, NOW - 10 * MINUTE), slots: [slot(1)] });
    const waits: unknown[] = [];
    let time = NOW;
    for (let i = 0; i < 6; i++) {
      at = afterAnswer(at, 1, head(429, 0), { ...now, now: time });
      const until = at.blocked?.until ?? 0;
      const idle = { ...at, slots: [] };
      waits.push([(until - time) / MINUTE, decide(idle, LIMITS, until - 1).kind, decide(idle, LIMITS, until).kind]);
      time = until;
    }
    expect(waits).toEqual([1, 2, 4, 8, 15, 15].map((minutes) => [minutes, 'until', 'go']));
  });

  it('waits until Retry-After, where it says that none are left and names no reset', () => {
    const before = state({ sent: sent(1), slots: [slot(1)] });
    const after = { ...afterAnswer(before, 1, head(429, 0, undefined, NOW + 20_000), now), slots: [] };
    expect(after.blocked?.until).toBe(NOW + 21_000);
    expect(decide(after, LIMITS, NOW + 21_000)).toEqual({ kind: 'go' });
    expect(decide({ ...after, sent: sent(100) }, LIMITS, NOW + 21_000)).toMatchObject({ kind: 'until' });
  });

  it('waits for the later of Reset and Retry-After, without jitter', () => {
    const limits = { remaining: 0, resetAt: NOW + 5 * MINUTE, retryAt: NOW + 9 * MINUTE };
    expect(refusedUntil(limits, 0, NOW, () => 1)).toBe(NOW + 9 * MINUTE + 1_000);
  });
});

const answeredBy = (given: QuotaState, n: number, answer: AnswerHead, random = 0) =>
  afterAnswer(given, n, answer, { limits: LIMITS, now: NOW, random: () => random });

describe('what remains of the hour', () => {
  const left = (given: QuotaState, now = NOW, limits = LIMITS) => budgetOf(given, limits, now);

  it('is what the service said until a second after its reset, then one probe, then our own count', () => {
    const reported = state({ sent: sent(40), report: report(3, NOW, { lastSent: 40 }) });
    expect(left(reported, NOW + 999)).toEqual({ left: 3, nextAt: NOW + 1_000, known: true });
    expect(left(reported, NOW + 1_000)).toMatchObject({ left: 60, known: false });
    expect(left({ ...reported, sent: sent(140) }, NOW + 1_000)).toMatchObject({ left: 1, known: false });
    expect(left({ ...reported, sent: sent(140, NOW) }, NOW + 1_000)).toMatchObject({ left: -40, known: true });
    expect(left({ ...reported, sent: sent(140, NOW - 1) }, NOW + 1_000)).toMatchObject({ left: 1, known: false });
    const across = [...sent(139, NOW - 1), { n: 140, at: NOW }];
    expect(left({ ...reported, sent: across }, NOW + 1_000)).toMatchObject({ left: -40, known: true });
  });

  it('is what the service said for an hour when it named no reset', () => {
    const reported = state({ sent: sent(9), report: report(3, undefined, { at: NOW, lastSent: 7 }) });
    expect(left(reported, NOW + HOUR_MS - 1)).toEqual({ left: 1, nextAt: NOW + HOUR_MS, known: true });
    expect(left(reported, NOW + HOUR_MS)).toMatchObject({ left: 91 });
  });

  it('is less by exports under way at that time, and by those sent since', () => {
    const reported = state({ sent: sent(9), report: report(9, NOW + MINUTE, { lastSent: 7, unanswered: 3 }) });
    expect(left(reported).left).toBe(9 - 3 - 2);
  });

  it('is our own count, while the service answers without headers', () => {
    const counted = state({ sent: sent(9), unreportedAt: NOW });
    expect(left(counted, NOW + HOUR_MS - 1)).toMatchObject({ left: 91, known: true });
    expect(left(counted, NOW + HOUR_MS)).toMatchObject({ known: false });
    expect(left({ ...EMPTY_STATE })).toEqual({ left: 100, nextAt: NOW + HOUR_MS, known: false });
  });

  it('increases when the oldest counted exports are an hour old', () => {
    const spread = state({ sent: Array.from({ length: 7 }, (_, i) => ({ n: i + 1, at: NOW - 70 + 10 * i })) });
    const of = (exportsPerHour: number) => left(spread, NOW, { ...LIMITS, exportsPerHour });
    expect(of(5)).toMatchObject({ left: -2, nextAt: NOW - 50 + HOUR_MS + 1 });
    expect(of(7)).toMatchObject({ left: 0, nextAt: NOW - 70 + HOUR_MS + 1 });
    expect(of(9)).toMatchObject({ left: 2, nextAt: NOW - 70 + HOUR_MS + 1 });
  });
});

describe('the next time at which an export may be sent', () => {
  it('is the very end of a stop', () => {
    const blocked = { at: NOW - 5, until: NOW + 1 };
    expect(decide(state({ blocked }), LIMITS, NOW)).toEqual({ kind: 'until', at: NOW + 1 });
    expect(decide(state({ blocked }), LIMITS, NOW + 1)).toEqual({ kind: 'go' });
  });

  it('waits for the answers under way, and for none of ended exports', () => {
    const over = slot(1, { freeAt: NOW + 20 });
    const open = slot(2, { answered: false });
    const spent = { sent: sent(3), report: report(0, NOW + MINUTE) };
    expect(decide(state({ ...spent, slots: [over, open, slot(3)] }), LIMITS, NOW)).toEqual({
      kind: 'change',
      slots: [open],
    });
    expect(decide(state({ ...spent, slots: [over, slot(3)] }), LIMITS, NOW)).toMatchObject({
      kind: 'until',
      at: NOW + MINUTE + 1_000,
    });
    const { unreportedAt: _, ...unknown } = state({ sent: sent(2), slots: [over, slot(2)] });
    expect(decide(unknown, LIMITS, NOW)).toEqual({ kind: 'go' });
    expect(decide({ ...unknown, slots: [open] }, LIMITS, NOW)).toMatchObject({ kind: 'change' });
  });

  it('is now for the last slot and the last export of the hour', () => {
    const slots = [1, 2, 3, 4].map((n) => slot(n));
    expect(decide(state({ sent: sent(99), slots }), LIMITS, NOW)).toEqual({ kind: 'go' });
  });
});

describe('the concurrency limit', () => {
  const within = (ms: number, times: number, limit = 1) =>
    concurrencyOf(state({ reduced: { limit, at: NOW, times } }), LIMITS, NOW + ms);

  it('increases after each quarter of an hour, twice as late after each refusal, at most 32 times', () => {
    const minutes = [15 * MINUTE - 1, 15 * MINUTE, 30 * MINUTE, 600 * MINUTE];
    expect(minutes.map((ms) => within(ms, 1))).toEqual([1, 2, 3, 5]);
    expect([30 * MINUTE, 60 * MINUTE].map((ms) => within(ms, 2))).toEqual([2, 3]);
    expect([60 * MINUTE - 1, 60 * MINUTE].map((ms) => within(ms, 3))).toEqual([1, 2]);
    for (const times of [6, 7, 50])
      expect([480 * MINUTE - 1, 480 * MINUTE].map((ms) => within(ms, times))).toEqual([1, 2]);
  });

  it('is at least the one that was found, by any clock, and at most the configured one', () => {
    expect([within(-HOUR_MS, 1, 3), within(0, 1, 9), within(99 * HOUR_MS, 1, 2)]).toEqual([3, 5, 5]);
  });
});

describe('a 429', () => {
  it('beside other exports lowers the concurrency to their number, or keeps a lower one', () => {
    const slots = [1, 2, 3, 4].map((n) => slot(n, n === 4 ? { freeAt: NOW + 20 } : {}));
    const before = state({ sent: sent(4), slots });
    expect(answeredBy(before, 1, head(429)).reduced).toEqual({ limit: 2, at: NOW, times: 1 });
    expect(answeredBy(before, 9, head(429)).reduced).toEqual({ limit: 3, at: NOW, times: 1 });
    const reduced = { limit: 1, at: NOW - MINUTE, times: 4 };
    expect(answeredBy({ ...before, reduced }, 9, head(429)).reduced).toEqual({ limit: 1, at: NOW, times: 5 });
    expect(answeredBy(before, 1, head(429)).blocked).toEqual({ at: NOW, until: NOW + 1_000 });
  });

  it('to a lone export with some left is retried after three short pauses, then after the hourly limit', () => {
    const before = state({ sent: sent(1), slots: [slot(1)] });
    const first = answeredBy(before, 1, head(429, 9), 0.25);
    expect(first).toMatchObject({ aloneRefusals: 1, hourlyRefusals: 0, reduced: { limit: 1, at: NOW, times: 1 } });
    expect(first.blocked).toEqual({ at: NOW, until: NOW + 2_500 });
    const second = answeredBy(first, 1, head(429, 9), 0.5);
    expect(second).toMatchObject({ aloneRefusals: 2, reduced: { times: 2 }, blocked: { until: NOW + 6_000 } });
    const third = answeredBy(second, 1, head(429, 9));
    expect(third).toMatchObject({ aloneRefusals: 3, blocked: { until: NOW + 8_000 } });
    expect(answeredBy({ ...before, aloneRefusals: 3 }, 1, head(429, 9, NOW + MINUTE))).toMatchObject({
      hourlyRefusals: 1,
      aloneRefusals: 3,
      blocked: { at: NOW, until: NOW + MINUTE + 1_000 },
    });
    expect(answeredBy(before, 1, head(429, 0, NOW + MINUTE))).toMatchObject({ hourlyRefusals: 1, aloneRefusals: 0 });
  });

  it('without a reset waits a minute and longer each time, with a quarter of jitter', () => {
    const none = { remaining: undefined, resetAt: undefined, retryAt: undefined };
    const waits = (random: number) =>
      [0, 1, 4, 99].map((before) => refusedUntil(none, before, NOW, () => random) - NOW);
    expect(waits(0)).toEqual([MINUTE, 2 * MINUTE, 15 * MINUTE, 15 * MINUTE]);
    expect(waits(0.5)).toEqual([67_500, 135_000, 1_012_500, 1_012_500]);
    expect(refusedUntil({ ...none, resetAt: NOW }, 0, NOW, () => 0)).toBe(NOW + MINUTE);
    expect(refusedUntil({ ...none, retryAt: NOW + 1 }, 0, NOW, () => 1)).toBe(NOW + 1_001);
  });
});

describe('Remaining in an answer', () => {
  const before = state({ sent: sent(4), slots: [slot(1, { answered: false }), slot(2, { answered: false })] });

  it('counts exports under way, and not those that ended', () => {
    const slots = [slot(1, { answered: false }), slot(2, { freeAt: NOW }), slot(3, { answered: false })];
    const { report: reported } = answeredBy({ ...before, slots: [...slots, slot(4)] }, 3, head(200, 7));
    expect(reported).toEqual({ remaining: 7, at: NOW, lastSent: 4, unanswered: 1 });
  });

  it('of an older export counts only if it is less, or if the earlier one has expired', () => {
    const current = { ...before, report: report(5, NOW + MINUTE, { lastSent: 3, unanswered: 0 }) };
    expect(answeredBy(current, 3, head(200, 5)).report).toMatchObject({ remaining: 5, unanswered: 0 });
    expect(answeredBy(current, 3, head(200, 4)).report).toMatchObject({ remaining: 4, at: NOW });
    expect(answeredBy(current, 4, head(200, 9)).report).toMatchObject({ remaining: 9, at: NOW });
  });

  it('of none without a reset ends an hour after the oldest counted export, or after now, and is marked as assumed', () => {
    expect(answeredBy(before, 1, head(200, 0)).report).toMatchObject({
      resetAt: NOW - MINUTE + HOUR_MS,
      isResetAssumed: true,
    });
    expect(answeredBy({ ...before, sent: [] }, 1, head(200, 0)).report?.resetAt).toBe(NOW + HOUR_MS);
    expect(answeredBy(before, 1, head(200, 1)).report).not.toHaveProperty('resetAt');
    expect(answeredBy(before, 1, head(200, 0, NOW + 5)).report).not.toHaveProperty('isResetAssumed');
  });

  it('of a success alone resets the count of refusals', () => {
    const refused = { ...before, hourlyRefusals: 3, aloneRefusals: 2 };
    expect(answeredBy(refused, 1, head(200))).toMatchObject({ hourlyRefusals: 0, aloneRefusals: 0, unreportedAt: NOW });
    expect(answeredBy(refused, 1, head(200, 5))).toMatchObject({ hourlyRefusals: 0, aloneRefusals: 0 });
    expect(answeredBy(refused, 1, head(500, 5))).toMatchObject({
      hourlyRefusals: 3,
      aloneRefusals: 2,
      report: { remaining: 5 },
    });
    expect(answeredBy(refused, 1, head(500)).unreportedAt).toBe(before.unreportedAt);
  });
});

describe('the forecast', () => {
  const reported = state({ report: report(2, NOW + MINUTE) });
  const nextAt = NOW + MINUTE + 1_000;
  const blocked = { at: NOW, until: NOW + 2 * MINUTE };
  const slots = (count: number) => Array.from({ length: count }, (_, i) => slot(i + 1));
  it.each<[string, QuotaState, number, number, number, number]>([
    ['nothing sent', EMPTY_STATE, 3, 3, 100, NOW],
    ['no exports', EMPTY_STATE, 0, 0, 100, NOW],
    ['more than may run at once', EMPTY_STATE, 30, 5, 100, NOW],
    ['more exports while two run', state({ slots: slots(2) }), 9, 3, 100, NOW],
    ['more exports running than allowed', state({ slots: slots(6) }), 1, 0, 100, NOW],
    ['more exports than our own count leaves', state({ sent: sent(98) }), 3, 2, 2, NOW - MINUTE + HOUR_MS + 1],
    ['as many exports as remain', reported, 2, 2, 2, NOW],
    ['one export more than remain', reported, 3, 2, 2, nextAt],
    ['a hundred exports after the reset', reported, 102, 2, 2, nextAt],
    ['one export more than these', reported, 103, 2, 2, nextAt + HOUR_MS],
    ['a negative Remaining', state({ report: report(-3, NOW + MINUTE) }), 100, 0, 0, nextAt],
    ['a stop', { ...reported, blocked }, 3, 0, 0, blocked.until],
    ['a stop that is over', { ...reported, blocked: { at: NOW - 5, until: NOW } }, 1, 1, 2, NOW],
  ])('for %s', (_title, given, count, startableNow, left, earliestEnd) => {
    expect(forecastOf(given, LIMITS, count, NOW)).toEqual({ startableNow, left, earliestEnd });
  });

  it('for a service that allows none has an end', () => {
    expect(forecastOf(EMPTY_STATE, { ...LIMITS, exportsPerHour: 0 }, 3, NOW).earliestEnd).toBe(NOW + 3 * HOUR_MS);
  });
});
