import type { Column } from './column.ts';
import type { Dataset } from './dataset.ts';
import type { DayPlan } from './day-plan.ts';
import { askedColumns, cellOf, eventsOf, isKnownOn, mayCarry, plansOf, type RowQuery } from './row-query.ts';

/** The columns of an export in header order: the system's, the listed ones, and each with a value in any row. Reads no more rows than it takes to see them. */
export function headerOf(dataset: Dataset, query: RowQuery): Column[] {
  const asked = askedColumns(dataset, query);
  const seen = new Set(asked.filter((column) => column.isSystem || column.isListed));
  const open = asked.filter((column) => !seen.has(column) && mayCarry(column, query));
  for (const plan of plansOf(dataset, query)) lookOn(dataset, query, plan, open, seen);
  return asked.filter((column) => seen.has(column));
}

/** Adds to `seen` the columns with a value on a day; stops at the row that shows the last of them. */
function lookOn(dataset: Dataset, query: RowQuery, plan: DayPlan, open: Column[], seen: Set<Column>): void {
  let wanted = open.filter((column) => !seen.has(column) && isKnownOn(column, plan));
  if (wanted.length === 0) return;
  for (const row of eventsOf(dataset, query, plan)) {
    for (row.item = 0; row.item < row.items; row.item++) {
      for (const column of wanted) if (cellOf(column, row, dataset) !== '') seen.add(column);
    }
    if (wanted.some((column) => seen.has(column))) wanted = wanted.filter((column) => !seen.has(column));
    if (wanted.length === 0) return;
  }
}
