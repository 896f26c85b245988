// From cells to a type: the scan of an export says which forms the cells of a column have. `planColumn` makes a type of
// them, and gives their forms in a column of this type. `cellTypeOf` says as what they are read.

import { configError } from '../base/errors.ts';
import { nfc } from '../base/text.ts';
import { EVENT_NAME, EVENT_NAME_ALTERNATIVE } from '../cells/csv/header.ts';
import { type ColumnType, canWiden, typeOf, widenedType } from '../cells/types/column-types.ts';
import { type CellForms, NULL_TEXT, STRING } from '../cells/types/forms.ts';
import { type Zone, zoneOf } from '../cells/types/zone.ts';
import type { PlannedColumn } from './column-changes.ts';
import type { ColumnRules, ScannedColumn } from './new-columns.ts';
import { FIRST_COLUMNS, type StoredColumn } from './tables.ts';

/** What decides the type of a column beside its new cells. */
interface TypeRules {
  /** The column before the batch; its type is null if it was no column of the table. */
  readonly storedColumn: StoredColumn;
  /** The type that the settings name; null if they name none. */
  readonly configuredType: ColumnType | null;
  /** The type that the service fixes, or the string of hashes; undefined if the batch lacks the column. */
  readonly declared: ColumnType | undefined;
  /** True if a pinned schema has the column: it is one of the table before it has a value. */
  readonly isPinned: boolean;
  /** True if the table takes no new columns but those of settings, and no other types. */
  readonly isFrozen: boolean;
  readonly zone: Zone | undefined;
}

/** Plans a column, and gives the forms of its cells by day. Days are read as if they were committed one by one. */
export function planColumn(
  rules: TypeRules,
  columnByDay: readonly (ScannedColumn | undefined)[],
): { readonly column: PlannedColumn; readonly formsByDay: readonly ColumnForms[] } {
  const { storedColumn, configuredType, isFrozen, zone } = rules;
  const { type: storedType, forms: storedForms } = storedColumn;
  // No cell changes it.
  const fixedType = configuredType ?? declaredType(rules) ?? (isFrozen ? storedType : null);
  // The type once cells of these forms have come; null if the table does not have the column.
  const typeAfter = (forms: CellForms): ColumnType | null => {
    if (!mayHaveColumn(rules, fixedType, forms)) return null;
    if (fixedType !== null) return fixedType;
    const allForms = storedForms | forms;
    return storedType === null ? (typeOf(allForms, zone) ?? null) : widenedType(storedType, allForms, zone);
  };
  let forms: CellForms = 0;
  const formsByDay = columnByDay.map((scannedColumn) => {
    const dayForms = scannedColumn?.forms ?? 0;
    forms |= dayForms;
    return formsOfDay(dayForms, typeAfter(forms), fixedType !== null);
  });
  const [firstCell] = columnByDay.flatMap((scannedColumn) => scannedColumn?.firstCells ?? []);
  const firstShape = storedColumn.firstShape ?? firstCell?.shape ?? null;
  const column = { ...storedColumn, type: typeAfter(forms), forms: storedForms | forms, firstShape, storedType };
  return { column, formsByDay };
}

/** True if the table has the column already, or takes it for a value among cells of these forms. */
function mayHaveColumn(
  { storedColumn, configuredType, isPinned, isFrozen }: TypeRules,
  fixedType: ColumnType | null,
  forms: CellForms,
): boolean {
  if (storedColumn.type !== null || isPinned) return true;
  const hasValue = (fixedType === 'string' ? forms : forms & ~NULL_TEXT) !== 0;
  return hasValue && (!isFrozen || configuredType !== null);
}

/** The type of a declared group, unless stored values may not fit into it. */
function declaredType({ storedColumn, declared, zone }: TypeRules): ColumnType | null {
  const { type, forms, group } = storedColumn;
  if (group === 'custom' || group === 'custom_item') return null;
  if (type === null || declared === undefined) return declared ?? type;
  return canWiden(type, declared, forms, zone) ? declared : type;
}

/**
 * The type that `column_types` or a pinned schema gives a column, or null. Throws a configuration failure if stored
 * values may not fit into it.
 */
export function configuredTypeOf(
  { source, occurrence, type, forms }: StoredColumn,
  tableColumns: readonly StoredColumn[],
  { columnTypes, pinned, timezone }: ColumnRules,
): ColumnType | null {
  // A setting for `event_name` is one for the event name, unless that is a column beside it.
  const hasOtherName =
    source === EVENT_NAME && !tableColumns.some((column) => column.source === EVENT_NAME_ALTERNATIVE);
  const names = hasOtherName ? [source, EVENT_NAME_ALTERNATIVE] : [source];
  const configuredTypes = names.flatMap((name) => columnTypes.get(nfc(name)) ?? []);
  const pinnedTypes = occurrence === 1 ? names.flatMap((name) => pinned?.get(name) ?? []) : [];
  const [configuredType = null] = [...configuredTypes, ...pinnedTypes];
  if (configuredType === null || type === null || canWiden(type, configuredType, forms, zoneOf(timezone)))
    return configuredType;
  const isFirstType = FIRST_COLUMNS.some((first) => first.source === source && first.type === type);
  const advice = isFirstType ? 'which is the same in every place' : 'or load into another place';
  throw configError(
    `column ${source} is stored as ${type}, and its values may not fit into ${configuredType}, which the settings name: ` +
      `keep its type, ${advice}.`,
    { where: { column: source } },
  );
}

/** The forms that the cells of a column have in a day, or in some files. */
export interface ColumnForms {
  readonly forms: CellForms;
  /** True if the cell `null` is a text, and not an absent value. */
  readonly isNullText: boolean;
}

/** The forms of the cells of a day, with the type that the column has after this day. `isFixed`: no cell changes it. */
function formsOfDay(forms: CellForms, type: ColumnType | null, isFixed: boolean): ColumnForms {
  // A column that is always a string has each cell as it was written.
  const isVerbatim = type === 'string' && isFixed && forms !== 0;
  // Of a column that the table lacks, the cells of the day decide whether it is one of texts.
  const isNullText = type === 'string' || (type === null && (forms & STRING) !== 0);
  return { forms: isVerbatim ? forms | STRING : forms, isNullText };
}

/**
 * The type that cells are read as before they become that of their column: their own, if the conversion loses no value.
 * So a batch of days gives the same texts as each day alone.
 */
export function cellTypeOf(type: ColumnType, forms: CellForms, zone: Zone | undefined): ColumnType {
  const cellType = typeOf(forms, zone) ?? type;
  return canWiden(cellType, type, forms, zone) ? cellType : type;
}
