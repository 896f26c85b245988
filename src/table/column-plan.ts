// A column on its way from a header into a table, and what is known of it there:
//
//   HeaderColumn    of one header: its name, its group, and the type that the service declares
//   ColumnScan      of one file: what all of its cells hold
//   DayColumn       of one day: the forms of its cells in all files of the day
//   StoredColumn    of a table: its name there, its type, and the forms of its cells in all days
//   TypedColumn     a stored column with a type: only then the table has it
//   PlannedColumn   a stored column after a batch, with its type before

import type { Day } from '../base/days.ts';
import type { Logger } from '../base/log.ts';
import { columnKey, type HeaderColumn } from '../cells/header.ts';
import type { ColumnType } from '../cells/types/column-types.ts';
import { type CellForms, NULL_TEXT, STRING } from '../cells/types/forms.ts';
import type { CheckedDay } from '../extract/checked-day.ts';
import { columnsToAdd } from './column-names.ts';
import { acceptedTypeOf, type ColumnSettings, type TypeAfterDay, typeAfterDay } from './column-type.ts';
import type { ColumnChange } from './place-state.ts';
import { EVENTS, type StoredColumn, type TypedColumn } from './tables.ts';

/** A column of the table after a batch. */
export interface PlannedColumn extends StoredColumn {
  /** Its type before the batch; null if it was no column of the table. */
  readonly typeBefore: ColumnType | null;
  /** Its cells in each day of the batch that has some. */
  readonly cellsByDay: ReadonlyMap<Day, DayCells>;
}

/** What is known of the cells of a column in a day, or in some days. */
export interface DayCells {
  readonly forms: CellForms;
  /** True if a cell is `null`, and that is an absent value, not a text. */
  readonly hasAbsentNull: boolean;
}

/** A change by a day of the batch. */
type PlannedChange = Omit<ColumnChange, 'changedAt'>;

export interface ColumnPlan {
  /** All columns of the table after the batch, by position. */
  readonly columns: readonly PlannedColumn[];
  /** What the days change of them, in the order of days. */
  readonly changes: readonly PlannedChange[];
}

/** A column as the batch finds it, before its first day. */
const toPlannedColumn = (column: StoredColumn): PlannedColumn => {
  return { ...column, typeBefore: column.type, cellsByDay: new Map() };
};

/** True if the batch gives a column of the table another type. */
export const isWidened = (
  column: PlannedColumn,
): column is TypedColumn<PlannedColumn> & { readonly typeBefore: ColumnType } =>
  column.typeBefore !== null && column.type !== null && column.type !== column.typeBefore;

/** Plans the columns of a table from day to day. `isFirstBatch`: the table has no day before it. */
export function planColumns(
  columnsBefore: readonly StoredColumn[],
  downloads: readonly CheckedDay[],
  settings: ColumnSettings,
  isFirstBatch: boolean,
): ColumnPlan {
  let columns: readonly PlannedColumn[] = columnsBefore.map(toPlannedColumn);
  const changes: PlannedChange[] = [];
  for (const [i, download] of downloads.entries()) {
    const dayPlan = planDay(columns, download, settings, isFirstBatch && i === 0);
    columns = dayPlan.columns;
    changes.push(...dayPlan.changes);
  }
  return { columns, changes };
}

/** The columns of a new table of events before its first day. A pinned schema names more than every table has. */
export function columnsOfNewTable(settings: ColumnSettings): StoredColumn[] {
  const columns = [...EVENTS.initialColumns, ...columnsToAdd(EVENTS.initialColumns, new Map(), settings)];
  return columns.map((column) => ({ ...column, type: acceptedTypeOf(column, columns, settings) ?? column.type }));
}

/** A column of a day, with the forms of its cells in all files of the day. */
interface DayColumn extends HeaderColumn {
  readonly forms: CellForms;
}

/** The columns of a day by key, in the order of first occurrence; none for an answer without a header. */
function dayColumnsOf({ files }: CheckedDay): ReadonlyMap<string, DayColumn> {
  const dayColumns = new Map<string, DayColumn>();
  for (const column of files.flatMap((file) => file.columns)) {
    const earlierForms = dayColumns.get(column.key)?.forms ?? 0;
    dayColumns.set(column.key, { ...column, forms: earlierForms | column.forms });
  }
  return dayColumns;
}

/** Plans one day. The first day of a table adds all of its columns, also those that every table has. */
function planDay(
  columnsBefore: readonly PlannedColumn[],
  download: CheckedDay,
  settings: ColumnSettings,
  isFirstDay: boolean,
): ColumnPlan {
  const { day } = download.receipt;
  const dayColumns = dayColumnsOf(download);
  const tableColumns = [...columnsBefore, ...columnsToAdd(columnsBefore, dayColumns, settings).map(toPlannedColumn)];
  const hasCells = columnsBefore.some(({ forms }) => forms !== 0);
  // Without a pinned schema, `freeze` begins behind the first day with cells.
  const isFrozen = settings.schemaMode === 'freeze' && (settings.pinnedTypes !== undefined || hasCells);
  const changes: PlannedChange[] = [];
  const columns = tableColumns.map((column): PlannedColumn => {
    const { declaredType, forms = 0 } = dayColumns.get(columnKey(column)) ?? {};
    const typeAfter = typeAfterDay(column, { declaredType, forms }, { columns: tableColumns, isFrozen }, settings);
    const fromType = isFirstDay ? null : column.type;
    const toType = typeAfter.type;
    if (toType !== null && toType !== fromType) {
      const change = fromType === null ? 'added' : 'widened';
      changes.push({ sourceName: column.source, change, fromType, toType, day });
    }
    const cellsByDay = new Map(column.cellsByDay);
    if (forms !== 0) cellsByDay.set(day, dayCellsOf(forms, typeAfter));
    return { ...column, type: toType, forms: column.forms | forms, cellsByDay };
  });
  return { columns, changes };
}

/**
 * How the cells of a day are read.
 *
 *     column                              cell `1.50`                                cell `null`
 *     string by the service or settings   1.50: the form is STRING alone             a text
 *     string by its cells                 1.5 in a day of numbers alone, else 1.50   a text
 *     double                              1.5                                        absent
 *     not in the table                    1.50, in `_rescued`                        a text beside others, else absent
 */
function dayCellsOf(forms: CellForms, { type, isFixed }: TypeAfterDay): DayCells {
  if (type === 'string' && isFixed) return { forms: STRING, hasAbsentNull: false };
  // Of a column that the table lacks, the cells of the day decide whether it is one of texts.
  const isText = type === 'string' || (type === null && (forms & STRING) !== 0);
  return { forms, hasAbsentNull: !isText && (forms & NULL_TEXT) !== 0 };
}

/** Logs which columns have another type. Called after the commit: a failure leaves all columns as they were. */
export function logWidened(logger: Logger, changes: ColumnPlan['changes']): void {
  for (const { sourceName: column, change, fromType: from, toType: to, day } of changes) {
    if (change !== 'widened') continue;
    const message = `column ${column} changes from ${from} to ${to} with the rows of ${day}`;
    logger.info('schema.changed', message, { column, from, to, day });
  }
}
