import type { Day } from '../base/days.ts';
import type { Logger } from '../base/log.ts';
import { plainCount } from '../base/quantities.ts';
import { columnKey } from '../cells/csv/header.ts';
import { type ColumnType, codecOf, fits } from '../cells/types/column-types.ts';
import type { Zone } from '../cells/types/zone.ts';
import type { ScannedColumns } from './new-columns.ts';
import type { ColumnChange } from './place-state.ts';
import type { StoredColumn } from './tables.ts';

/** A column of the table after a batch. */
export interface PlannedColumn extends StoredColumn {
  /** Its type before the batch; null if it was no column of the table. */
  readonly storedType: ColumnType | null;
}

type WidenedColumn = PlannedColumn & { readonly storedType: ColumnType; readonly type: ColumnType };

/** True if the batch gives a column of the table another type. */
export function isWidened(column: PlannedColumn): column is WidenedColumn {
  return column.storedType !== null && column.type !== null && column.type !== column.storedType;
}

/** A column that a batch adds or widens, or that a day of it lacks. */
export interface PlannedColumnChange extends Pick<ColumnChange, 'change' | 'day' | 'shape'> {
  readonly column: PlannedColumn;
}

/** The changes that a batch makes in the columns of a place, each with the first day that makes it. */
export function changesOf(
  columns: readonly PlannedColumn[],
  columnsByDay: readonly { readonly day: Day; readonly columns: ScannedColumns }[],
  { isFirstCommit, zone }: { readonly isFirstCommit: boolean; readonly zone: Zone | undefined },
): PlannedColumnChange[] {
  if (columnsByDay.length === 0) return [];
  return columns.flatMap((column): PlannedColumnChange[] => {
    if (column.type === null) return [];
    const key = columnKey(column);
    const { day: firstDay } = columnsByDay.find((day) => day.columns.has(key)) ?? columnsByDay[0];
    if (isFirstCommit || column.storedType === null) {
      return [{ column, change: 'added', day: firstDay, shape: column.firstShape }];
    }
    if (isWidened(column)) {
      const codec = codecOf(column.storedType, zone);
      for (const { day, columns: dayColumns } of columnsByDay) {
        const misfit = dayColumns.get(key)?.firstCells.find(({ forms }) => !fits(codec, forms));
        if (misfit !== undefined) return [{ column, change: 'widened', day, shape: misfit.shape }];
      }
      return [{ column, change: 'widened', day: firstDay, shape: null }];
    }
    const dayWithout = columnsByDay.find((day) => day.columns.size > 0 && !day.columns.has(key));
    return dayWithout === undefined ? [] : [{ column, change: 'missing', day: dayWithout.day, shape: null }];
  });
}

/** The records of changes. A missing column is recorded once a name: `recorded` are those of earlier batches. */
export function recordChanges(
  changes: readonly PlannedColumnChange[],
  recorded: readonly ColumnChange[],
  changedAt: string,
): ColumnChange[] {
  const missingBefore = new Set(
    recorded.filter(({ change }) => change === 'missing').map(({ sourceName }) => sourceName),
  );
  return changes
    .filter(({ change, column }) => change !== 'missing' || !missingBefore.has(column.source))
    .map(({ column, change, day, shape }) => ({
      changedAt,
      sourceName: column.source,
      change,
      fromType: change === 'added' ? null : column.storedType,
      toType: change === 'missing' ? null : column.type,
      day,
      shape,
    }));
}

/** Logs which columns change their type. */
export function logWidened(logger: Logger, changes: readonly PlannedColumnChange[]): void {
  for (const { column, change, shape } of changes) {
    if (change !== 'widened') continue;
    const { source, storedType, type } = column;
    const because = shape === null ? '' : `: first such cell has the shape ${shape}`;
    const message = `column ${source} changes from ${storedType} to ${type}${because}`;
    logger.info('schema.changed', message, { column: source, from: storedType, to: type, shape });
  }
}

/** Logs the cells that did not fit. `rescuedCells`: their number, by their key in `_rescued`. */
export function logRescued(logger: Logger, rescuedCells: ReadonlyMap<string, number>): void {
  for (const [column, cells] of rescuedCells) {
    const message = `column ${column}: ${plainCount(cells, 'cell')} not of its type, kept as text in _rescued`;
    logger.warn('cells.rescued', message, { column, cells });
  }
}
