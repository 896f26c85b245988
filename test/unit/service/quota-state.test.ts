import { describe, expect, it } from 'vitest';
import { HOUR_MS } from '../../../src/base/durations.ts';
import { decide, forecastOf } from '../../../src/service/quota/rules.ts';
import { EMPTY_STATE, parseQuotaState, pruned, type QuotaState } from '../../../src/service/quota/state.ts';
import { LIMITS, MINUTE, NOW, report, sent, slot, state } from '../../support/service/quota.ts';

describe('a stored instant of the quota', () => {
  const held = () => true;
  it('counts within an hour, whoever wrote it', () => {
    const in2058 = Date.UTC(2058, 0, 1);
    const wild = state({
      sent: sent(3, in2058),
      blocked: { at: NOW - MINUTE, until: in2058 },
      report: report(0, in2058, { at: NOW - MINUTE }),
      reduced: { limit: 0, at: in2058, times: 1 },
      unreportedAt: in2058,
    });
    for (const given of [wild, { ...wild, blocked: { at: in2058, until: 2 * in2058 } }]) {
      const after = parseQuotaState(JSON.stringify(given));
      expect(after).toBeDefined();
      const { blocked, ...kept } = pruned(after ?? EMPTY_STATE, NOW, held);
      expect(blocked?.until).toBeLessThanOrEqual(NOW + HOUR_MS + 1_000);
      expect(forecastOf(kept, LIMITS, 1, NOW).earliestEnd).toBeLessThanOrEqual(NOW + HOUR_MS + 1_000);
      const { blocked: later, ...rest } = pruned(kept, NOW + 61 * MINUTE, held);
      expect(later).toBeUndefined();
      expect(decide(rest, LIMITS, NOW + 61 * MINUTE)).toEqual({ kind: 'go' });
    }
  });
});

const WHOLE = state({
  sent: sent(2),
  slots: [slot(1, { freeAt: NOW + 10 }), slot(2)],
  report: report(3, NOW + MINUTE),
  reduced: { limit: 1, at: NOW, times: 1 },
  blocked: { at: NOW, until: NOW + MINUTE },
});
const COUNTS = ['next', 'hourlyRefusals', 'aloneRefusals', 'sent.1.n', 'slots.1.n', 'report.remaining'];
COUNTS.push('report.lastSent', 'report.unanswered', 'reduced.limit', 'reduced.times');
const INSTANTS = ['sent.1.at', 'slots.1.lease', 'report.at', 'report.resetAt', 'unreportedAt', 'reduced.at'];
INSTANTS.push('blocked.at', 'blocked.until');

/** The state with another value at a path; undefined takes it out. */
function withValue(path: string, value: unknown): QuotaState | undefined {
  const root: Record<string, unknown> = { ...structuredClone(WHOLE) };
  const keys = path.split('.');
  const last = keys.pop() ?? '';
  const owner = keys.reduce((at, key) => at[key] as Record<string, unknown>, root);
  owner[last] = value;
  return parseQuotaState(JSON.stringify(root));
}

describe('a state file', () => {
  it('is read as it was written', () => {
    expect(parseQuotaState(JSON.stringify(WHOLE))).toEqual(WHOLE);
  });

  it.each(['', '{', 'null', '[]', '{"v":1}'])('is invalid with %j alone', (text) => {
    expect(parseQuotaState(text)).toBeUndefined();
  });

  it.each(COUNTS)('is invalid when %s is not a count', (path) => {
    for (const wrong of [null, '1', true, [], -1, 0.5, 2 ** 48])
      expect(withValue(path, wrong), `${wrong}`).toBeUndefined();
    for (const right of [0, 2 ** 48 - 1]) expect(withValue(path, right), `${right}`).toBeDefined();
  });

  it.each(INSTANTS)('is invalid when %s is not an instant', (path) => {
    for (const wrong of [null, '1', true, [], -1]) expect(withValue(path, wrong), `${wrong}`).toBeUndefined();
    for (const right of [0, 0.5, 2 ** 60]) expect(withValue(path, right), `${right}`).toBeDefined();
  });

  it.each(['next', 'hourlyRefusals', 'aloneRefusals', 'sent', 'slots', 'v', ...COUNTS.slice(3)])(
    'is invalid without %s',
    (path) => {
      expect(withValue(path, undefined)).toBeUndefined();
    },
  );

  it.each(['report', 'report.resetAt', 'reduced', 'blocked', 'unreportedAt'])('is valid without %s', (path) => {
    expect(withValue(path, undefined)).toBeDefined();
  });

  it.each([
    ['v', 2],
    ['sent', {}],
    ['sent.0', null],
    ['sent.0', []],
    ['slots', 'none'],
    ['slots.0', 7],
    ['slots.0.owner', undefined],
    ['slots.0.owner', { pid: 1 }],
    ['slots.0.run', 5],
    ['report', []],
    ['report', 'text'],
    ['reduced', []],
    ['blocked', []],
  ])('is invalid when %s is %o', (path, value) => {
    expect(withValue(path, value)).toBeUndefined();
  });
});

describe('the relevant part of a state', () => {
  const kept = (more: Partial<QuotaState>) => pruned(state(more), NOW, () => true);

  it('includes a slot about to be released, until then, and for no longer than an export takes', () => {
    const slots = [0, 1, 50, 51].map((ms, i) => slot(i, { freeAt: NOW + ms }));
    expect(kept({ slots }).slots.map(({ n }) => n)).toEqual([1, 2]);
  });

  it('excludes a slot of a dead process', () => {
    const { slots } = pruned(state({ slots: [slot(1), slot(2)] }), NOW, ({ n }) => n !== 1);
    expect(slots.map(({ n }) => n)).toEqual([2]);
  });

  it('includes what was said until now, and nothing later', () => {
    expect(kept({ report: report(3, NOW + MINUTE, { at: NOW }) }).report).toMatchObject({ resetAt: NOW + MINUTE });
    expect(kept({ report: report(3, undefined, { at: NOW }) }).report).not.toHaveProperty('resetAt');
    expect(kept({ report: report(3, NOW + MINUTE, { at: NOW + 1 }) })).not.toHaveProperty('report');
    expect(kept({ unreportedAt: NOW }).unreportedAt).toBe(NOW);
    expect(kept({ unreportedAt: NOW + 1 })).not.toHaveProperty('unreportedAt');
  });

  it('includes a reset within an hour of its answer', () => {
    const { report: reported } = kept({ report: report(0, NOW + 5 * HOUR_MS, { at: NOW - MINUTE }) });
    expect(reported?.resetAt).toBe(NOW - MINUTE + HOUR_MS);
  });

  it('includes a stop until its end, an hour and a second at most', () => {
    expect(kept({ blocked: { at: NOW - 5, until: NOW } })).not.toHaveProperty('blocked');
    expect(kept({ blocked: { at: NOW - 5, until: NOW + 1 } }).blocked).toEqual({ at: NOW - 5, until: NOW + 1 });
    const longest = { at: NOW, until: NOW + HOUR_MS + 1_000 };
    expect(kept({ blocked: longest }).blocked).toEqual(longest);
    expect(kept({ blocked: { at: NOW, until: NOW + 9 * HOUR_MS } }).blocked).toEqual(longest);
    const tomorrow = NOW + 24 * HOUR_MS;
    const setBack = kept({ blocked: { at: tomorrow, until: tomorrow + MINUTE } });
    expect(setBack.blocked).toEqual({ at: NOW, until: NOW + MINUTE });
  });

  it('includes the concurrency, at least one, from then or now', () => {
    expect(kept({ reduced: { limit: 3, at: NOW - 5, times: 2 } }).reduced).toEqual({ limit: 3, at: NOW - 5, times: 2 });
    expect(kept({ reduced: { limit: 0, at: NOW + 5, times: 2 } }).reduced).toEqual({ limit: 1, at: NOW, times: 2 });
    expect(kept({})).not.toHaveProperty('reduced');
  });

  it('includes every export of the hour, none later than now', () => {
    const before = [NOW - HOUR_MS, NOW - HOUR_MS + 1, NOW, NOW + 5].map((at, n) => ({ n, at }));
    expect(kept({ sent: before }).sent).toEqual([
      { n: 1, at: NOW - HOUR_MS + 1 },
      { n: 2, at: NOW },
      { n: 3, at: NOW },
    ]);
  });
});
