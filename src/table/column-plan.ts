import type { Day } from '../base/days.ts';
import type { Logger } from '../base/log.ts';
import { columnKey } from '../cells/csv/header.ts';
import { type ColumnType, codecOf, fits } from '../cells/types/column-types.ts';
import { type CellForms, STRING } from '../cells/types/forms.ts';
import type { Zone } from '../cells/types/zone.ts';
import type { CheckedDay } from '../extract/checked-day.ts';
import { type TypeRules, typeAfter, typeRulesOf } from './column-type.ts';
import { type ColumnRules, newColumns, type ScannedColumn, scannedColumns } from './new-columns.ts';
import type { ColumnChange } from './place-state.ts';
import { type StoredColumn, type Table, typedColumns } from './tables.ts';

/** A column of the table after a batch. */
export interface PlannedColumn extends StoredColumn {
  /** Its type before the batch; null if it was no column of the table. */
  readonly typeBefore: ColumnType | null;
  /** The forms of its cells in each day of the batch. */
  readonly formsByDay: ReadonlyMap<Day, ColumnForms>;
  /** Says that the batch adds or widens it, or that a day of the batch lacks it. */
  readonly changeRecord: Omit<ColumnChange, 'changedAt'> | undefined;
}

/** The forms that the cells of a column have in a day, or in some files. */
export interface ColumnForms {
  readonly forms: CellForms;
  /** True if the cell `null` is a text, and not an absent value. */
  readonly isNullText: boolean;
}

type WidenedColumn = PlannedColumn & { readonly typeBefore: ColumnType; readonly type: ColumnType };

/** True if the batch gives a column of the table another type. */
export const isWidened = (column: PlannedColumn): column is WidenedColumn =>
  column.typeBefore !== null && column.type !== null && column.type !== column.typeBefore;

/** The plan of a column in a batch that writes no day: no setting of it counts then. */
export const unchangedColumn = (column: StoredColumn): PlannedColumn => ({
  ...column,
  typeBefore: column.type,
  formsByDay: new Map(),
  changeRecord: undefined,
});

/** The columns of the files of a day by key; none for an answer without a header. */
interface ScannedDay {
  readonly day: Day;
  readonly columns: ReadonlyMap<string, ScannedColumn>;
}

/** Plans all columns of a table after these days, by position. */
export function planColumns(
  storedColumns: readonly StoredColumn[],
  downloads: readonly CheckedDay[],
  rules: ColumnRules,
  table: Table,
  isFirstCommit: boolean,
): PlannedColumn[] {
  const batchColumns = scannedColumns(downloads.flatMap(({ files }) => files));
  const days = downloads.map(({ receipt: { day }, files }) => ({ day, columns: scannedColumns(files) }));
  const tableRules = rulesOfTable(table, rules, isFirstCommit);
  const tableColumns = [...storedColumns, ...newColumns(storedColumns, batchColumns, tableRules)];
  return tableColumns.map((column) => {
    const declared = batchColumns.get(columnKey(column))?.declared;
    return planColumn(column, typeRulesOf(column, declared, tableColumns, tableRules), days, isFirstCommit);
  });
}

/** The settings for a table. A snapshot keeps the types of its first columns, its ids, and has no pinned schema. */
function rulesOfTable({ isSnapshot, firstColumns }: Table, rules: ColumnRules, isFirstCommit: boolean): ColumnRules {
  const idTypes = isSnapshot ? typedColumns(firstColumns).map(({ source, type }) => [source, type] as const) : [];
  const pinnedTypes = isSnapshot ? undefined : rules.pinnedTypes;
  // Without a pinned schema the first commit gives `freeze` its columns.
  const schemaMode = isFirstCommit && pinnedTypes === undefined ? 'evolve' : rules.schemaMode;
  return { ...rules, columnTypes: new Map([...rules.columnTypes, ...idTypes]), pinnedTypes, schemaMode };
}

/** Plans a column. Days are read as if they were committed one by one. */
function planColumn(
  column: StoredColumn,
  typeRules: TypeRules,
  days: readonly ScannedDay[],
  isFirstCommit: boolean,
): PlannedColumn {
  const key = columnKey(column);
  let forms: CellForms = 0;
  const formsByDay = new Map<Day, ColumnForms>();
  for (const { day, columns } of days) {
    const dayForms = columns.get(key)?.forms ?? 0;
    forms |= dayForms;
    formsByDay.set(day, formsOfDay(dayForms, typeAfter(typeRules, forms), typeRules.fixedType !== null));
  }
  const [firstCell] = days.flatMap(({ columns }) => columns.get(key)?.firstCells ?? []);
  const columnAfter = {
    ...column,
    type: typeAfter(typeRules, forms),
    forms: column.forms | forms,
    firstShape: column.firstShape ?? firstCell?.shape ?? null,
  };
  const changeRecord = changeRecordOf(column.type, columnAfter, days, isFirstCommit, typeRules.zone);
  return { ...columnAfter, typeBefore: column.type, formsByDay, changeRecord };
}

/** The forms of the cells of a day, with the type that the column has after this day. `isFixed`: no cell changes it. */
function formsOfDay(forms: CellForms, type: ColumnType | null, isFixed: boolean): ColumnForms {
  // A column that is always a string has each cell as it was written.
  const isVerbatim = type === 'string' && isFixed && forms !== 0;
  // Of a column that the table lacks, the cells of the day decide whether it is one of texts.
  const isNullText = type === 'string' || (type === null && (forms & STRING) !== 0);
  return { forms: isVerbatim ? forms | STRING : forms, isNullText };
}

/** What a batch changes of a column, with the first day that does. */
function changeRecordOf(
  typeBefore: ColumnType | null,
  columnAfter: StoredColumn,
  days: readonly ScannedDay[],
  isFirstCommit: boolean,
  zone: Zone | undefined,
): PlannedColumn['changeRecord'] {
  const { source: sourceName, type, firstShape } = columnAfter;
  const key = columnKey(columnAfter);
  const firstDay = (days.find(({ columns }) => columns.has(key)) ?? days.at(0))?.day;
  if (type === null || firstDay === undefined) return undefined;
  if (isFirstCommit || typeBefore === null) {
    return { sourceName, change: 'added', fromType: null, toType: type, day: firstDay, shape: firstShape };
  }
  if (type !== typeBefore) {
    const codec = codecOf(typeBefore, zone);
    const [firstMisfit = { day: firstDay, shape: null }] = days.flatMap(({ day, columns }) => {
      const cells = columns.get(key)?.firstCells ?? [];
      return cells.filter(({ forms }) => !fits(codec, forms)).map(({ shape }) => ({ day, shape }));
    });
    return { sourceName, change: 'widened', fromType: typeBefore, toType: type, ...firstMisfit };
  }
  const dayWithout = days.find(({ columns }) => columns.size > 0 && !columns.has(key));
  if (dayWithout === undefined) return undefined;
  return { sourceName, change: 'missing', fromType: typeBefore, toType: null, day: dayWithout.day, shape: null };
}

/** Logs which columns change their type. */
export function logWidened(logger: Logger, columns: readonly PlannedColumn[]): void {
  for (const { source: column, changeRecord } of columns) {
    if (changeRecord?.change !== 'widened') continue;
    const { fromType: from, toType: to, shape } = changeRecord;
    const because = shape === null ? '' : `: first such cell has the shape ${shape}`;
    const message = `column ${column} changes from ${from} to ${to}${because}`;
    logger.info('schema.changed', message, { column, from, to, shape });
  }
}
