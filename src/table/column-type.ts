// From cells to a type: the scan of an export says which forms the cells of a column have. `typeAfter` makes a type of
// them. `cellTypeOf` says as what they are read.

import { configError } from '../base/errors.ts';
import { nfc } from '../base/text.ts';
import { EVENT_NAME, EVENT_NAME_ALTERNATIVE } from '../cells/csv/header.ts';
import { type ColumnType, canWiden, typeOf, widenedType } from '../cells/types/column-types.ts';
import { type CellForms, NULL_TEXT } from '../cells/types/forms.ts';
import { type Zone, zoneOf } from '../cells/types/zone.ts';
import type { ColumnRules } from './new-columns.ts';
import { FIRST_COLUMNS, type StoredColumn } from './tables.ts';

/** What decides the type of a column beside its new cells. */
export interface TypeRules {
  /** The column before the batch; its type is null if it was no column of the table. */
  readonly columnBefore: StoredColumn;
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

/** The type that no cell changes; null if the cells decide. */
export function fixedTypeOf({ columnBefore, configuredType, declared, isFrozen, zone }: TypeRules): ColumnType | null {
  const { type, forms, group } = columnBefore;
  if (configuredType !== null) return configuredType;
  if (group === 'custom' || group === 'custom_item') return isFrozen ? type : null;
  if (type === null || declared === undefined) return declared ?? type;
  // Stored values must fit into the type that the service declares.
  return canWiden(type, declared, forms, zone) ? declared : type;
}

/** The type once new cells of these forms have come; null if the table does not have the column. */
export function typeAfter(rules: TypeRules, newForms: CellForms): ColumnType | null {
  const { columnBefore, configuredType, isPinned, isFrozen, zone } = rules;
  const { type, forms: storedForms } = columnBefore;
  const fixedType = fixedTypeOf(rules);
  const hasNewValue = (fixedType === 'string' ? newForms : newForms & ~NULL_TEXT) !== 0;
  const takesColumn = isPinned || (hasNewValue && (!isFrozen || configuredType !== null));
  if (type === null && !takesColumn) return null;
  if (fixedType !== null) return fixedType;
  const forms = storedForms | newForms;
  return type === null ? (typeOf(forms, zone) ?? null) : widenedType(type, forms, zone);
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

/**
 * The type that cells are read as before they become that of their column: their own, if the conversion loses no value.
 * So a batch of days gives the same texts as each day alone.
 */
export function cellTypeOf(type: ColumnType, forms: CellForms, zone: Zone | undefined): ColumnType {
  const cellType = typeOf(forms, zone) ?? type;
  return canWiden(cellType, type, forms, zone) ? cellType : type;
}
