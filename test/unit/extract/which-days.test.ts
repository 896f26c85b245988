import { describe, expect, it } from 'vitest';
import { addDays, type Day, daysOf } from '../../../src/base/days.ts';
import { forecastOf } from '../../../src/cli/run/sync-plan.ts';
import type { ReceiptSummary } from '../../../src/extract/checked-day.ts';
import { type ExportSettings, fingerprintsOf } from '../../../src/extract/export-settings.ts';
import { type ExportState, parseState } from '../../../src/extract/export-state.ts';
import { cursorOf, type PlanInput, planRun, type RunPlan } from '../../../src/extract/which-days.ts';
import { at, HOUR, SETTINGS } from '../../support/extract/extraction.ts';

/** 2 pm in UTC: 20 January there, and it is over at UTC-12 through the 19th only from noon on. */
const NOW = at('2026-01-20T14:00:00Z');
/** It is tomorrow in Seoul. */
const LATE = at('2026-01-20T20:00:00Z');
const { serviceHash: service, filtersHash: filters } = fingerprintsOf({ ...SETTINGS });

type Stored = Partial<ReceiptSummary>;

/** Receipts of days, each over and with 100 rows unless `other` says something else. */
const receipts = (first: Day, last: Day, other: Readonly<Record<Day, Stored>> = {}) =>
  new Map(
    [...daysOf(first, last), ...Object.keys(other)].map((day) => [
      day,
      { rows: 100, to_date: day, is_over: true, requested_at: '2026-01-20T00:00:00.000Z', ...other[day] },
    ]),
  );

const state = (more: Partial<ExportState>): ExportState => ({
  version: 1,
  from_date: '2026-01-19',
  start_date: '2026-01-10',
  service,
  filters,
  to_date_inclusive: true,
  ...more,
});

const loaded = (other: Readonly<Record<Day, Stored>> = {}, more: Partial<ExportState> = {}) => ({
  state: state(more),
  receipts: receipts('2026-01-10', '2026-01-18', other),
});

type StoredLoads = Pick<PlanInput, 'state' | 'receipts'>;

function plan(stored: StoredLoads = {}, settings: Partial<ExportSettings> = {}, more: Partial<PlanInput> = {}) {
  return planRun({ settings: { ...SETTINGS, ...settings }, ...stored, now: NOW, ...more });
}

const events = (notes: RunPlan['notes']) => notes.map(({ event }) => event);

describe('the days of a first run', () => {
  it('are those from start_date through today in UTC', () => {
    expect(plan({}, { startDate: '2026-01-15' }).days).toEqual(daysOf('2026-01-15', '2026-01-20'));
  });

  it('are all that are exported without a start_date', () => {
    expect(plan().days).toEqual(daysOf('2025-12-21', '2026-01-20'));
  });

  it('begin with the oldest exported day after an earlier start_date, with a warning', () => {
    const { days, start, notes } = plan({}, { startDate: '2025-11-01' });
    expect([days[0], start]).toEqual(['2025-12-21', '2025-12-21']);
    expect(events(notes)).toEqual(['plan.shortened']);
  });

  it('end with today in the time zone', () => {
    const last = (timezone: string) => plan({}, { timezone }, { now: LATE }).days.at(-1);
    expect([last('Asia/Seoul'), last('America/Los_Angeles')]).toEqual(['2026-01-21', '2026-01-20']);
  });

  it('end with end_date, or with today if that is earlier', () => {
    expect(plan({}, { startDate: '2026-01-20', endDate: '2026-01-25' }).days).toEqual(['2026-01-20']);
    expect(plan({}, { startDate: '2026-01-15', endDate: '2026-01-16' }).days).toEqual(['2026-01-15', '2026-01-16']);
  });
});

describe('the days of a later run', () => {
  it.each([
    [0, '2026-01-19'],
    [1, '2026-01-18'],
    [3, '2026-01-16'],
    [30, '2026-01-10'],
  ])('look back %i days from the first missing day, never before the start', (lookbackDays, first) => {
    expect(plan(loaded(), { lookbackDays }).days).toEqual(daysOf(first, '2026-01-20'));
  });

  it('look back at no day that is no longer exported', () => {
    const prior = { state: state({ from_date: '2025-12-22', start_date: '2025-12-01' }), receipts: new Map() };
    expect(plan(prior, { lookbackDays: 5 }).days[0]).toBe('2025-12-21');
  });

  it('leave out days after the cursor that are loaded and over', () => {
    const prior = loaded({}, { from_date: '2026-01-12' });
    const holed = { ...prior, receipts: new Map([...prior.receipts].filter(([day]) => day !== '2026-01-12')) };
    expect(plan(holed).days).toEqual(['2026-01-11', '2026-01-12', '2026-01-19', '2026-01-20']);
  });

  it('include empty days that were not requested a week after they were over', () => {
    const settled = { rows: 0, requested_at: '2026-01-20T12:00:00.000Z' };
    const empty = { '2026-01-12': settled, '2026-01-13': { rows: 0 } };
    const { days, notes } = plan(loaded(empty));
    expect(days).toEqual(['2026-01-13', '2026-01-18', '2026-01-19', '2026-01-20']);
    expect(notes.map(({ message }) => message)).toEqual([
      expect.stringContaining('no rows, and the provider may be late: 2026-01-13.'),
    ]);
    // But neither days before the start, which only `--from` reads, nor days after the end.
    expect(plan(loaded(empty, { start_date: '2026-01-14' })).days[0]).toBe('2026-01-18');
    expect(plan(loaded(empty), { endDate: '2026-01-12' }).days).toEqual([]);
  });

  it('leave out pruned days and gaps', () => {
    const pruned = loaded({ '2026-01-17': { rows: 0, pruned: true }, '2026-01-18': { pruned: true } });
    expect(plan(pruned, { lookbackDays: 3 }).days).toEqual(['2026-01-16', '2026-01-19', '2026-01-20']);
    expect(plan(loaded({}, { gaps: ['2026-01-18'] })).days).toEqual(['2026-01-19', '2026-01-20']);
  });

  it('include a pruned day from the cursor on only if it was not over', () => {
    const open = { is_over: false, pruned: true };
    const pruned = loaded({ '2026-01-16': { pruned: true }, '2026-01-17': open }, { from_date: '2026-01-15' });
    expect(plan(pruned).days).toEqual(['2026-01-17', '2026-01-19', '2026-01-20']);
  });

  it('keep the start when start_date changes, with a warning that names the command for the days before', () => {
    const { days, notes } = plan(loaded(), { startDate: '2026-01-01' });
    expect(days[0]).toBe('2026-01-18');
    expect(events(notes)).toEqual(['plan.earlier_start']);
    expect(notes[0].message).toContain('sync … --from 2026-01-01 --to 2026-01-09');
    const read = { ...loaded(), receipts: receipts('2026-01-01', '2026-01-18') };
    expect(plan(read, { startDate: '2026-01-01' }).notes).toEqual([]);
    expect(plan(loaded({}, { start_date: '2025-12-20' }), { startDate: '2025-11-01' }).notes).toEqual([]);
  });
});

describe('named days', () => {
  it('are read with any cursor, and are not shortened', () => {
    const { days, mode } = plan(loaded(), {}, { from: '2025-11-30', to: '2025-12-01' });
    expect(days).toEqual(['2025-11-30', '2025-12-01']);
    expect(mode).toBe('named');
  });

  it('that are not over are read, with a warning', () => {
    const timezone = 'Asia/Seoul';
    const { days, notes } = plan(loaded(), { timezone }, { from: '2026-01-19', to: '2026-01-25', now: LATE });
    expect(days).toEqual(daysOf('2026-01-19', '2026-01-21'));
    expect(notes).toMatchObject([
      { message: expect.stringMatching(/^Not over everywhere yet: 2026-01-20 to 2026-01-21\./) },
    ]);
    expect(plan(loaded(), {}, { from: '2026-01-19', to: '2026-01-19' }).notes).toEqual([]);
  });

  it('are refused in the wrong order, or before they begin anywhere, as is such a start_date', () => {
    expect(() => plan({}, {}, { from: '2026-01-02', to: '2026-01-01' })).toThrow(
      '2026-01-01, the last day: that of --to',
    );
    expect(plan({}, { startDate: '2026-01-21' }).days).toEqual([]);
    expect(() => plan({}, { startDate: '2026-01-22' })).toThrow('start_date 2026-01-22 has not begun');
    expect(() => plan({}, {}, { from: '2026-01-22' })).toThrow('--from 2026-01-22 has not begun');
    expect(() => plan({}, {}, { from: '2026-01-21' })).toThrow('--from 2026-01-21 is after 2026-01-20, the last day');
    const ended = () => plan({}, { endDate: '2026-01-16' }, { from: '2026-01-17' });
    expect(ended).toThrow('--from 2026-01-17 is after 2026-01-16, the last day: that of --to or end_date');
  });
});

describe('plain append', () => {
  it('reads days that have been over for settle_hours, each once', () => {
    const { days } = plan(loaded({}, { from_date: '2026-01-17' }), {}, { appends: true });
    expect(days).toEqual([]);
    const settled = plan(loaded(), { settleHours: 0 }, { appends: true });
    expect(settled.days).toEqual(['2026-01-19']);
  });

  it('warns of days that another sync mode has sent before they were over', () => {
    const open = loaded({ '2026-01-18': { is_over: false }, '2026-01-17': { is_over: false, rows: 0 } });
    const { days, notes } = plan({ ...open, state: state({ from_date: '2026-01-17' }) }, {}, { appends: true });
    expect(days).toEqual(['2026-01-17', '2026-01-18']);
    expect(notes.map(({ message }) => message)).toEqual([
      expect.stringMatching(/^2026-01-18 had rows in another sync mode/),
    ]);
  });

  it('reads an empty day again, but no day with few rows', () => {
    const weeks: Record<Day, Stored> = {};
    for (let week = 1; week <= 4; week++) weeks[addDays('2026-01-17', -7 * week)] = { rows: 1000 };
    const few = loaded({ ...weeks, '2026-01-17': { rows: 5 }, '2026-01-16': { rows: 0 } });
    expect(plan(few, {}, { appends: true }).days).toEqual(['2026-01-16']);
    expect(plan(few).days).toEqual(expect.arrayContaining(['2026-01-16', '2026-01-17']));
  });
});

it.each([false, true])(
  'an empty day that was requested too early is read again while it is exported, plain append: %s',
  (appends) => {
    const early = { rows: 0, requested_at: '2026-01-14T00:00:00.000Z' };
    const stored = loaded({ '2026-01-10': early, '2026-01-12': early });
    const { days } = plan(stored, { historyDays: 9, lookbackDays: 0 }, { appends });
    expect(days.filter((day) => day < '2026-01-19')).toEqual(['2026-01-12']);
  },
);

it('empty days requested as if an export included its end are read again once it is known not to', () => {
  const settled = { rows: 0, requested_at: '2026-01-20T12:00:00.000Z' };
  const stored = loaded({ '2026-01-11': settled, '2026-01-12': { ...settled, to_date: '2026-01-13' } });
  const readAgain = (toDateInclusive: 'true' | 'false') =>
    plan(stored, { toDateInclusive, lookbackDays: 0 }).days.filter((day) => day < '2026-01-19');
  expect([readAgain('true'), readAgain('false')]).toEqual([[], ['2026-01-11']]);
});

describe('a full refresh', () => {
  const refresh = { fullRefresh: true };

  it('reads every day from the start that is still exported, and names older ones', () => {
    const prior = { state: state({ start_date: '2025-12-10' }), receipts: receipts('2025-12-10', '2026-01-18') };
    const { days, notes } = plan(prior, {}, refresh);
    expect(days).toEqual(daysOf('2025-12-21', '2026-01-20'));
    expect(notes.map(({ message }) => message).join()).toMatch(
      /2025-12-10 to 2025-12-20 stay as they are\. Filters, columns/,
    );
  });

  it('warns of days after start_date that it does not read, as a sync does', () => {
    const first = plan({}, { startDate: '2025-11-01' }, refresh);
    expect(first.days).toEqual(daysOf('2025-12-21', '2026-01-20'));
    expect(first.notes).toMatchObject([
      { level: 'warn', event: 'plan.shortened', message: expect.stringContaining('2025-12-21 instead of 2025-11-01') },
    ]);
    expect(events(plan(loaded(), { startDate: '2026-01-05' }, refresh).notes)).toEqual(['plan.earlier_start']);
    expect(plan(loaded(), {}, refresh).notes).toEqual([]);
  });

  it('takes other filters, which a sync refuses', () => {
    const prior = loaded({}, { filters: 'a'.repeat(64) });
    expect(() => plan(prior)).toThrow(/--full-refresh/);
    expect(plan(prior, {}, refresh).days).toEqual(daysOf('2026-01-10', '2026-01-20'));
  });

  it('that was interrupted is finished by the next sync, as far as days are exported', () => {
    const old = { filters: 'a'.repeat(64) };
    const prior = loaded({ '2025-12-15': old, '2026-01-11': old, '2026-01-13': { ...old, pruned: true } });
    expect(plan(prior).days).toEqual(['2026-01-11', '2026-01-18', '2026-01-19', '2026-01-20']);
  });

  it('reads stored days before the start while they are exported, as does a sync with other filters', () => {
    const old = { filters: 'a'.repeat(64) };
    const stored = receipts('2025-12-15', '2026-01-18', { '2026-01-11': old });
    const prior = { state: state({ start_date: '2026-01-15' }), receipts: stored };
    const { days, notes } = plan(prior, {}, refresh);
    expect(days).toEqual(daysOf('2025-12-21', '2026-01-20'));
    expect(notes[0].message).toContain('before 2025-12-21 can no longer be exported: 2025-12-15 to 2025-12-20 stay');
    expect(plan(prior).days).toEqual(['2026-01-11', '2026-01-18', '2026-01-19', '2026-01-20']);
  });

  it('reads stored days after end_date, too: they would keep the old filters', () => {
    expect(plan(loaded(), { endDate: '2026-01-12' }, refresh).days).toEqual(daysOf('2026-01-10', '2026-01-18'));
  });

  it('leaves out days whose rows were removed', () => {
    const { days } = plan(loaded({ '2026-01-12': { rows: 0, pruned: true } }), {}, refresh);
    expect(days).toEqual(daysOf('2026-01-10', '2026-01-20').filter((day) => day !== '2026-01-12'));
  });

  it('is refused for named days', () => {
    expect(() => plan(loaded(), {}, { ...refresh, from: '2026-01-12' })).toThrow(/--full-refresh reads all days/);
  });
});

describe('a stored state', () => {
  it.each<[string, unknown, RegExp]>([
    ['of another service', state({ service: 'b'.repeat(64) }), /another service/],
    ['of a newer version', { ...state({}), version: 2 }, /newer program/],
    ['with an impossible day', state({ from_date: '2026-02-30' }), /cannot be used/],
    ['that is a list', [], /not a JSON object/],
    ['with a cursor in the future', state({ from_date: '2026-01-25' }), /lies in the future/],
  ])('%s is refused with exit 2', (_, stored, message) => {
    expect(() => plan({ state: parseState(stored) })).toThrow(
      expect.objectContaining({ exitCode: 2, message: expect.stringMatching(message) }),
    );
  });

  it.each<[string, Partial<ExportSettings>, boolean]>([
    ['names in another order', { events: ['b', 'a', 'a'], eventsCondition: 'include' }, true],
    ['another condition', { events: ['a', 'b'], eventsCondition: 'exclude' }, false],
    ['other properties', { properties: ['p'], propertiesCondition: 'include' }, false],
    ['a dropped column', { columnsDrop: ['phone'] }, false],
  ])('goes on with the same filters alone: %s', (_, more, isSame) => {
    const settings: Partial<ExportSettings> = { events: ['a', 'b'], eventsCondition: 'include' };
    const fingerprints = fingerprintsOf({ ...SETTINGS, ...settings });
    const prior = {
      state: state({ service: fingerprints.serviceHash, filters: fingerprints.filtersHash }),
      receipts: receipts('2026-01-10', '2026-01-18'),
    };
    const run = () => plan(prior, { ...settings, ...more });
    if (isSame) expect(run().days).toHaveLength(3);
    else expect(run).toThrow(/other filters or columns/);
  });

  it('with a cursor alone is that of an earlier run', () => {
    const planned = plan({ state: { version: 1, from_date: '2026-01-18' } }, { startDate: '2026-01-10' });
    expect(cursorOf(planned)).toBe('2026-01-18');
    expect(planned.days).toEqual(daysOf('2026-01-17', '2026-01-20'));
  });
});

it('the forecast counts on a hundred exports an hour, and three more to find out the end of an export', () => {
  const of = (last: Day, toDateInclusive: 'auto' | 'true') =>
    forecastOf(plan({}, { startDate: '2025-12-25', toDateInclusive }, { from: '2025-12-25', to: last }), 5, false);
  const atOnce = { exports_least: 3, waitMs: 0 };
  expect(of('2025-12-27', 'true')).toEqual({ ...atOnce, exports_most: 3, exports_startable_now: 3 });
  expect(of('2025-12-27', 'auto')).toMatchObject({ ...atOnce, exports_most: 6 });
  const year = plan({}, { toDateInclusive: 'true' }, { from: '2025-01-01' });
  expect(forecastOf(year, 5, false)).toMatchObject({ exports_most: 385, exports_startable_now: 5, waitMs: 3 * HOUR });
});
