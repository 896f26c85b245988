import { describe, expect, it } from 'vitest';
import { addDays, daysBetween, daysOf } from '../../../src/base/days.ts';
import { UserError } from '../../../src/base/errors.ts';
import { Secret } from '../../../src/base/secrets.ts';
import { hashesOf, stateHashes } from '../../../src/extract/export-request.ts';
import { exportsNeeded, plannedWindows } from '../../../src/extract/plan/forecast.ts';
import type { PlanInput, PlanSettings } from '../../../src/extract/plan/plan.ts';
import { checkState, hashedIn, otherColumns, parseState, StateError } from '../../../src/extract/state.ts';
import { NO_PRIOR_LOADS, type PriorLoads } from '../../../src/extract/window.ts';
import { at, FakeClock, planFor, SETTINGS } from '../../support/extract/extraction.ts';

const YEAR = '2026-';
// UTC-12: the 31st has begun; UTC+14: 1 April. The oldest day that can be exported is most likely 1 March.
const clock = new FakeClock(at('2026-03-31T13:00:00Z'));
const stored = (from: string, start?: string, more = {}): PriorLoads => ({
  ...NO_PRIOR_LOADS,
  state: {
    version: 1,
    from_date: YEAR + from,
    ...(start !== undefined && { start_date: YEAR + start }),
    ...stateHashes(hashesOf(SETTINGS)),
    ...more,
  },
});
const covered = (first: string, last: string, more = {}): PriorLoads => ({
  ...stored(addDays(YEAR + last, 1).slice(5), first, more),
  covered: new Set(daysOf(YEAR + first, YEAR + last)),
});
const start = (day: string) => ({ startDate: YEAR + day });
const FULL = { fullRefresh: true };
const OTHER = { eventsCondition: 'include', events: ['a'] } as const;
const MARCH = covered('03-05', '03-10');
const MOVED = stored('02-25', '02-20');

type Row = [string, PriorLoads, Partial<PlanSettings>, Partial<PlanInput>, string, string[]];
/** `start cursor first..last`; `gap` and the first day that is one if it is gone; how many likely are. */
const rows: Row[] = [
  ['a first run', NO_PRIOR_LOADS, {}, {}, '03-01 03-01 03-01..04-01', []],
  [
    'an expired start',
    NO_PRIOR_LOADS,
    start('02-20'),
    {},
    '02-20 02-20 02-20..04-01 gap 02-20 9',
    ['plan.gap', 'plan.retention_limit'],
  ],
  ['a start', NO_PRIOR_LOADS, start('03-20'), {}, '03-20 03-20 03-20..04-01 gap 03-20 0', []],
  ['settled', NO_PRIOR_LOADS, start('03-20'), { delivery: 'settled' }, '03-20 03-20 03-20..03-29 gap 03-20 0', []],
  ['nothing read, start expired', stored('02-20', '02-20'), {}, {}, '03-01 03-01 03-01..04-01', ['plan.clamped']],
  ['nothing read, start exportable', stored('03-10', '03-10'), {}, {}, '03-10 03-10 03-10..04-01', []],
  [
    'days read, the next one expired',
    MOVED,
    {},
    {},
    '02-20 02-25 02-25..04-01 gap 02-25 4',
    ['plan.gap', 'plan.clamped', 'plan.retention_limit'],
  ],
  ['days read, the start expired', stored('03-10', '02-20'), {}, {}, '02-20 03-10 03-09..04-01 gap 03-10 0', []],
  ['a cursor alone', stored('03-10'), {}, {}, '03-10 03-10 03-10..04-01 gap 03-10 0', []],
  [
    'an expired cursor alone',
    stored('02-10'),
    {},
    {},
    '02-10 02-10 02-10..04-01 gap 02-10 19',
    ['plan.gap', 'plan.retention_limit'],
  ],
  ['receipts', MARCH, {}, {}, '03-05 03-11 03-10..04-01 gap 03-11 0', []],
  [
    'a lookback into expired days',
    covered('02-20', '03-02'),
    { lookbackDays: 5 },
    {},
    '02-20 03-03 03-01..04-01 gap 03-03 0',
    ['plan.clamped', 'plan.retention_limit'],
  ],
  [
    'a lookback before the start',
    covered('03-20', '03-20'),
    { ...start('03-20'), lookbackDays: 9 },
    {},
    '03-20 03-21 03-20..04-01 gap 03-21 0',
    [],
  ],
  [
    'days that settle in an hour',
    covered('03-05', '03-28'),
    { settleHours: 1 },
    { delivery: 'settled' },
    '03-05 03-29 03-29..03-30 gap 03-29 0',
    [],
  ],
  [
    'days that settle in two hours',
    covered('03-05', '03-28'),
    { settleHours: 2 },
    { delivery: 'settled' },
    '03-05 03-29 03-29..03-29 gap 03-29 0',
    [],
  ],
  ['a resumed run', MARCH, {}, { resume: true }, '03-05 03-11 03-11..04-01 gap 03-11 0', []],
  ['an earlier start', MARCH, start('03-03'), {}, '03-03 03-03 03-03..04-01 gap 03-03 0', ['plan.retention_limit']],
  ['--from', MARCH, {}, { from: '2026-03-08' }, '03-05 03-11 03-08..04-01 gap 03-11 0', []],
  ['--to', MARCH, {}, { to: '2026-03-12' }, '03-05 03-11 03-10..03-12 gap 03-11 0', []],
  ['one day', MARCH, {}, { from: '2026-03-08', to: '2026-03-08' }, '03-05 03-11 03-08..03-08 gap 03-11 0', []],
  [
    'named days that have expired',
    NO_PRIOR_LOADS,
    {},
    { from: '2026-02-20' },
    '03-01 03-01 02-20..04-01 gap 02-20 9',
    ['plan.gap'],
  ],
  ['a full refresh', MARCH, {}, FULL, '03-05 03-11 03-05..04-01', []],
  ['a full refresh under settled', MARCH, {}, { ...FULL, delivery: 'settled' }, '03-05 03-11 03-05..03-29', []],
  [
    'a full refresh from an expired start',
    NO_PRIOR_LOADS,
    start('02-20'),
    FULL,
    '03-01 03-01 03-01..04-01',
    ['plan.clamped'],
  ],
  [
    'a full refresh of expired days',
    covered('02-20', '03-20'),
    start('02-20'),
    FULL,
    '02-20 03-21 03-01..04-01',
    ['plan.clamped'],
  ],
  ['a full refresh without lookback', MARCH, { lookbackDays: 0 }, FULL, '03-05 03-11 03-05..04-01', []],
  [
    'a full refresh that ends before the oldest day',
    NO_PRIOR_LOADS,
    { ...start('02-01'), endDate: '2026-02-10' },
    FULL,
    '03-01 03-01 -',
    [],
  ],
  [
    'a full refresh of the oldest day',
    NO_PRIOR_LOADS,
    { ...start('02-01'), endDate: '2026-03-01' },
    FULL,
    '03-01 03-01 03-01..03-01',
    ['plan.clamped'],
  ],
  ['a full refresh without a state', NO_PRIOR_LOADS, {}, FULL, '03-01 03-01 03-01..04-01', []],
  ['a full refresh with other filters', MARCH, OTHER, FULL, '03-01 03-01 03-01..04-01', []],
  ['a full refresh with a cursor in the future', stored('04-20', '03-05'), {}, FULL, '03-01 03-01 03-01..04-01', []],
  ['an end_date that was read', MARCH, { endDate: '2026-03-08' }, {}, '03-05 03-11 - gap 03-11 0', []],
  ['an end_date in the future', MARCH, { endDate: '2026-05-08' }, {}, '03-05 03-11 03-10..04-01 gap 03-11 0', []],
];

describe('the plan', () => {
  it.each(rows)('for %s', (_name, prior, settings, more, wanted, warnings) => {
    const plan = planFor(clock, prior, settings, more);
    const [first, last] = [plan.days[0], plan.days.at(-1)];
    const days = first === undefined ? '-' : `${first.slice(5)}..${last?.slice(5)}`;
    const gapFrom = daysOf('2026-02-01', '2026-05-31').find(plan.isGap);
    const gap = gapFrom === undefined ? '' : ` gap ${gapFrom.slice(5)} ${plan.likelyGaps.size}`;
    expect(`${plan.start.slice(5)} ${plan.cursor.slice(5)} ${days}${gap}`).toBe(wanted);
    expect(plan.warnings.map(({ event }) => event)).toEqual(warnings);
    expect(plan.days).toEqual(first === undefined ? [] : daysOf(first, last ?? ''));
    expect(plannedWindows(plan).map(({ first }) => first)).toEqual(
      plan.days.filter((day) => !plan.likelyGaps.has(day)),
    );
  });

  it('knows whether its start moves with the history of the service', () => {
    const moves = (prior: PriorLoads, settings = {}, more = {}) => planFor(clock, prior, settings, more).startIsClamped;
    const old = stored('02-20', '02-20');
    expect([moves(NO_PRIOR_LOADS), moves(old), moves(NO_PRIOR_LOADS, {}, FULL)]).toEqual([true, true, true]);
    const fixed = [moves(NO_PRIOR_LOADS, start('03-01')), moves(stored('03-10', '03-10')), moves(MARCH)];
    expect(fixed).toEqual([false, false, false]);
  });

  it('is partial when the caller names days, at either end', () => {
    const isPartial = (more: object) => planFor(clock, MARCH, {}, more).isPartial;
    expect([{}, FULL, { from: '2026-03-08' }, { to: '2026-03-12' }].map(isPartial)).toEqual([false, false, true, true]);
    const named = planFor(clock, MARCH, {}, { from: '2026-03-06', to: '2026-03-08' });
    expect([named.days[0], named.days.at(-1), named.state.from_date]).toEqual([
      '2026-03-06',
      '2026-03-08',
      '2026-03-11',
    ]);
  });

  it('proves the rule first when no row may come twice', () => {
    const first = (more: object) => planFor(clock, MARCH, {}, more).proveFirst;
    expect([{}, FULL, { delivery: 'settled' }].map(first)).toEqual([false, true, true]);
  });

  it('waits for days to settle, or looks back, and never both', () => {
    const both = (delivery: 'fresh' | 'settled') => {
      const { settleHours, lookbackDays } = planFor(clock, MARCH, { settleHours: 5, lookbackDays: 4 }, { delivery });
      return [settleHours, lookbackDays];
    };
    expect([both('fresh'), both('settled')]).toEqual([
      [undefined, 4],
      [5, 0],
    ]);
  });

  it('requests no more days at once than were too many before', () => {
    const most = (max: number) =>
      planFor(clock, covered('03-05', '03-10', { max_window_days: max }), { windowDays: 7 });
    expect([most(2).windowDays, most(9).windowDays]).toEqual([2, 7]);
  });

  it('takes the end-day rule from the configuration, else from the state', () => {
    const rule = (toDateInclusive: 'auto' | 'true' | 'false', state = {}) => {
      const { singleDaysInclusive, ruleConfigured } = planFor(clock, covered('03-05', '03-10', state), {
        toDateInclusive,
      });
      return [singleDaysInclusive, ruleConfigured];
    };
    expect(rule('auto')).toEqual([undefined, false]);
    expect(rule('auto', { to_date_inclusive: false })).toEqual([false, false]);
    expect(rule('true', { to_date_inclusive: false })).toEqual([true, true]);
    expect(rule('false', { to_date_inclusive: true })).toEqual([false, true]);
  });

  it('keeps gaps in order, but not those of other filters, and ignores receipts of other filters', () => {
    const gaps = { gaps: ['2026-03-09', '2026-03-07'] };
    const kept = planFor(clock, stored('03-10', '03-05', gaps), {}).state;
    expect(kept).toMatchObject({ gaps: ['2026-03-07', '2026-03-09'], from_date: '2026-03-10' });
    expect(kept).not.toHaveProperty('by_cursor');
    const other = planFor(clock, stored('03-10', '03-05', gaps), OTHER, FULL).state;
    expect(other).toMatchObject({ by_cursor: true, from_date: '2026-03-01' });
    expect(other).not.toHaveProperty('gaps');
    expect(planFor(clock, MARCH, {}).state).not.toHaveProperty('gaps');
  });

  it('names the windows of a start date centuries ago within seconds', () => {
    const plan = planFor(clock, NO_PRIOR_LOADS, { startDate: '1600-01-01', onGap: 'warn' });
    expect(plan.likelyGaps.size).toBe(daysBetween('1600-01-01', '2026-03-01'));
    expect(plannedWindows(plan).map(({ first }) => first)).toEqual(plan.days.filter((day) => day >= '2026-03-01'));
  });

  it('takes no complete or probably expired day for lost, and never moves back', () => {
    const prior = { ...covered('02-20', '02-20'), covered: new Set(['2026-02-20', '2026-02-22']) };
    const { likelyGaps, state } = planFor(clock, prior, start('02-20'));
    expect([...likelyGaps]).toEqual(['2026-02-21', ...daysOf('2026-02-23', '2026-02-28')]);
    expect(state.from_date).toBe('2026-02-21');
    expect(state).not.toHaveProperty('gaps');
    expect(planFor(clock, covered('02-01', '03-20'), start('02-01'), FULL).state.from_date).toBe('2026-03-21');
    expect(planFor(clock, MARCH, start('03-03')).state.from_date).toBe('2026-03-11');
  });

  it('uses the cursor when receipts are of other filters, and receipts otherwise', () => {
    const cursor = (more: object) =>
      planFor(clock, covered('03-05', '03-20', { from_date: '2026-03-10', ...more }), {}).cursor;
    expect([cursor({ by_cursor: true }), cursor({})]).toEqual(['2026-03-10', '2026-03-21']);
  });

  it('leaves out days covered after the cursor, except those that a lookback, a full refresh or the caller reads again', () => {
    const prior = {
      ...covered('03-05', '03-10'),
      covered: new Set([...daysOf('2026-03-05', '2026-03-10'), '2026-03-13']),
    };
    const days = (settings: object, more = {}) =>
      planFor(clock, prior, { endDate: '2026-03-14', ...settings }, more).days.map((day) => day.slice(8));
    expect(days({ lookbackDays: 0 })).toEqual(['11', '12', '14']);
    expect(days({ lookbackDays: 2 })).toEqual(['09', '10', '11', '12', '13', '14']);
    expect(days({ lookbackDays: 0 }, { from: '2026-03-12' })).toEqual(['12', '13', '14']);
    expect(days({ lookbackDays: 0 }, { delivery: 'settled' })).toEqual(['11', '12', '14']);
    const all = daysOf('2026-03-05', '2026-03-14').map((day) => day.slice(8));
    expect(days({ lookbackDays: 0 }, FULL)).toEqual(all);
    expect(days({ lookbackDays: 0 }, { ...FULL, delivery: 'settled' })).toEqual(all);
  });

  it('is refused if the first day is after the last', () => {
    const of = (from: string, to: string) => () => planFor(clock, MARCH, {}, { from, to });
    expect(thrown(of('2026-03-09', '2026-03-08'))).toMatchObject({
      exitCode: 2,
      message: expect.stringContaining('--from 2026-03-09 is after --to 2026-03-08'),
    });
    expect(of('2026-03-08', '2026-03-08')().days).toEqual(['2026-03-08']);
  });
});

const thrown = (work: () => unknown): UserError => {
  try {
    work();
  } catch (error) {
    if (error instanceof UserError) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
};

describe('the number of exports of a plan', () => {
  const need = (prior: PriorLoads, settings: Partial<PlanSettings>, more = {}) =>
    exportsNeeded(planFor(clock, prior, { endDate: '2026-03-10', ...settings }, more));

  it('is one a window once the rule is known, and one for all expired days', () => {
    const known = { toDateInclusive: 'true' } as const;
    expect(need(NO_PRIOR_LOADS, { ...known, ...start('03-01') })).toEqual({ least: 10, most: 10 });
    expect(need(NO_PRIOR_LOADS, { ...known, ...start('03-01'), windowDays: 4 })).toEqual({ least: 3, most: 3 });
    expect(need(NO_PRIOR_LOADS, { ...known, ...start('02-25'), windowDays: 4 })).toEqual({ least: 4, most: 4 });
  });

  it('is of windows as short as the service is known to export', () => {
    const split = { ...MARCH, state: { ...(MARCH.state as object), max_window_days: 2, to_date_inclusive: true } };
    expect(need(split, { windowDays: 5, endDate: '2026-03-14', lookbackDays: 0 })).toEqual({ least: 2, most: 2 });
    expect(need(split, { windowDays: 1, endDate: '2026-03-14', lookbackDays: 0 })).toEqual({ least: 4, most: 4 });
  });

  it('is at most two a day before, and four when no row may come twice', () => {
    expect(need(NO_PRIOR_LOADS, start('03-01'))).toEqual({ least: 10, most: 20 });
    expect(need(NO_PRIOR_LOADS, start('02-25'))).toEqual({ least: 11, most: 21 });
    expect(need(NO_PRIOR_LOADS, start('03-01'), { delivery: 'settled' })).toEqual({ least: 10, most: 41 });
    expect(need(MARCH, { endDate: '2026-03-08' })).toEqual({ least: 0, most: 0 });
  });
});

describe('a stored state', () => {
  const now = clock.now();
  const hashes = hashesOf(SETTINGS);
  const refusalOf = (state: object, settings = {}, more = {}) => {
    const failure = thrown(() => planFor(clock, { ...NO_PRIOR_LOADS, state }, settings, more));
    return failure instanceof StateError ? [failure.problem, failure.exitCode] : [];
  };
  const state = { version: 1, from_date: '2026-03-20', ...stateHashes(hashes) };
  const problem = (of: () => unknown): string | undefined => {
    try {
      of();
      return undefined;
    } catch (error) {
      return error instanceof StateError ? error.problem : String(error);
    }
  };

  it('is refused when malformed, newer, of another service or other filters, or in the future', () => {
    expect(refusalOf({ from_date: 'soon' })).toEqual(['malformed', 2]);
    expect(refusalOf({ ...state, from_date: '2026-02-30' })).toEqual(['malformed', 2]);
    expect(refusalOf({ ...state, version: 2 })).toEqual(['version', 2]);
    expect(refusalOf(state, { serviceId: 'other' }, { fullRefresh: true })).toEqual(['service', 2]);
    expect(refusalOf(state, { eventsCondition: 'include', events: ['a'] })).toEqual(['filters', 2]);
    expect(refusalOf({ ...state, from_date: '2026-04-02' })).toEqual(['future', 2]);
  });

  it('keeps unknown keys', () => {
    expect(planFor(clock, { ...NO_PRIOR_LOADS, state: { ...state, theirs: { a: 1 } } }, {}).state.theirs).toEqual({
      a: 1,
    });
  });

  it('is dropped by a full refresh with other filters, which then uses the cursor alone', () => {
    const filters = { eventsCondition: 'include' as const, events: ['a'] };
    const prior = covered('03-05', '03-30');
    const plan = planFor(clock, prior, filters, { fullRefresh: true });
    expect(plan.state).toMatchObject({ from_date: '2026-03-01', by_cursor: true });
    const next = planFor(clock, { ...prior, state: { ...plan.state, from_date: '2026-03-10' } }, filters);
    expect(next.days.slice(0, 3)).toEqual(['2026-03-09', '2026-03-10', '2026-03-11']);
  });

  it('remembers every key that rows were hashed under, and plain rows, under a full refresh', () => {
    const hashed = (state: unknown, key?: string) => {
      const lists = key === undefined ? {} : { columnsHash: ['email'], hashKey: new Secret(key.repeat(32)) };
      return planFor(clock, { ...NO_PRIOR_LOADS, state }, lists, { fullRefresh: true }).state;
    };
    const forms = ({ hashed: all }: { hashed?: unknown }) => all;
    const plain = { columns: [], key_check: null };
    const under = { columns: ['email'], key_check: expect.any(String) };
    const first = hashed(hashed(undefined), 'a');
    expect(forms(first)).toEqual([plain, under]);
    expect(forms(hashed(first, 'b'))).toEqual([plain, under, under]);
    expect(forms(hashed(hashed(undefined, 'a'), 'b'))).toEqual([under, under]);
  });

  it('is refused with other columns, and used under a full refresh with a warning', () => {
    const other = hashesOf({ ...SETTINGS, columnsDrop: ['phone'] });
    expect(problem(() => checkState(state, other, { now }))).toBe('columns');
    expect(checkState(state, other, { now, fullRefresh: true })).toMatchObject({ startsOver: true });
    const refreshed = planFor(clock, { ...NO_PRIOR_LOADS, state }, { columnsDrop: ['phone'] }, FULL);
    expect(refreshed.warnings.map(({ event }) => event)).toContain('columns.changed');
    expect([otherColumns(parseState(state), hashes), otherColumns(undefined, other)]).toEqual([false, false]);
    const older = { version: 1, from_date: '2026-03-20' };
    expect([otherColumns(parseState(older), other), checkState(older, other, { now }).startsOver]).toEqual([
      false,
      false,
    ]);
  });

  it('is in the future after the last day that has begun anywhere', () => {
    const at = (from_date: string, more = {}) => ({ ...state, from_date, ...more });
    expect(problem(() => checkState(at('2026-04-01'), hashes, { now }))).toBeUndefined();
    expect(problem(() => checkState(at('2026-04-02'), hashes, { now }))).toBe('future');
    expect(checkState(at('2026-04-02'), hashes, { now, fullRefresh: true }).startsOver).toBe(true);
    expect(checkState(at('2026-04-01'), hashes, { now, fullRefresh: true }).startsOver).toBe(false);
    expect(problem(() => checkState(at('2026-04-02', { question: 'a'.repeat(64) }), hashes, { now }))).toBe('filters');
    expect(
      problem(() => checkState(at('2026-04-02', { service: 'a'.repeat(64) }), hashes, { now, fullRefresh: true })),
    ).toBe('service');
    expect(checkState(undefined, hashes, { now })).toEqual({ state: undefined, startsOver: false });
  });

  it('may be absent in every form that a platform writes; another form is refused with what is wanted', () => {
    const said = (value: unknown) => {
      try {
        return String(parseState(value));
      } catch (error) {
        return (error as Error).message;
      }
    };
    for (const nothing of [undefined, null, {}]) expect(parseState(nothing)).toBeUndefined();
    for (const wrong of [[], 'x', 3]) expect(said(wrong)).toContain('it is not a JSON object');
    expect(said({ from_date: '2026-03-01' })).toContain('cannot be used');
    expect(said({ version: 1, from_date: 5 })).toMatch(/cannot be used \(from_date must be string\): wanted/);
    expect(said({ version: 0, from_date: '2026-03-01' })).toContain('version must be 1');
    expect(said({ version: '2', from_date: '2026-03-01' })).toContain('version must be 1');
    expect(said({ version: 2, from_date: '2026-03-01' })).toContain(
      'has version 2 and was written by a newer program, this one knows version 1: use that one.',
    );
    expect(said({ version: 1 })).toMatch(/cannot be used \(it must have required property/);
    expect(Object.isFrozen(parseState(state))).toBe(true);
  });

  it('lists the columns that were ever hashed', () => {
    const hashed = [{ columns: ['email'], key_check: '0123456789abcdef' }];
    expect([hashedIn(undefined), hashedIn(state), hashedIn({ ...state, hashed })]).toEqual([[], [], hashed]);
  });
});
