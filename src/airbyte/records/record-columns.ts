import { isObject } from '../../base/json.ts';
import type { ColumnScan } from '../../cells/columns/column-scanner.ts';
import type { ColumnCodec } from '../../cells/types/codec.ts';
import { COLUMN_TYPES, type ColumnType, codecOf, fits } from '../../cells/types/column-types.ts';
import type { Zone } from '../../cells/types/zone.ts';

/** How the cells of one column become a property of the records. */
export interface RecordColumn {
  /** Its name in the records. */
  readonly propertyName: string;
  /** The `memberLabel` of this name. */
  readonly label: Uint8Array;
  /** The label in `_rescued`: of the column's own name. Of equal names, the second has that of its property. */
  readonly rescuedLabel: Uint8Array;
  readonly codec: ColumnCodec;
  /** The zone of datetimes that name none, for instants. */
  readonly zone: Zone | undefined;
  /** True if the scan has shown that all cells of the file fit. */
  readonly allCellsFit: boolean;
}

/** How the cells of a column are written under the configured JSON schema of its property. Instants need a `zone`. */
export function recordColumn(
  propertyName: string,
  { headerName, occurrence, forms }: Pick<ColumnScan, 'headerName' | 'occurrence' | 'forms'>,
  schema: unknown,
  zone: Zone | undefined,
): RecordColumn {
  const cellZone = isInstant(schema) ? zone : undefined;
  const codec = codecOf(typeOfSchema(schema), cellZone);
  return {
    propertyName,
    label: memberLabel(propertyName),
    rescuedLabel: memberLabel(occurrence === 1 ? headerName : propertyName),
    codec,
    zone: cellZone,
    allCellsFit: fits(codec, forms),
  };
}

/** What stands before the value of a member: `,"name":`. */
export const memberLabel = (name: string): Uint8Array => Buffer.from(`,${JSON.stringify(name)}:`);

/** True for the JSON schema of a datetime with a time zone. */
export const isInstant = (schema: unknown): boolean =>
  typeOfSchema(schema) === 'datetime' && isObject(schema) && schema.airbyte_type !== 'timestamp_without_timezone';

/** The column type that a JSON schema means: string, if it means none. */
function typeOfSchema(schema: unknown): ColumnType {
  if (!isObject(schema)) return 'string';
  const { type, format, items } = schema;
  const jsonTypes: readonly unknown[] = [type ?? 'string'].flat();
  const isText = jsonTypes.includes('string');
  if (isText && format === 'date') return 'date';
  if (isText && format === 'date-time') return 'datetime';
  if (isText) return 'string';
  if (jsonTypes.includes('boolean')) return 'boolean';
  if (jsonTypes.includes('number')) return 'double';
  if (jsonTypes.includes('integer')) return 'long';
  if (!jsonTypes.includes('array')) return 'string';
  return COLUMN_TYPES.find((listType) => listType === `${typeOfSchema(items)}[]`) ?? 'string[]';
}
