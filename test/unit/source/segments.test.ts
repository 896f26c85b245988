import { describe, expect, it } from 'vitest';
import { segmentPlan, segmentsOf } from '../../../src/airbyte/source/streams/plan.ts';
import { daysOf } from '../../../src/base/days.ts';
import { type PlanInput, planRun } from '../../../src/extract/plan/plan.ts';
import { NO_PRIOR_LOADS } from '../../../src/extract/window.ts';

const settings = {
  baseUrl: 'https://host',
  serviceId: 's',
  events: [],
  eventsCondition: 'all',
  properties: [],
  propertiesCondition: 'all',
  columnsDrop: [],
  columnsHash: [],
  hashKey: undefined,
  startDate: '2026-01-10',
  endDate: undefined,
  windowDays: 3,
  lookbackDays: 1,
  settleHours: 3,
  toDateInclusive: 'auto',
  historyDays: 30,
  onGap: 'fail',
} as const;
const now = Date.UTC(2026, 0, 20, 3);
const stream = (name: string, more: Partial<PlanInput> = {}) => ({
  name,
  plan: planRun({ settings, delivery: 'fresh', prior: NO_PRIOR_LOADS, now, ...more }),
});
const at = (from_date: string, more = {}) => ({
  prior: { ...NO_PRIOR_LOADS, state: { version: 1, from_date, ...more } },
});
const reported = (streams: Parameters<typeof segmentsOf<ReturnType<typeof stream>>>[0]) =>
  segmentsOf(streams).map(({ days, streams: of }) => `${days[0]}..${days.at(-1)} ${of.map((s) => s.name).join('+')}`);

describe('the days of several streams', () => {
  it('are one segment when all want the same days', () => {
    expect(reported([stream('a'), stream('b')])).toEqual(['2026-01-10..2026-01-20 a+b']);
    expect(segmentsOf([])).toEqual([]);
  });

  it('are split where a stream begins or ends', () => {
    const settled = stream('settled', { delivery: 'settled' });
    expect(reported([stream('late', at('2026-01-16')), settled, stream('all')])).toEqual([
      '2026-01-10..2026-01-14 settled+all',
      '2026-01-15..2026-01-18 late+settled+all',
      '2026-01-19..2026-01-20 late+all',
    ]);
  });

  it('make one plan: the strictest options of the streams, and what is known by now', () => {
    const settled = stream('settled', { delivery: 'settled', ...at('2026-01-15') });
    const known = stream('known', at('2026-01-16', { to_date_inclusive: false }));
    const [segment] = segmentsOf([settled, known]);
    const plan = segmentPlan(segment, {});
    expect(plan).toMatchObject({
      delivery: 'fresh',
      proveFirst: true,
      settleHours: 3,
      lookbackDays: 0,
      singleDaysInclusive: false,
    });
    expect(plan.days).toEqual(segment.days);
    expect(segment.days.find(plan.isGap)).toBe('2026-01-15');
    // Whichever stream is the first.
    const [other] = segmentsOf([known, settled]);
    const { proveFirst, settleHours, lookbackDays, isGap } = segmentPlan(other, {});
    expect([proveFirst, settleHours, lookbackDays, other.days.find(isGap)]).toEqual([true, 3, 0, '2026-01-15']);
    const later = segmentPlan(segment, { to_date_inclusive: true, max_window_days: 1 });
    expect(later).toMatchObject({ singleDaysInclusive: true, windowDays: 1, state: { to_date_inclusive: true } });
  });

  it('are empty for a stream with nothing to read', () => {
    const done = stream('done', {
      settings: { ...settings, endDate: '2026-01-12', lookbackDays: 0 },
      ...at('2026-01-13'),
    });
    expect(done.plan.days).toEqual([]);
    expect(reported([done, stream('all')])).toEqual(['2026-01-10..2026-01-20 all']);
    expect(daysOf('2026-01-10', '2026-01-20')).toHaveLength(11);
  });
});
