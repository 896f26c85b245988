import { configError } from '../base/errors.ts';
import { nfc } from '../base/text.ts';
import type { ColumnScan } from '../cells/columns/column-scan.ts';
import { settingOf } from '../cells/csv/header.ts';
import { type ColumnType, canWiden, typeOf, widenedType } from '../cells/types/column-types.ts';
import { NULL_TEXT } from '../cells/types/forms.ts';
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

/** The type of a column after a day. `isFixed`: settings or service decide it, whatever its cells hold. */
export interface TypeAfterDay {
  /** Null if the table does not have the column. */
  readonly type: ColumnType | null;
  readonly isFixed: boolean;
}

/**
 * The type of a column after a day with these cells. Settings come first: `column_types`, then a pinned schema.
 * `declared` is the type that the service fixes, or the string of hashes. Throws a configuration failure if stored
 * values may not fit into a setting.
 */
export function typeAfterDay(
  column: StoredColumn,
  { declared, forms: newForms }: Pick<ColumnScan, 'declared' | 'forms'>,
  tableColumns: readonly StoredColumn[],
  { columnTypes, pinnedTypes, schemaMode, timezone }: ColumnSettings,
): TypeAfterDay {
  const { source, occurrence, group, type, forms: storedForms } = column;
  const zone = zoneOf(timezone);
  // A pinned schema has names as the export writes them, and of equal ones the first. A setting means all, in NFC.
  const pinnedType = occurrence === 1 ? settingOf(pinnedTypes, source, tableColumns) : undefined;
  const configuredType = settingOf(columnTypes, nfc(source), tableColumns) ?? pinnedType;
  if (configuredType !== undefined) checkConfiguredType(column, configuredType, zone);
  const isFrozen = schemaMode === 'freeze';
  const isCustom = group === 'custom' || group === 'custom_item';
  // Stored values must fit into the type that the service declares.
  const takesDeclared =
    !isCustom && declared !== undefined && (type === null || canWiden(type, declared, storedForms, zone));
  const fixedType = configuredType ?? (isCustom && !isFrozen ? null : takesDeclared ? declared : type);
  const isFixed = fixedType !== null;
  // A pinned schema has columns without a value. Any other comes with its first value.
  if (type === null && pinnedType === undefined) {
    const mayBeAdded = !isFrozen || configuredType !== undefined;
    const hasValue = (fixedType === 'string' ? newForms : newForms & ~NULL_TEXT) !== 0;
    if (!mayBeAdded || !hasValue) return { type: null, isFixed };
  }
  if (isFixed) return { type: fixedType, isFixed };
  const forms = storedForms | newForms;
  return { type: type === null ? (typeOf(forms, zone) ?? null) : widenedType(type, forms, zone), isFixed };
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
