import type { Logger } from '../base/log.ts';
import { plainCount } from '../base/quantities.ts';
import type { ColumnType } from '../cells/types/codec.ts';
import type { PlannedBatch, PlannedDay } from './batch-plan.ts';
import { isWidened, type PlannedColumn } from './column-plan.ts';
import type { ColumnChange } from './place-state.ts';

/** True if the batch adds the column to the table. */
const isAdded = ({ type, storedType }: PlannedColumn, isFirst: boolean) =>
  type !== null && (storedType === null || isFirst);

/**
 * The changes that a batch makes in the columns of a place, each with the first day that makes it. A missing column is
 * recorded once a name: `earlier` are the changes of earlier batches.
 */
export function columnChanges(
  { columns, days, isFirst }: PlannedBatch,
  earlier: readonly ColumnChange[],
  changedAt: string,
): ColumnChange[] {
  const knownMissing = new Set(
    earlier.filter(({ change }) => change === 'missing').map(({ sourceName }) => sourceName),
  );
  return columns.flatMap((column): ColumnChange[] => {
    const { source, key, storedType, type, misfit, firstShape } = column;
    const daysWithColumn = days.filter(({ incoming }) => incoming.has(key));
    const record = (day: PlannedDay, change: Pick<ColumnChange, 'change' | 'fromType' | 'toType' | 'shape'>) => [
      { changedAt, sourceName: source, day: day.download.receipt.day, ...change },
    ];
    if (isAdded(column, isFirst)) {
      return record(daysWithColumn[0] ?? days[0], { change: 'added', fromType: null, toType: type, shape: firstShape });
    }
    if (isWidened(column)) {
      const cause = misfit && daysWithColumn.find(({ incoming }) => incoming.get(key)?.seen.includes(misfit));
      const shape = misfit?.shape ?? null;
      return record(cause ?? daysWithColumn[0] ?? days[0], {
        change: 'widened',
        fromType: storedType,
        toType: type,
        shape,
      });
    }
    const firstDayWithout = days.find(({ incoming }) => incoming.size > 0 && !incoming.has(key));
    if (type === null || firstDayWithout === undefined || knownMissing.has(source)) return [];
    return record(firstDayWithout, { change: 'missing', fromType: type, toType: null, shape: null });
  });
}

/** Columns that a batch adds and widens, by their names in the table. */
export interface AddedAndWidened {
  readonly columnsAdded: readonly string[];
  readonly columnsWidened: readonly { readonly name: string; readonly from: ColumnType; readonly to: ColumnType }[];
}

export function addedAndWidened({ columns, isFirst }: PlannedBatch): AddedAndWidened {
  return {
    columnsAdded: columns.filter((column) => isAdded(column, isFirst)).map(({ name }) => name),
    columnsWidened: columns
      .filter(isWidened)
      .map(({ name, storedType, type }) => ({ name, from: storedType, to: type })),
  };
}

/** Logs which columns change their type, and the cells that did not fit. `rescued`: cells by source column. */
export function logChanges(logger: Logger, columns: readonly PlannedColumn[], rescued: ReadonlyMap<string, number>) {
  for (const { source, storedType, type, misfit } of columns.filter(isWidened)) {
    const shape = misfit?.shape ?? null;
    const because = shape === null ? '' : `: first such cell has the shape ${shape}`;
    const message = `column ${source} changes from ${storedType} to ${type}${because}`;
    logger.info('schema.changed', message, { column: source, from: storedType, to: type, shape });
  }
  for (const [column, cells] of rescued) {
    const message = `column ${column}: ${plainCount(cells, 'cell')} not of its type, kept as text in _rescued`;
    logger.warn('cells.rescued', message, { column, cells });
  }
}
