import { expect, it } from 'vitest';
import { EMPTY_SUMMARY } from '../../../src/cli/results.ts';
import { describeSummary } from '../../../src/cli/run/summary.ts';
import { duckdb } from '../../../src/targets/targets.ts';

it('a summary counts the days that were written, whatever others have changed beside them', () => {
  const days_changed = ['2026-01-01', '2026-01-02', '2026-01-03', '2026-01-04'];
  const summary = { ...EMPTY_SUMMARY, rows: 4, rows_new: 4, days: 3, days_unchanged: 2, days_changed };
  const text = describeSummary(summary, { target: duckdb, address: 'x.duckdb' });
  expect(text).toMatch(/^4 rows in 1 day .* committed to x\.duckdb in .*; 2 days unchanged\.$/);
});
