import { configError } from '../base/errors.ts';
import { nfc } from '../base/text.ts';
import type { ColumnScan } from '../cells/columns/column-scanner.ts';
import { settingOf } from '../cells/header.ts';
import { type ColumnType, canWiden, narrowestType, widenedType } from '../cells/types/column-types.ts';
import { NULL_TEXT } from '../cells/types/forms.ts';
import { zoneOf } from '../cells/types/zone.ts';
import { type StoredColumn, type Table, typedColumns } from './tables.ts';

/** The settings that decide, beside the data, the columns of a table. */
export interface ColumnSettings {
  /** Zone of datetimes that name none; fixed by the first load of a target. */
  readonly timezone: string | null;
  /** Types by source name, which take precedence over everything else. */
  readonly columnTypes: ReadonlyMap<string, ColumnType>;
  readonly schemaMode: 'evolve' | 'freeze';
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

/** The type that the pinned schema gives a column. It names columns as the export does, and of equal ones the first. */
const pinnedTypeOf = (
  { source, occurrence }: Pick<StoredColumn, 'source' | 'occurrence'>,
  columns: readonly Pick<StoredColumn, 'source'>[],
  { pinnedTypes }: Pick<ColumnSettings, 'pinnedTypes'>,
): ColumnType | undefined => (occurrence === 1 ? settingOf(pinnedTypes, source, columns) : undefined);

/** The type that settings give a column: of `columnTypes`, which mean all columns of a name, else of the pinned schema. */
export const configuredTypeOf = (
  column: Pick<StoredColumn, 'source' | 'occurrence'>,
  columns: readonly Pick<StoredColumn, 'source'>[],
  settings: Pick<ColumnSettings, 'columnTypes' | 'pinnedTypes'>,
): ColumnType | undefined =>
  settingOf(settings.columnTypes, nfc(column.source), columns) ?? pinnedTypeOf(column, columns, settings);

/** As `configuredTypeOf`, for a stored column. Throws a configuration failure if its values may not fit the type. */
export function acceptedTypeOf(
  column: StoredColumn,
  columns: readonly Pick<StoredColumn, 'source'>[],
  settings: ColumnSettings,
): ColumnType | undefined {
  const configuredType = configuredTypeOf(column, columns, settings);
  if (configuredType === undefined || canHoldStored(column, configuredType, settings)) return configuredType;
  throw configError(
    `column ${column.source} is stored as ${column.type}, and its values may not fit into ${configuredType}, which ` +
      `column_types or the pinned schema names: take it out there${isOfService(column) ? '' : ', or load into another place'}.`,
  );
}

const canHoldStored = ({ type, forms }: StoredColumn, newType: ColumnType, { timezone }: ColumnSettings): boolean =>
  type === null || canWiden(type, newType, forms, zoneOf(timezone));

const isOfService = ({ group }: StoredColumn): boolean => group !== 'custom' && group !== 'custom_item';

/** The type of a column after a day. */
export interface TypeAfterDay {
  /** Null if the table does not have the column. */
  readonly type: ColumnType | null;
  /** True if settings or the service decide it, whatever the cells hold; false if the cells of all days do. */
  readonly isFixed: boolean;
}

/**
 * The type of a column after a day with these cells: the first that it has.
 *
 *   configured   of `column_types`, else of a pinned schema
 *   declared     of the service; stored values must fit it
 *   stored       if the service names the column, or once the table is frozen
 *   inferred     the narrowest that all cells so far fit
 *
 * A table gets a column with its first value, but once it is frozen only a configured one. It has pinned columns from
 * the start. Throws a configuration failure if stored values may not fit a configured type.
 */
export function typeAfterDay(
  column: StoredColumn,
  { declaredType, forms: newForms }: Pick<ColumnScan, 'declaredType' | 'forms'>,
  { columns, isFrozen }: { readonly columns: readonly StoredColumn[]; readonly isFrozen: boolean },
  settings: ColumnSettings,
): TypeAfterDay {
  const { type: storedType } = column;
  const configuredType = acceptedTypeOf(column, columns, settings);
  const serviceType = isOfService(column) ? typeByService(column, declaredType, settings) : null;
  const fixedType = configuredType ?? serviceType ?? (isFrozen ? storedType : null);

  // Only in a column of texts is the cell `null` a value.
  const hasValue = (fixedType === 'string' ? newForms : newForms & ~NULL_TEXT) !== 0;
  const isPinned = pinnedTypeOf(column, columns, settings) !== undefined;
  const isAdded = isPinned || (hasValue && (!isFrozen || configuredType !== undefined));
  if (storedType === null && !isAdded) return { type: null, isFixed: false };
  if (fixedType !== null) return { type: fixedType, isFixed: true };
  const zone = zoneOf(settings.timezone);
  const forms = column.forms | newForms;
  const type = storedType ? widenedType(storedType, forms, zone) : (narrowestType(forms, zone) ?? null);
  return { type, isFixed: false };
}

/** The type of a column of the service: as it declares it, if stored values fit that, else as stored. */
const typeByService = (column: StoredColumn, declaredType: ColumnType | undefined, settings: ColumnSettings) =>
  declaredType !== undefined && canHoldStored(column, declaredType, settings) ? declaredType : column.type;
