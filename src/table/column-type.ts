// From cells to a type: the scan of an export says which forms the cells of a column have. `typeRulesOf` says what the
// settings make of the column. `typeAfter` makes a type of both.

import { configError } from '../base/errors.ts';
import { nfc } from '../base/text.ts';
import { settingOf } from '../cells/csv/header.ts';
import { type ColumnType, canWiden, typeOf, widenedType } from '../cells/types/column-types.ts';
import { type CellForms, NULL_TEXT } from '../cells/types/forms.ts';
import { type Zone, zoneOf } from '../cells/types/zone.ts';
import type { SchemaMode } from '../config/source.ts';
import { EVENTS, type StoredColumn, type Table, typedColumns } from './tables.ts';

/** The settings that decide, beside the data, the columns of a table. */
export interface ColumnSettings {
  /** Zone of datetimes that name none; fixed by the first load of a target. */
  readonly timezone: string | null;
  /** Types by source name, which take precedence over everything else. */
  readonly columnTypes: ReadonlyMap<string, ColumnType>;
  readonly schemaMode: SchemaMode;
  /** Types of a pinned schema, by source name. */
  readonly pinnedTypes?: ReadonlyMap<string, ColumnType> | undefined;
  /** Derives the name of a column from that in the export, before equal names are numbered; absent: the same. */
  readonly columnName?: ((source: string) => string) | undefined;
}

/** The settings for a table. A snapshot keeps the types of its first columns, its ids, and has no pinned schema. */
export function settingsOfTable({ isSnapshot, firstColumns }: Table, settings: ColumnSettings): ColumnSettings {
  if (!isSnapshot) return settings;
  const idTypes = typedColumns(firstColumns).map(({ source, type }) => [source, type] as const);
  return { ...settings, columnTypes: new Map([...settings.columnTypes, ...idTypes]), pinnedTypes: undefined };
}

/** What decides the type of a column beside its new cells. */
export interface TypeRules {
  /** The column before the batch; its type is null if it was no column of the table. */
  readonly columnBefore: StoredColumn;
  /** The type that no cell changes; null if the cells decide. */
  readonly fixedType: ColumnType | null;
  /** When it is a column of the table. A pinned schema has columns without a value. */
  readonly inTable: 'always' | 'with_value' | 'never';
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
  { columnTypes, pinnedTypes, schemaMode, timezone }: ColumnSettings,
): TypeRules {
  const { source, occurrence, group, type, forms } = column;
  const zone = zoneOf(timezone);
  const pinnedType = occurrence === 1 ? settingOf(pinnedTypes, source, tableColumns) : undefined;
  const configuredType = settingOf(columnTypes, nfc(source), tableColumns) ?? pinnedType;
  if (configuredType !== undefined) checkConfiguredType(column, configuredType, zone);
  const isFrozen = schemaMode === 'freeze';
  const mayBeAdded = !isFrozen || configuredType !== undefined;
  const isCustom = group === 'custom' || group === 'custom_item';
  // Stored values must fit into the type that the service declares.
  const takesDeclared = !isCustom && declared !== undefined && (type === null || canWiden(type, declared, forms, zone));
  const keptType = takesDeclared ? declared : type;
  return {
    columnBefore: column,
    fixedType: configuredType ?? (isCustom && !isFrozen ? null : keptType),
    inTable: type !== null || pinnedType !== undefined ? 'always' : mayBeAdded ? 'with_value' : 'never',
    zone,
  };
}

/** The type once new cells of these forms have come; null if the table does not have the column. */
export function typeAfter(rules: TypeRules, newForms: CellForms): ColumnType | null {
  const { columnBefore, fixedType, inTable, zone } = rules;
  const { type, forms: storedForms } = columnBefore;
  const hasNewValue = (fixedType === 'string' ? newForms : newForms & ~NULL_TEXT) !== 0;
  if (inTable === 'never' || (inTable === 'with_value' && !hasNewValue)) return null;
  if (fixedType !== null) return fixedType;
  const forms = storedForms | newForms;
  return type === null ? (typeOf(forms, zone) ?? null) : widenedType(type, forms, zone);
}

function checkConfiguredType(column: StoredColumn, configuredType: ColumnType, zone: Zone | undefined): void {
  const { source, type, forms } = column;
  if (type === null || canWiden(type, configuredType, forms, zone)) return;
  const isFirstType = EVENTS.firstColumns.some((first) => first.source === source && first.type === type);
  const advice = isFirstType ? 'which is the same in every place' : 'or load into another place';
  throw configError(
    `column ${source} is stored as ${type}, and its values may not fit into ${configuredType}, which the settings name: ` +
      `keep its type, ${advice}.`,
    { where: { column: source } },
  );
}
