import { describe, expect, it } from 'vitest';
import { decide, EMPTY_STATE, forecastOf, HOUR_MS, parseState, pruned } from '../../../src/service/quota.ts';
import { LIMITS, MINUTE, NOW, report, sent, slot, state } from '../../support/service/quota.ts';

describe('the forecast', () => {
  it.each([
    [EMPTY_STATE, 3, 3, NOW],
    [EMPTY_STATE, 30, 5, NOW],
    [state({ sent: sent(98) }), 3, 2, NOW - MINUTE + HOUR_MS + 1],
    [state({ report: report(0, NOW + 20 * MINUTE) }), 3, 0, NOW + 20 * MINUTE + 1_000],
    [state({ report: report(2, NOW + 20 * MINUTE) }), 202, 2, NOW + 20 * MINUTE + 1_000 + HOUR_MS],
    [state({ blocked: { at: NOW, until: NOW + MINUTE } }), 3, 0, NOW + MINUTE],
    [state({ slots: [slot(1), slot(2)] }), 9, 3, NOW],
    [EMPTY_STATE, 0, 0, NOW],
  ])('%#', (given, count, startableNow, earliestEnd) => {
    expect(forecastOf(given, LIMITS, count, NOW)).toMatchObject({ startableNow, earliestEnd });
  });
});

describe('the state', () => {
  const held = () => true;
  it('forgets what is over: an hour, dead processes, ended exports', () => {
    const before = state({
      sent: [
        { n: 1, at: NOW - HOUR_MS },
        { n: 2, at: NOW - HOUR_MS + 1 },
      ],
      slots: [slot(1), slot(2), slot(3, { freeAt: NOW }), slot(4, { freeAt: NOW + 1 })],
      blocked: { at: NOW - 5, until: NOW },
    });
    const after = pruned(before, NOW, ({ n }) => n !== 1);
    expect(after.sent.map(({ n }) => n)).toEqual([2]);
    expect(after.slots.map(({ n }) => n)).toEqual([2, 4]);
    expect(after.blocked).toBeUndefined();
  });

  it('survives a clock that was set back a day', () => {
    const day = 24 * HOUR_MS;
    const before = state({
      sent: sent(100, NOW + day),
      blocked: { at: NOW + day, until: NOW + day + MINUTE },
      report: report(0, NOW + day + HOUR_MS, { at: NOW + day }),
      slots: [slot(1, { freeAt: NOW + day })],
    });
    const after = pruned(before, NOW, held);
    expect(after.slots).toEqual([]);
    expect(after.sent.every(({ at }) => at === NOW)).toBe(true);
    expect(after.blocked).toEqual({ at: NOW, until: NOW + MINUTE });
    expect(after.report).toBeUndefined();
  });

  it('is believed within an hour, whoever wrote it [R188]', () => {
    const in2058 = Date.UTC(2058, 0, 1);
    const wild = state({
      sent: sent(3, in2058),
      blocked: { at: NOW - MINUTE, until: in2058 },
      report: report(0, in2058, { at: NOW - MINUTE }),
      lowered: { to: 0, at: in2058, times: 1 },
      unreportedAt: in2058,
    });
    for (const given of [wild, { ...wild, blocked: { at: in2058, until: 2 * in2058 } }]) {
      const after = parseState(JSON.stringify(given));
      expect(after).toBeDefined();
      const { blocked, ...kept } = pruned(after ?? EMPTY_STATE, NOW, held);
      expect(blocked?.until).toBeLessThanOrEqual(NOW + HOUR_MS + 1_000);
      expect(forecastOf(kept, LIMITS, 1, NOW).earliestEnd).toBeLessThanOrEqual(NOW + HOUR_MS + 1_000);
      const { blocked: later, ...rest } = pruned(kept, NOW + 61 * MINUTE, held);
      expect(later).toBeUndefined();
      expect(decide(rest, LIMITS, NOW + 61 * MINUTE)).toEqual({ kind: 'go' });
    }
  });

  it('is read back as written, and nothing else is', () => {
    const whole = state({
      sent: sent(2),
      slots: [slot(1)],
      report: report(3, NOW),
      lowered: { to: 1, at: NOW, times: 1 },
      blocked: { at: 1, until: 2 },
    });
    expect(parseState(JSON.stringify(whole))).toEqual(whole);
    for (const text of [
      '',
      '{',
      'null',
      '[]',
      '{"v":1}',
      JSON.stringify({ ...whole, v: 2 }),
      JSON.stringify({ ...whole, sent: [1] }),
      JSON.stringify({ ...whole, report: {} }),
      JSON.stringify({ ...whole, blocked: 5 }),
      JSON.stringify({ ...whole, slots: {} }),
      JSON.stringify({ ...whole, next: 'x' }),
      JSON.stringify({ ...whole, next: 2 ** 53 }),
      JSON.stringify({ ...whole, refusals: 0.5 }),
      JSON.stringify({ ...whole, slots: [{ ...slot(1), holder: {} }] }),
    ]) {
      expect(parseState(text), text).toBeUndefined();
    }
  });
});
