import { configError } from '../base/errors.ts';
import { nfc } from '../base/text.ts';
import type { ColumnScan } from '../cells/columns/column-scanner.ts';
import { settingOf } from '../cells/header.ts';
import { type ColumnType, canWiden, narrowestType, widenedType } from '../cells/types/column-types.ts';
import { NULL_TEXT } from '../cells/types/forms.ts';
import { zoneOf } from '../cells/types/zone.ts';
import type { SchemaMode } from '../config/source.ts';
import { type StoredColumn, type Table, typedColumns } from './tables.ts';

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
  readonly columnNameOf?: ((source: string) => string) | undefined;
}

/** The settings for a table. A snapshot keeps the types of its initial columns, its ids, and has no pinned schema. */
export function settingsOfTable({ isSnapshot, initialColumns }: Table, settings: ColumnSettings): ColumnSettings {
  if (!isSnapshot) return settings;
  const idTypes = typedColumns(initialColumns).map(({ source, type }) => [source, type] as const);
  return { ...settings, columnTypes: new Map([...settings.columnTypes, ...idTypes]), pinnedTypes: undefined };
}

/** The type of a column after a day. */
export interface TypeAfterDay {
  /** Null if the table does not have the column. */
  readonly type: ColumnType | null;
  /** True if the cells of all days decide it; false if settings or service do, whatever the cells hold. */
  readonly isInferred: boolean;
}

/**
 * The type of a column after a day with these cells: the first that it has.
 *
 *   configured   of `column_types`, else of a pinned schema
 *   declared     of the service; stored values must fit it
 *   stored       if the service names the column, or under `freeze`
 *   inferred     the narrowest that all cells so far fit
 *
 * A table gets a column with its first value, but under `freeze` only a configured one. It has pinned columns from the
 * start. Throws a configuration failure if stored values may not fit a configured type.
 */
export function typeAfterDay(
  column: StoredColumn,
  { declaredType, forms: newForms }: Pick<ColumnScan, 'declaredType' | 'forms'>,
  tableColumns: readonly Pick<StoredColumn, 'source'>[],
  { columnTypes, pinnedTypes, schemaMode, timezone }: ColumnSettings,
): TypeAfterDay {
  const { source, occurrence, group, type: storedType, forms: storedForms } = column;
  const zone = zoneOf(timezone);
  const isOfService = group !== 'custom' && group !== 'custom_item';
  const isFrozen = schemaMode === 'freeze';
  const canHoldStored = (type: ColumnType) => storedType === null || canWiden(storedType, type, storedForms, zone);

  // A pinned schema has names as the export writes them, and of equal ones the first. A setting means all, in NFC.
  const pinnedType = occurrence === 1 ? settingOf(pinnedTypes, source, tableColumns) : undefined;
  const configuredType = settingOf(columnTypes, nfc(source), tableColumns) ?? pinnedType;
  if (configuredType !== undefined && !canHoldStored(configuredType)) {
    throw configError(
      `column ${source} is stored as ${storedType}, and its values may not fit into ${configuredType}, which ` +
        `column_types or the pinned schema names: take it out there${isOfService ? '' : ', or load into another place'}.`,
    );
  }
  let fixedType = configuredType ?? null;
  if (isOfService && declaredType !== undefined && canHoldStored(declaredType)) fixedType ??= declaredType;
  if (isOfService || isFrozen) fixedType ??= storedType;
  const isInferred = fixedType === null;

  if (storedType === null && pinnedType === undefined) {
    const mayBeAdded = !isFrozen || configuredType !== undefined;
    const hasValue = (fixedType === 'string' ? newForms : newForms & ~NULL_TEXT) !== 0;
    if (!mayBeAdded || !hasValue) return { type: null, isInferred };
  }
  const forms = storedForms | newForms;
  const inferredType = storedType ? widenedType(storedType, forms, zone) : (narrowestType(forms, zone) ?? null);
  return { type: fixedType ?? inferredType, isInferred };
}
