import { describe, expect, it } from 'vitest';
import { daysOf } from '../../../src/base/days.ts';
import { Secret } from '../../../src/base/secrets.ts';
import { hashedAfter, hashedColumns, hashesOf, requestKey } from '../../../src/extract/export-request.ts';
import {
  Coverage,
  DayRanges,
  earliestToday,
  lastDayOver,
  lastSettledDay,
  latestToday,
  lengthOf,
  missesLateRows,
  oldestDays,
  toDateFor,
  todayUtc,
} from '../../../src/extract/plan/days.ts';
import { plannedWindows } from '../../../src/extract/plan/forecast.ts';
import {
  clampWarning,
  gapError,
  gapWarning,
  nameDays,
  retentionLimitWarnings,
} from '../../../src/extract/plan/gaps.ts';
import { deliveryOf } from '../../../src/extract/plan/plan.ts';
import { at, SETTINGS } from '../../support/extract/extraction.ts';

const KEY = 'a key that has at least 32 characters';

describe('the days of an instant', () => {
  it('are the last that has begun anywhere, today in UTC, and the last that is over everywhere', () => {
    const days = (text: string) =>
      [latestToday, todayUtc, earliestToday, lastDayOver].map((of) => of(at(text)).slice(5));
    expect(days('2026-03-10T09:59:59Z')).toEqual(['03-10', '03-10', '03-09', '03-08']);
    expect(days('2026-03-10T10:00:00Z')).toEqual(['03-11', '03-10', '03-09', '03-08']);
    expect(days('2026-03-10T12:00:00Z')).toEqual(['03-11', '03-10', '03-10', '03-09']);
    expect([1, 2].map((hours) => lastSettledDay(at('2026-03-10T13:30:00Z'), hours))).toEqual([
      '2026-03-09',
      '2026-03-08',
    ]);
  });

  it('are the oldest exportable ones, surely and probably', () => {
    expect(oldestDays(at('2026-03-10T09:00:00Z'), 5)).toEqual({ surely: '2026-03-04', probably: '2026-03-05' });
    expect(oldestDays(at('2026-03-10T13:00:00Z'), 5)).toEqual({ surely: '2026-03-05', probably: '2026-03-05' });
  });

  it('may receive late rows for as long as the lookback reaches them', () => {
    const readAt = at('2026-03-10T16:00:00Z');
    const misses = (first: string, last: string, hours: number, lookbackDays: number) =>
      missesLateRows(
        { first: `2026-03-${first}`, last: `2026-03-${last}` },
        { readAt, now: readAt + hours * 3_600_000, lookbackDays },
      );
    expect([misses('09', '09', 0, 1), misses('09', '09', 24, 1), misses('09', '09', 0, 0)]).toEqual([
      false,
      true,
      false,
    ]);
    expect([misses('08', '08', 24, 1), misses('07', '08', 24, 2), misses('07', '09', 24, 2)]).toEqual([
      false,
      true,
      true,
    ]);
    expect([misses('09', '09', 24, 2), misses('07', '07', 48, 2), misses('08', '08', 24, 2)]).toEqual([
      false,
      false,
      true,
    ]);
  });
});

describe('the coverage of a state', () => {
  it('is every day before its floor, and every named day', () => {
    const coverage = new Coverage(['2026-03-07'], '2026-03-05');
    expect(['2026-03-04', '2026-03-05', '2026-03-06', '2026-03-07'].map((day) => coverage.has(day))).toEqual([
      true,
      false,
      false,
      true,
    ]);
    expect([new Coverage([], undefined).has('2026-03-04'), coverage.clone().has('2026-03-04')]).toEqual([false, true]);
    const now = at('2026-03-31T13:00:00Z');
    expect([coverage.cursor('2026-03-01', now), coverage.cursor('2026-03-07', now)]).toEqual([
      '2026-03-05',
      '2026-03-08',
    ]);
    const copy = coverage.clone();
    copy.add('2026-03-05', '2026-03-06');
    expect([copy.cursor('2026-03-01', now), coverage.cursor('2026-03-01', now)]).toEqual(['2026-03-08', '2026-03-05']);
  });

  it('moves the cursor over contiguous days, never past today in UTC-12', () => {
    const now = at('2026-03-31T13:00:00Z');
    const days = new Coverage(['2026-03-01', '2026-03-02', '2026-03-04'], undefined);
    expect(days.cursor('2026-03-01', now)).toBe('2026-03-03');
    days.add('2026-03-03', '2026-04-20');
    expect(days.cursor('2026-03-01', now)).toBe('2026-03-31');
  });

  it('comes from receipts, or from the cursor without receipts or with those of other filters', () => {
    const state = { version: 1, from_date: '2026-03-05', gaps: ['2026-03-08'] } as const;
    const has = (coverage: Coverage) => ['2026-03-01', '2026-03-06', '2026-03-08'].map((day) => coverage.has(day));
    const receipts = new Set(['2026-03-06']);
    expect(has(Coverage.of(state, receipts))).toEqual([false, true, true]);
    expect(has(Coverage.of(state, new Set()))).toEqual([true, false, true]);
    expect(has(Coverage.of({ ...state, by_cursor: true }, receipts))).toEqual([true, false, true]);
    expect(has(Coverage.of(undefined, receipts))).toEqual([false, true, false]);
  });
});

describe('ranges of days', () => {
  it('end at a hole, at the maximum length, and with the days', () => {
    const ranges = new DayRanges(['2026-03-01', '2026-03-02', '2026-03-03', '2026-03-05', '2026-03-06']);
    expect(ranges.peek()).toBe('2026-03-01');
    expect(ranges.next(2)).toEqual({ first: '2026-03-01', last: '2026-03-02' });
    expect(ranges.next(9)).toEqual({ first: '2026-03-03', last: '2026-03-03' });
    expect(ranges.peek()).toBe('2026-03-05');
    expect(ranges.next(9)).toEqual({ first: '2026-03-05', last: '2026-03-06' });
    expect([ranges.peek(), ranges.next(1)]).toEqual([undefined, undefined]);
    expect(lengthOf({ first: '2026-02-28', last: '2026-03-02' })).toBe(3);
  });

  it('are requested with the further day that their end needs, the first alone while the rule is unproved', () => {
    const days = daysOf('2026-03-01', '2026-03-04');
    const asked = (inclusive: boolean | undefined) =>
      plannedWindows({ days, likelyGaps: new Set(), windowDays: 3, singleDaysInclusive: inclusive }).map(
        ({ first, to }) => `${first.slice(8)}..${to.slice(8)}`,
      );
    expect([asked(true), asked(false), asked(undefined)]).toEqual([
      ['01..03', '04..04'],
      ['01..04', '04..05'],
      ['01..01', '02..04'],
    ]);
    expect(toDateFor({ first: '2026-03-01', last: '2026-03-02' }, false)).toBe('2026-03-03');
  });

  it('are settled for plain append alone, unless configured', () => {
    expect([deliveryOf('auto', { isPlainAppend: true }), deliveryOf('auto')]).toEqual(['settled', 'fresh']);
    expect([deliveryOf('fresh', { isPlainAppend: true }), deliveryOf('settled')]).toEqual(['fresh', 'settled']);
  });
});

describe('messages about lost days', () => {
  it('name forty ranges of them and count the others', () => {
    const apart = daysOf('2026-01-01', '2026-03-31').filter((_, i) => i % 2 === 0);
    const named = nameDays(apart);
    expect(named.split(', ')).toHaveLength(40);
    expect(named).toMatch(/2026-03-20 and 5 more$/);
    expect(nameDays(apart.slice(0, 40))).not.toContain('more');
    expect(nameDays(['2026-02-27', '2026-02-28', '2026-03-01', '2026-03-03'])).toBe(
      '2026-02-27 to 2026-03-01, 2026-03-03',
    );
  });

  it('give their number, and what is stored', () => {
    const days = ['2026-03-01', '2026-03-02'];
    expect(gapError(days)).toMatchObject({ exitCode: 4, message: expect.stringContaining('2 days can no longer') });
    expect([gapError(days).message, gapError(days, true).message]).toEqual([
      expect.stringContaining('Nothing was changed'),
      expect.stringContaining('What was stored before them is complete'),
    ]);
    expect(gapWarning(days).message).toContain('2026-03-01 to 2026-03-02');
    expect(clampWarning('2026-03-01', '2026-03-02').message).toContain('from 2026-03-02 instead of 2026-03-01');
  });

  it('begin seven days before the first one expires, while there is anything to read', () => {
    const said = (cursor: string, last = '2026-03-31') =>
      retentionLimitWarnings(cursor, last, '2026-03-01').map(({ message }) => message);
    expect([said('2026-03-09'), said('2026-03-08', '2026-03-07')]).toEqual([[], []]);
    expect(said('2026-03-08')[0]).toContain('in 7 days');
    expect(said('2026-03-08', '2026-03-08')).toHaveLength(1);
    expect([said('2026-03-02')[0], said('2026-03-01')[0], said('2026-02-20')[0]]).toEqual([
      expect.stringContaining('in 1 day'),
      expect.stringContaining('today'),
      expect.stringContaining('today'),
    ]);
  });
});

describe('hashed columns', () => {
  const settings = (columnsHash: string[], key = KEY) => ({ columnsHash, hashKey: new Secret(key) });

  it('are a set, under the check value of their key, and none without columns', () => {
    const { columns, key_check } = hashedColumns(settings(['b', 'a', 'b']));
    expect([columns, key_check]).toEqual([['a', 'b'], expect.stringMatching(/./)]);
    const plain = { columns: [], key_check: null };
    expect([hashedColumns(settings([])), hashedColumns({ columnsHash: ['a'], hashKey: undefined })]).toEqual([
      plain,
      plain,
    ]);
  });

  it('are remembered in order, each form once', () => {
    const plain = { columns: [], key_check: null };
    const [one, other, more] = [settings(['a']), settings(['a'], `${KEY}2`), settings(['a', 'b'])].map(hashedColumns);
    expect(hashedAfter(undefined, settings(['a']))).toEqual([one]);
    expect(hashedAfter({}, settings(['a']))).toEqual([plain, one]);
    expect(hashedAfter({ hashed: [one] }, settings(['a'], `${KEY}2`))).toEqual([one, other]);
    expect(hashedAfter({ hashed: [one, other] }, settings(['a']))).toEqual([other, one]);
    expect(hashedAfter({ hashed: [one] }, settings(['a', 'b']))).toEqual([one, more]);
    expect([hashedAfter(undefined, settings([])), hashedAfter({}, settings([]))]).toEqual([undefined, undefined]);
    expect(hashedAfter({ hashed: [one] }, settings([]))).toEqual([one, plain]);
  });
});

describe('the hash of an export request', () => {
  const hashWith = (more: object) => hashesOf({ ...SETTINGS, ...more }).request;

  it('differs with the filters or the columns, and not with their spelling', () => {
    const lists = { events: ['a'], properties: ['a'] };
    const all = [
      {},
      { ...lists, eventsCondition: 'include' },
      { ...lists, eventsCondition: 'exclude' },
      { ...lists, propertiesCondition: 'include' },
      { ...lists, propertiesCondition: 'exclude' },
      { columnsDrop: ['a'] },
      { columnsHash: ['a'], hashKey: new Secret(KEY) },
      { columnsHash: ['a'], hashKey: new Secret(`${KEY}2`) },
      { serviceId: 'other' },
      { baseUrl: 'http://127.0.0.1:2' },
    ];
    expect(new Set(all.map(hashWith)).size).toBe(all.length);
    expect([hashWith(lists), hashWith({ eventsCondition: 'include' })]).toEqual([hashWith({}), hashWith({})]);
    expect(hashWith({ columnsDrop: ['b', 'a', 'b'] })).toBe(hashWith({ columnsDrop: ['a', 'b'] }));
    const include = (events: string[]) => hashWith({ events, eventsCondition: 'include' });
    expect(include(['b', 'a', 'b'])).toBe(include(['a', 'b']));
    expect(include(['a'])).not.toBe(include(['b']));
    expect(hashesOf(SETTINGS)).not.toHaveProperty('columns');
    expect(hashesOf({ ...SETTINGS, columnsDrop: ['a'] })).toHaveProperty('columns');
  });

  it('has a key for each of its days', () => {
    const filters = { events: [], eventsCondition: 'all', properties: [], propertiesCondition: 'all' } as const;
    const key = (from: string, to: string) => requestKey({ ...filters, from, to });
    expect(
      new Set([key('2026-03-01', '2026-03-01'), key('2026-03-01', '2026-03-02'), key('2026-03-02', '2026-03-02')]).size,
    ).toBe(3);
    expect(key('2026-03-01', '2026-03-01')).toMatch(/^[0-9a-f]{64}$/);
  });
});
