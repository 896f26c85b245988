// From cells to a type: the scan of an export says which forms the cells of a column have. `typeAfter` makes a type of
// them. `cellTypeOf` says as what they are read.

import { configError } from '../base/errors.ts';
import { nfc } from '../base/text.ts';
import { settingOf } from '../cells/csv/header.ts';
import { type ColumnType, canWiden, typeOf, widenedType } from '../cells/types/column-types.ts';
import { type CellForms, NULL_TEXT } from '../cells/types/forms.ts';
import { type Zone, zoneOf } from '../cells/types/zone.ts';
import type { ColumnRules } from './new-columns.ts';
import { FIRST_COLUMNS, type StoredColumn } from './tables.ts';

/** What decides the type of a column beside its new cells. */
export interface TypeRules {
  /** The column before the batch; its type is null if it was no column of the table. */
  readonly columnBefore: StoredColumn;
  /** The type that no cell changes; null if the cells decide. */
  readonly fixedType: ColumnType | null;
  /** True if a pinned schema has it: then it is a column of the table before it has a value. */
  readonly isPinned: boolean;
  /** False if a value does not make it a column of the table. */
  readonly mayBeAdded: boolean;
  readonly zone: Zone | undefined;
}

/**
 * The rules of a column. Settings come first: `column_types`, then a pinned schema. `declared` is the type that the
 * service fixes, or the string of hashes. Throws a configuration failure if stored values may not fit into a setting.
 */
export function typeRulesOf(
  column: StoredColumn,
  declared: ColumnType | undefined,
  tableColumns: readonly StoredColumn[],
  { columnTypes, pinnedTypes, schemaMode, timezone }: ColumnRules,
): TypeRules {
  const { source, occurrence, group, type, forms } = column;
  const zone = zoneOf(timezone);
  const pinnedType = occurrence === 1 ? settingOf(pinnedTypes, source, tableColumns) : undefined;
  const configuredType = settingOf(columnTypes, nfc(source), tableColumns) ?? pinnedType;
  if (configuredType !== undefined) checkConfiguredType(column, configuredType, zone);
  const isFrozen = schemaMode === 'freeze';
  const isCustom = group === 'custom' || group === 'custom_item';
  // Stored values must fit into the type that the service declares.
  const takesDeclared = !isCustom && declared !== undefined && (type === null || canWiden(type, declared, forms, zone));
  const keptType = takesDeclared ? declared : type;
  return {
    columnBefore: column,
    fixedType: configuredType ?? (isCustom && !isFrozen ? null : keptType),
    isPinned: pinnedType !== undefined,
    mayBeAdded: !isFrozen || configuredType !== undefined,
    zone,
  };
}

/** The type once new cells of these forms have come; null if the table does not have the column. */
export function typeAfter(rules: TypeRules, newForms: CellForms): ColumnType | null {
  const { columnBefore, fixedType, isPinned, mayBeAdded, zone } = rules;
  const { type, forms: storedForms } = columnBefore;
  const hasNewValue = (fixedType === 'string' ? newForms : newForms & ~NULL_TEXT) !== 0;
  const isInTable = type !== null || isPinned || (mayBeAdded && hasNewValue);
  if (!isInTable) return null;
  if (fixedType !== null) return fixedType;
  const forms = storedForms | newForms;
  return type === null ? (typeOf(forms, zone) ?? null) : widenedType(type, forms, zone);
}

function checkConfiguredType(column: StoredColumn, configuredType: ColumnType, zone: Zone | undefined): void {
  const { source, type, forms } = column;
  if (type === null || canWiden(type, configuredType, forms, zone)) return;
  const isFirstType = FIRST_COLUMNS.some((first) => first.source === source && first.type === type);
  const advice = isFirstType ? 'which is the same in every place' : 'or load into another place';
  throw configError(
    `column ${source} is stored as ${type}, and its values may not fit into ${configuredType}, which the settings name: ` +
      `keep its type, ${advice}.`,
    { where: { column: source } },
  );
}

/**
 * The type that cells are read as before they become that of their column: their own, if the conversion loses no value.
 * So a batch of days gives the same texts as each day alone.
 */
export function cellTypeOf(type: ColumnType, forms: CellForms, zone: Zone | undefined): ColumnType {
  const cellType = typeOf(forms, zone) ?? type;
  return canWiden(cellType, type, forms, zone) ? cellType : type;
}
