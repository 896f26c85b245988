import type { Day } from '../base/days.ts';
import type { Logger } from '../base/log.ts';
import { plainCount } from '../base/quantities.ts';
import type { ColumnType } from '../cells/types/codec.ts';
import { NULL_TEXT } from '../cells/types/forms.ts';
import { type IncomingColumns, isRetyped, type PlannedColumn } from './column-plan.ts';

/** A column that was added, widened, or missing for the first time. */
export interface ColumnChange {
  /** Instant of the change (ISO, UTC). */
  readonly changedAt: string;
  readonly sourceName: string;
  readonly change: 'added' | 'widened' | 'missing';
  readonly fromType: ColumnType | null;
  readonly toType: ColumnType | null;
  /** The day whose export made the change. */
  readonly day: Day;
  /** Shape of the first cell that caused the change: digits as 9, letters as a. */
  readonly shape: string | null;
}

export interface WidenedColumn {
  readonly name: string;
  readonly from: ColumnType;
  readonly to: ColumnType;
}

/** A day of a batch and the columns of its files; no column for a day without a file. */
interface ChangingDay {
  readonly download: { readonly receipt: { readonly day: Day } };
  readonly incoming: IncomingColumns;
}

interface ChangingBatch {
  readonly columns: readonly PlannedColumn[];
  readonly days: readonly ChangingDay[];
  /** True if nothing was committed before. */
  readonly isFirst: boolean;
}

/** True if the batch adds the column to the table. */
const isAdded = ({ type, before }: PlannedColumn, isFirst: boolean) => type !== null && (before === null || isFirst);

/**
 * The changes that a batch makes in the columns of a place, each with the first day that makes it. `earlier`: changes
 * of earlier batches, since a missing column is recorded once.
 */
export function changeRecords(
  { columns, days, isFirst }: ChangingBatch,
  earlier: readonly ColumnChange[],
  changedAt: string,
): ColumnChange[] {
  const missed = new Set(earlier.filter(({ change }) => change === 'missing').map(({ sourceName }) => sourceName));
  return columns.flatMap((column): ColumnChange[] => {
    const { source, key, before, type, shape, firstShape } = column;
    const having = days.filter(({ incoming }) => incoming.has(key));
    const record = (day: ChangingDay, change: Pick<ColumnChange, 'change' | 'fromType' | 'toType' | 'shape'>) => [
      { changedAt, sourceName: source, day: day.download.receipt.day, ...change },
    ];
    if (isAdded(column, isFirst)) {
      return record(having[0] ?? days[0], { change: 'added', fromType: null, toType: type, shape: firstShape });
    }
    if (isRetyped(column)) {
      const isCause = ({ incoming }: ChangingDay) =>
        incoming.get(key)?.seen.some((cell) => cell.shape === shape && (cell.forms & ~NULL_TEXT) !== 0);
      const cause = having.find(isCause) ?? having[0] ?? days[0];
      return record(cause, { change: 'widened', fromType: before, toType: type, shape: shape ?? null });
    }
    const lacking = days.find(({ incoming }) => incoming.size > 0 && !incoming.has(key));
    if (type === null || lacking === undefined || missed.has(source)) return [];
    return record(lacking, { change: 'missing', fromType: type, toType: null, shape: null });
  });
}

/** Columns that a batch adds and widens. */
export function columnChanges({ columns, isFirst }: Pick<ChangingBatch, 'columns' | 'isFirst'>) {
  return {
    columnsAdded: columns.filter((column) => isAdded(column, isFirst)).map(({ name }) => name),
    columnsWidened: columns.filter(isRetyped).map(({ name, before, type }) => ({ name, from: before, to: type })),
  };
}

/** Logs which columns change their type, and the cells that did not fit. `rescued`: cells by source column. */
export function logChanges(logger: Logger, columns: readonly PlannedColumn[], rescued: ReadonlyMap<string, number>) {
  for (const { source, before, type, shape = null } of columns.filter(isRetyped)) {
    const because = shape === null ? '' : `: first such cell has the shape ${shape}`;
    const message = `column ${source} changes from ${before} to ${type}${because}`;
    logger.info('schema.changed', message, { column: source, from: before, to: type, shape });
  }
  for (const [column, cells] of rescued) {
    const message = `column ${column}: ${plainCount(cells, 'cell')} not of its type, kept as text in _rescued`;
    logger.warn('cells.rescued', message, { column, cells });
  }
}
