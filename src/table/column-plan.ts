import type { Day } from '../base/days.ts';
import type { Logger } from '../base/log.ts';
import type { ColumnScan } from '../cells/columns/column-scan.ts';
import { columnKey, type HeaderColumn } from '../cells/csv/header.ts';
import { type ColumnType, codecOf, fits } from '../cells/types/column-types.ts';
import { type CellForms, NULL_TEXT, STRING } from '../cells/types/forms.ts';
import type { Zone } from '../cells/types/zone.ts';
import type { CheckedDay } from '../extract/checked-day.ts';
import { newColumns } from './column-names.ts';
import { type ColumnRules, type TypeRules, typeAfter, typeRulesOf } from './column-type.ts';
import type { ColumnChange } from './place-state.ts';
import type { StoredColumn } from './tables.ts';

/** A column of the table after a batch. */
export interface PlannedColumn extends StoredColumn {
  /** Its type before the batch; null if it was no column of the table. */
  readonly typeBefore: ColumnType | null;
  /** The forms of its cells in each day of the batch that has some. */
  readonly formsByDay: ReadonlyMap<Day, ColumnForms>;
  /** Says that the batch adds or widens it, or that a day of the batch lacks it. */
  readonly changeRecord: Omit<ColumnChange, 'changedAt'> | undefined;
}

/** The forms that the cells of a column have in a day, or in some files. */
export interface ColumnForms {
  readonly forms: CellForms;
  /** True if a cell is `null`, and that is an absent value, not a text. */
  readonly hasAbsentNull: boolean;
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

/**
 * Plans all columns of a table after these days, by position. `isFirstCommit`: the columns before are those that every
 * new table has.
 */
export function planColumns(
  columnsBefore: readonly StoredColumn[],
  downloads: readonly CheckedDay[],
  rules: ColumnRules,
  isFirstCommit: boolean,
): PlannedColumn[] {
  const days = downloads.map(scannedDay);
  const batchColumns = new Map(days.flatMap(({ columns }) => [...columns]));
  const columns = [...columnsBefore, ...newColumns(columnsBefore, batchColumns, rules)];
  // Without a pinned schema the first commit gives `freeze` its columns.
  const schemaMode = isFirstCommit && rules.pinnedTypes === undefined ? 'evolve' : rules.schemaMode;
  return columns.map((column) => {
    const declared = batchColumns.get(columnKey(column))?.declared;
    const typeRules = typeRulesOf(column, declared, columns, { ...rules, schemaMode });
    const { formsByDay, columnAfter } = readDays(typeRules, days);
    const changeRecord = changeRecordOf(isFirstCommit ? null : column.type, columnAfter, days, typeRules.zone);
    return { ...columnAfter, typeBefore: column.type, formsByDay, changeRecord };
  });
}

/** What is known of a column of a day from the scans of its files. */
type ScannedColumn = Pick<ColumnScan, keyof HeaderColumn | 'forms' | 'firstCells'>;

/** The columns of the files of a day by key, in the order of first occurrence; none for an answer without a header. */
interface ScannedDay {
  readonly day: Day;
  readonly columns: ReadonlyMap<string, ScannedColumn>;
}

function scannedDay({ receipt: { day }, files }: CheckedDay): ScannedDay {
  const columns = new Map<string, ScannedColumn>();
  for (const column of files.flatMap((file) => file.columns)) {
    const { forms = 0, firstCells = [] } = columns.get(column.key) ?? {};
    columns.set(column.key, {
      ...column,
      forms: forms | column.forms,
      firstCells: [...firstCells, ...column.firstCells],
    });
  }
  return { day, columns };
}

/** A column after these days, which are read as if they were committed one by one. */
function readDays(rules: TypeRules, days: readonly ScannedDay[]) {
  const { columnBefore, fixedType } = rules;
  const key = columnKey(columnBefore);
  let forms: CellForms = 0;
  const formsByDay = new Map<Day, ColumnForms>();
  for (const { day, columns } of days) {
    const dayForms = columns.get(key)?.forms ?? 0;
    if (dayForms === 0) continue;
    forms |= dayForms;
    formsByDay.set(day, formsOfDay(dayForms, typeAfter(rules, forms), fixedType !== null));
  }
  const [firstCell] = days.flatMap(({ columns }) => columns.get(key)?.firstCells ?? []);
  const columnAfter = {
    ...columnBefore,
    type: typeAfter(rules, forms),
    forms: columnBefore.forms | forms,
    firstShape: columnBefore.firstShape ?? firstCell?.shape ?? null,
  };
  return { formsByDay, columnAfter };
}

/** The forms of the cells of a day, with the type that the column has after this day. `isFixed`: no cell changes it. */
function formsOfDay(forms: CellForms, type: ColumnType | null, isFixed: boolean): ColumnForms {
  // Of a column that the table lacks, the cells of the day decide whether it is one of texts.
  const isText = type === 'string' || (type === null && (forms & STRING) !== 0);
  return {
    // A column that is always a string has each cell as it was written.
    forms: type === 'string' && isFixed ? forms | STRING : forms,
    hasAbsentNull: !isText && (forms & NULL_TEXT) !== 0,
  };
}

/** What a batch changes of a column, with the first day that does. `typeBefore`: null before the first commit, too. */
function changeRecordOf(
  typeBefore: ColumnType | null,
  columnAfter: StoredColumn,
  days: readonly ScannedDay[],
  zone: Zone | undefined,
): PlannedColumn['changeRecord'] {
  const { source: sourceName, type, firstShape } = columnAfter;
  const key = columnKey(columnAfter);
  const firstDay = (days.find(({ columns }) => columns.has(key)) ?? days.at(0))?.day;
  if (type === null || firstDay === undefined) return undefined;
  if (typeBefore === null) {
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
