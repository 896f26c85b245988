import { expect, it } from 'vitest';
import { EMPTY_SUMMARY } from '../../../src/cli/results.ts';
import { describeSummary } from '../../../src/cli/run/summary.ts';
import { NOTHING_STORED, sumOfCommits } from '../../../src/table/commit.ts';
import { duckdb } from '../../../src/targets/targets.ts';

it('a summary counts the days that were written, whatever others have changed beside them', () => {
  const days_changed = ['2026-01-01', '2026-01-02', '2026-01-03', '2026-01-04'];
  const summary = { ...EMPTY_SUMMARY, rows: 4, rows_new: 4, days: 3, days_unchanged: 2, days_changed };
  const text = describeSummary(summary, { target: duckdb, address: 'x.duckdb' });
  expect(text).toMatch(/^4 rows in 1 day .* committed to x\.duckdb in .*; 2 days unchanged\.$/);
});

it('a column that two commits widen counts once, with its type before both', () => {
  const [first, second] = [
    { name: 'n', from: 'long', to: 'double' },
    { name: 'n', from: 'double', to: 'string' },
  ] as const;
  const widens = (column: typeof first | typeof second) => ({ ...NOTHING_STORED, columnsWidened: [column] });
  const { columnsWidened } = sumOfCommits(widens(first), widens(second));
  expect(columnsWidened).toEqual([{ name: 'n', from: 'long', to: 'string' }]);
});
