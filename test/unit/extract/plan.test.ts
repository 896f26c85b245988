import { describe, expect, it } from 'vitest';
import { addDays, daysOf } from '../../../src/base/days.ts';
import { UserError } from '../../../src/base/errors.ts';
import { Secret } from '../../../src/base/secrets.ts';
import { hashesOf } from '../../../src/extract/export-request.ts';
import { deliveryOf } from '../../../src/extract/plan/plan.ts';
import { StateError } from '../../../src/extract/state.ts';
import { exportsNeeded } from '../../../src/extract/summary.ts';
import { NO_PRIOR_LOADS, type PriorLoads } from '../../../src/extract/window.ts';
import { at, FakeClock, planFor, SETTINGS } from '../../support/extract/extraction.ts';

const clock = new FakeClock(at('2026-03-31T13:00:00Z')); // UTC-12: the 31st has begun; UTC+14: 1 April
const covered = (first: string, last: string, state: object = {}): PriorLoads => ({
  ...NO_PRIOR_LOADS,
  covered: new Set(daysOf(first, last)),
  state: { version: 1, from_date: addDays(last, 1), start_date: first, ...hashesOf(SETTINGS), ...state },
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

describe('the days of a plan', () => {
  it('go from the oldest exportable day through today in UTC+14 [R4]', () => {
    const plan = planFor(clock, NO_PRIOR_LOADS, {});
    expect([plan.firstDay, plan.lastDay, plan.likelyGaps]).toEqual(['2026-03-01', '2026-04-01', []]);
    expect(plan.state).toMatchObject({ version: 1, from_date: '2026-03-01' });
  });

  it('follow the cursor with the lookback', () => {
    const plan = planFor(clock, covered('2026-03-05', '2026-03-20'), { lookbackDays: 3 });
    expect([plan.cursor, plan.firstDay]).toEqual(['2026-03-21', '2026-03-18']);
  });

  it('never look back before the start', () => {
    const plan = planFor(clock, covered('2026-03-20', '2026-03-20'), { startDate: '2026-03-20', lookbackDays: 9 });
    expect(plan.firstDay).toBe('2026-03-20');
  });

  it('leave out what mapped tasks have covered after the cursor [R6]', () => {
    const prior = { ...covered('2026-03-20', '2026-03-20'), covered: new Set(['2026-03-20', '2026-03-23']) };
    const plan = planFor(clock, prior, { startDate: '2026-03-20', lookbackDays: 0, endDate: '2026-03-25' });
    expect(plan.days).toEqual(['2026-03-21', '2026-03-22', '2026-03-24', '2026-03-25']);
    expect(plan.windows.map((w) => w.first)).toEqual(plan.days);
  });

  it.each(['fresh', 'settled'] as const)(
    'are all of them under a full refresh, whatever is covered: %s',
    (delivery) => {
      const prior = { ...covered('2026-03-20', '2026-03-20'), covered: new Set(['2026-03-20', '2026-03-23']) };
      const settings = { startDate: '2026-03-20', lookbackDays: 0, endDate: '2026-03-25' };
      const { days } = planFor(clock, prior, settings, { delivery, fullRefresh: true });
      expect(days).toEqual(daysOf('2026-03-20', '2026-03-25'));
    },
  );

  it('are exactly those asked for [R1]', () => {
    const plan = planFor(clock, covered('2026-03-05', '2026-03-20'), {}, { from: '2026-03-10', to: '2026-03-12' });
    expect(plan.days).toEqual(['2026-03-10', '2026-03-11', '2026-03-12']);
    expect(plan.state.from_date).toBe('2026-03-21');
  });

  it('refuse a range that ends before it begins', () => {
    expect(thrown(() => planFor(clock, NO_PRIOR_LOADS, {}, { from: '2026-03-12', to: '2026-03-10' })).exitCode).toBe(2);
  });

  it('wait for settled days and take each once [R10]', () => {
    const prior = covered('2026-03-05', '2026-03-28');
    const plan = (hours: number) => planFor(clock, prior, { settleHours: hours }, { delivery: 'settled' });
    expect(plan(1).days).toEqual(['2026-03-29', '2026-03-30']);
    expect(plan(2).days).toEqual(['2026-03-29']);
  });

  it('group neighbouring days, the first alone while nothing is proved', () => {
    const windows = (state: object) =>
      planFor(clock, covered('2026-03-05', '2026-03-20', state), { windowDays: 5, endDate: '2026-03-31' }).windows;
    expect(windows({ to_date_inclusive: true }).map((w) => [w.first, w.to])).toEqual([
      ['2026-03-20', '2026-03-24'],
      ['2026-03-25', '2026-03-29'],
      ['2026-03-30', '2026-03-31'],
    ]);
    expect(windows({ to_date_inclusive: false })[0]).toMatchObject({
      from: '2026-03-20',
      last: '2026-03-24',
      to: '2026-03-25',
    });
    expect(windows({})[0]).toMatchObject({ first: '2026-03-20', last: '2026-03-20' });
  });
});

describe('a full refresh', () => {
  it('goes on from its cursor when it is resumed, without lookback', () => {
    const prior = { ...NO_PRIOR_LOADS, state: { version: 1, from_date: '2026-03-20', start_date: '2026-03-05' } };
    const first = (resume: boolean) => planFor(clock, prior, {}, { fullRefresh: true, resume });
    expect([first(true).firstDay, first(false).firstDay]).toEqual(['2026-03-20', '2026-03-05']);
    expect(first(true).proveFirst).toBe(true);
  });

  it('needs one export a window once the rule is known, at most two a day before', () => {
    const need = (toDateInclusive: 'auto' | 'true') =>
      exportsNeeded(
        planFor(clock, NO_PRIOR_LOADS, { startDate: '2026-03-20', endDate: '2026-03-29', toDateInclusive }),
      );
    expect([need('true'), need('auto')]).toEqual([
      { least: 10, most: 10 },
      { least: 10, most: 20 },
    ]);
  });

  it('is settled for plain append alone [R10]', () => {
    expect([deliveryOf('auto', true), deliveryOf('auto', false), deliveryOf('fresh', true)]).toEqual([
      'settled',
      'fresh',
      'fresh',
    ]);
  });
});

describe('gaps', () => {
  it('are only likely as long as this machine’s clock alone says so: the days are asked for [R7]', () => {
    const plan = planFor(clock, covered('2026-02-01', '2026-02-20'), { onGap: 'warn' });
    expect(plan.likelyGaps).toEqual(daysOf('2026-02-21', '2026-02-28'));
    expect(plan.state).not.toHaveProperty('gaps');
    expect([plan.firstDay, plan.cursor, plan.state.from_date]).toEqual(['2026-02-21', '2026-02-21', '2026-02-21']);
    expect(plan.warnings.map((w) => w.event)).toContain('plan.gap');
    expect(plan.windows[0].first).toBe('2026-03-01');
  });

  it('are days of an explicit start on the first run', () => {
    const plan = planFor(clock, NO_PRIOR_LOADS, { startDate: '2026-02-25' });
    expect(plan.likelyGaps).toEqual(daysOf('2026-02-25', '2026-02-28'));
  });

  it('are never the lookback, the default start or a full refresh [R7]', () => {
    const clamped = [
      planFor(clock, covered('2026-02-01', '2026-03-02'), { lookbackDays: 9 }),
      planFor(
        clock,
        { ...NO_PRIOR_LOADS, state: { version: 1, from_date: '2026-02-01', start_date: '2026-02-01' } },
        {},
      ),
      planFor(clock, NO_PRIOR_LOADS, { startDate: '2026-02-01' }, { fullRefresh: true }),
      planFor(clock, covered('2026-02-01', '2026-03-20'), { startDate: '2026-02-01' }, { fullRefresh: true }),
    ];
    for (const plan of clamped) {
      expect([plan.firstDay, plan.likelyGaps]).toEqual(['2026-03-01', []]);
      expect(plan.warnings.map((w) => w.event)).toContain('plan.clamped');
    }
    expect(clamped[3].state.from_date).toBe('2026-03-21');
  });

  it('are announced from seven days before on [R7]', () => {
    const events = (last: string) => planFor(clock, covered('2026-02-01', last), {}).warnings.map((w) => w.event);
    expect(events('2026-03-07')).toContain('plan.retention_limit');
    expect(events('2026-03-08')).toEqual([]);
  });
});

describe('a stored state', () => {
  const problem = (state: object, settings = {}, more = {}) => {
    const failure = thrown(() => planFor(clock, { ...NO_PRIOR_LOADS, state }, settings, more));
    return failure instanceof StateError ? [failure.problem, failure.exitCode] : [];
  };
  const state = { version: 1, from_date: '2026-03-20', ...hashesOf(SETTINGS) };

  it('is refused when malformed, newer, of another service or question, or in the future [R8]', () => {
    expect(problem({ from_date: 'soon' })).toEqual(['malformed', 2]);
    expect(problem({ ...state, from_date: '2026-02-30' })).toEqual(['malformed', 2]);
    expect(problem({ ...state, version: 2 })).toEqual(['version', 2]);
    expect(problem(state, { serviceId: 'other' }, { fullRefresh: true })).toEqual(['service', 2]);
    expect(problem(state, { eventsCondition: 'include', events: ['a'] })).toEqual(['filters', 2]);
    expect(problem({ ...state, from_date: '2026-04-02' })).toEqual(['future', 2]);
  });

  it('keeps its unknown keys [R8]', () => {
    expect(planFor(clock, { ...NO_PRIOR_LOADS, state: { ...state, theirs: { a: 1 } } }, {}).state.theirs).toEqual({
      a: 1,
    });
  });

  it('starts over under a full refresh with other filters, and then goes by the cursor alone [R8]', () => {
    const filters = { eventsCondition: 'include' as const, events: ['a'] };
    const prior = covered('2026-03-05', '2026-03-30');
    const plan = planFor(clock, prior, filters, { fullRefresh: true });
    expect(plan.state).toMatchObject({ from_date: '2026-03-01', by_cursor: true });
    const next = planFor(clock, { ...prior, state: { ...plan.state, from_date: '2026-03-10' } }, filters);
    expect(next.days.slice(0, 3)).toEqual(['2026-03-09', '2026-03-10', '2026-03-11']);
  });

  it('remembers every key that rows were hashed under, and rows that were not, under a full refresh [R355]', () => {
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

  it('is the same question however the filter is written [R8]', () => {
    const ask = (events: string[]) => hashesOf({ ...SETTINGS, events, eventsCondition: 'include' }).question;
    expect(ask(['a', 'b'])).toBe(ask(['b', 'a', 'b']));
    expect(ask(['a'])).not.toBe(ask(['b']));
    expect(hashesOf({ ...SETTINGS, events: ['a'] })).toEqual(hashesOf(SETTINGS));
  });
});
