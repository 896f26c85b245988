import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { addDays, type Day, daysOf } from '../../../src/base/days.ts';
import type { ReceiptSummary } from '../../../src/extract/checked-day.ts';
import { fingerprintsOf } from '../../../src/extract/export-settings.ts';
import { type CommitInfo, type ExportState, parseState, stateAfter } from '../../../src/extract/export-state.ts';
import { isImplausible, usualRowsIfImplausible } from '../../../src/extract/plausibility.ts';
import { SETTINGS } from '../../support/extract/extraction.ts';

const receipt = (more: Partial<ReceiptSummary> = {}): ReceiptSummary => ({
  rows: 100,
  to_date: '2026-01-01',
  is_over: true,
  requested_at: '2026-01-20T00:00:00.000Z',
  ...more,
});
const receipts = (days: readonly Day[], more: Partial<ReceiptSummary> = {}) =>
  new Map(days.map((day) => [day, receipt(more)]));

const facts = (more: Partial<CommitInfo> = {}): CommitInfo => ({
  start: '2026-01-10',
  fingerprints: fingerprintsOf({ ...SETTINGS }),
  alwaysWrites: false,
  ...more,
});

describe('the cursor after a commit', () => {
  const cursor = (days: readonly Day[], before?: Partial<ExportState>, more: Partial<CommitInfo> = {}) =>
    stateAfter(before && { version: 1, from_date: '2026-01-10', ...before }, receipts(days), facts(more)).from_date;

  it('is the first day that is not both loaded and over', () => {
    expect(cursor(['2026-01-10', '2026-01-11', '2026-01-13'])).toBe('2026-01-12');
    expect(cursor(['2026-01-12', '2026-01-11', '2026-01-10'])).toBe('2026-01-13');
    expect(stateAfter(undefined, receipts(['2026-01-10'], { is_over: false }), facts()).from_date).toBe('2026-01-10');
  });

  it('passes gaps and pruned days', () => {
    expect(cursor(['2026-01-10', '2026-01-12'], undefined, { gaps: ['2026-01-11'] })).toBe('2026-01-13');
    const pruned = new Map([...receipts(['2026-01-10'], { pruned: true }), ...receipts(['2026-01-11'])]);
    expect(stateAfter(undefined, pruned, facts()).from_date).toBe('2026-01-12');
  });

  it('stays where it is if the receipts of the days before it are no longer kept', () => {
    expect(cursor(['2026-01-15'], { start_date: '2026-01-10', from_date: '2026-01-15' })).toBe('2026-01-16');
    expect(cursor([], { start_date: '2026-01-10', from_date: '2026-01-15' })).toBe('2026-01-15');
  });

  it('keeps the start of the first commit', () => {
    const before = { start_date: '2026-01-12', from_date: '2026-01-12' };
    expect(cursor(['2026-01-10'], before)).toBe('2026-01-12');
  });

  it('never moves back, in whatever order days are loaded', () => {
    const days = daysOf('2026-01-10', '2026-01-18');
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...days), { maxLength: 30 }), (order) => {
        const stored = new Map<Day, ReceiptSummary>();
        let before: ExportState | undefined;
        for (const [i, day] of order.entries()) {
          stored.set(day, receipt({ is_over: i % 5 !== 0 || stored.get(day)?.is_over === true }));
          const after = stateAfter(before, stored, facts());
          expect(after.from_date >= (before?.from_date ?? '2026-01-10')).toBe(true);
          for (const passed of daysOf('2026-01-10', addDays(after.from_date, -1))) {
            expect(stored.get(passed)?.is_over).toBe(true);
          }
          before = after;
        }
      }),
    );
  });
});

describe('the state after a commit', () => {
  it('is a state by its schema, and keeps unknown keys', () => {
    const before = { version: 1, from_date: '2026-01-10', start_date: '2026-01-10', new_key: { a: 1 } } as const;
    const state = stateAfter(
      before,
      receipts(['2026-01-10']),
      facts({ includesToDate: false, hasFinalNewline: false }),
    );
    expect(parseState(JSON.parse(JSON.stringify(state)))).toMatchObject({
      from_date: '2026-01-11',
      to_date_inclusive: false,
      final_newline: false,
      new_key: { a: 1 },
    });
  });

  it('keeps what was proved until the contrary is', () => {
    const first = stateAfter(undefined, receipts([]), facts({ includesToDate: true, hasFinalNewline: false }));
    const second = stateAfter(first, receipts([]), facts());
    expect(second).toMatchObject({ to_date_inclusive: true, final_newline: false });
    const third = stateAfter(second, receipts([]), facts({ includesToDate: false, hasFinalNewline: true }));
    expect(third.to_date_inclusive).toBe(false);
    expect(third).not.toHaveProperty('final_newline');
  });

  it('remembers every column that was ever hashed, and the key', () => {
    const key_check = '0123456789abcdef';
    const stored = (state: ExportState | undefined, ...columns: string[]) => {
      const hashedColumns = columns.length > 0 ? { columns, key_check } : undefined;
      return stateAfter(state, receipts([]), facts({ fingerprints: { ...fingerprintsOf(SETTINGS), hashedColumns } }));
    };
    const plain = stored(undefined);
    expect(plain.hashed).toBeUndefined();
    const hashed = stored(stored(stored(plain, 'phone', 'x'), 'email', 'x'));
    expect(hashed.hashed).toEqual({ columns: ['email', 'phone', 'x'], key_check });
  });
});

describe('an implausible day', () => {
  const DAY = '2026-02-01';
  const history = (rows: readonly number[], of: number) =>
    new Map([
      [DAY, receipt({ rows: of })],
      ...rows.map((count, i) => [addDays(DAY, -7 * (i + 1)), receipt({ rows: count })] as const),
    ]);

  it.each<[string, readonly number[], number, boolean]>([
    ['a fifth of the median is usual', [100, 100, 100, 100], 20, false],
    ['less than a fifth of the median is not', [100, 100, 100, 100], 19, true],
    ['one large week does not count', [100, 100, 100, 10_000], 20, false],
    ['one week before is too few', [1_000], 1, false],
    ['two weeks before are enough', [1_000, 1_000], 1, true],
    ['small services vary', [99, 99, 99, 99], 1, false],
    ['no rows where there always were some', [3, 2, 1, 4], 0, true],
    ['no rows where there sometimes were none', [300, 0, 100, 400], 0, false],
  ])('%s', (_, weeks, rows, expected) => {
    expect(isImplausible(DAY, history(weeks, rows))).toBe(expected);
  });

  it('is over, and its rows were not removed', () => {
    const days = history([1_000, 1_000], 1);
    expect(usualRowsIfImplausible(DAY, days)).toBe(1_000);
    for (const more of [{ is_over: false }, { pruned: true }]) {
      expect(usualRowsIfImplausible(DAY, new Map(days).set(DAY, receipt({ rows: 1, ...more })))).toBeUndefined();
    }
  });
});
