import type { Logger } from '../base/log.ts';
import { plainCount } from '../base/quantities.ts';
import type { PlannedBatch, PlannedDay } from './batch-plan.ts';
import { isWidened, type PlannedColumn } from './column-plan.ts';
import type { ColumnChange } from './place-state.ts';

/** True if the batch adds the column to the table. */
const isAdded = ({ type, storedType }: PlannedColumn, isFirst: boolean) =>
  type !== null && (storedType === null || isFirst);

/**
 * The changes that a batch makes in the columns of a place, each with the first day that makes it. `earlier`: changes
 * of earlier batches, since a missing column is recorded once.
 */
export function changeRecords(
  { columns, days, isFirst }: PlannedBatch,
  earlier: readonly ColumnChange[],
  changedAt: string,
): ColumnChange[] {
  const missed = new Set(earlier.filter(({ change }) => change === 'missing').map(({ sourceName }) => sourceName));
  return columns.flatMap((column): ColumnChange[] => {
    const { source, key, storedType, type, misfit, firstShape } = column;
    const having = days.filter(({ incoming }) => incoming.has(key));
    const record = (day: PlannedDay, change: Pick<ColumnChange, 'change' | 'fromType' | 'toType' | 'shape'>) => [
      { changedAt, sourceName: source, day: day.download.receipt.day, ...change },
    ];
    if (isAdded(column, isFirst)) {
      return record(having[0] ?? days[0], { change: 'added', fromType: null, toType: type, shape: firstShape });
    }
    if (isWidened(column)) {
      const cause = misfit && having.find(({ incoming }) => incoming.get(key)?.seen.includes(misfit));
      const shape = misfit?.shape ?? null;
      return record(cause ?? having[0] ?? days[0], { change: 'widened', fromType: storedType, toType: type, shape });
    }
    const lacking = days.find(({ incoming }) => incoming.size > 0 && !incoming.has(key));
    if (type === null || lacking === undefined || missed.has(source)) return [];
    return record(lacking, { change: 'missing', fromType: type, toType: null, shape: null });
  });
}

/** Columns that a batch adds and widens. */
export function columnChanges({ columns, isFirst }: Pick<PlannedBatch, 'columns' | 'isFirst'>) {
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
