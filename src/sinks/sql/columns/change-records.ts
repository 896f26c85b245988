import type { ColumnChange } from '../../report.ts';
import type { PlannedColumn } from './plan.ts';

/** What `changeRecords` is told of a window. */
export interface ChangingWindow {
  /** Id of the receipt. */
  readonly window: string;
  /** ISO, UTC. */
  readonly changedAt: string;
  /** Columns of its files by key; none for a window without a file. */
  readonly arrived: ReadonlyMap<string, unknown>;
  /** True when nothing was committed before it. */
  readonly isFirst: boolean;
  /** Source names that were missing in an earlier window. */
  readonly missed: ReadonlySet<string>;
}

/** What a window changes in the columns of a target (S49): added, widened, or missing for the first time. */
export function changeRecords(
  columns: readonly PlannedColumn[],
  { window, changedAt, arrived, isFirst, missed }: ChangingWindow,
): ColumnChange[] {
  return columns.flatMap((column): ColumnChange[] => {
    const { source, key, before, type, shape, firstShape } = column;
    const common = { changedAt, sourceName: source, window };
    if (type === null) return [];
    if (before === null || (isFirst && arrived.has(key)))
      return [{ ...common, change: 'added', fromType: null, toType: type, shape: firstShape }];
    if (before !== type)
      return [{ ...common, change: 'widened', fromType: before, toType: type, shape: shape ?? null }];
    if (arrived.size === 0 || arrived.has(key) || missed.has(source)) return [];
    return [{ ...common, change: 'missing', fromType: type, toType: null, shape: null }];
  });
}
