import { isObject, type JsonObject } from '../../base/json.ts';
import type { ColumnScan } from '../../cells/columns/column-scanner.ts';
import type { ColumnCodec } from '../../cells/types/codec.ts';
import { COLUMN_TYPES, type ColumnType, codecOf, fits } from '../../cells/types/column-types.ts';
import { DATETIME_OFFSET } from '../../cells/types/forms.ts';
import { type Zone, zoneOf } from '../../cells/types/zone.ts';

/** How the cells of one column become a property of the records. */
export interface RecordColumn {
  /** Its name in the records. */
  readonly propertyName: string;
  /** The `memberLabel` of this name. */
  readonly label: Uint8Array;
  /** The label in `_rescued`: of the column's own name. Of equal names, the second has that of its property. */
  readonly rescuedLabel: Uint8Array;
  readonly codec: ColumnCodec;
  /** The zone of datetimes that name none. */
  readonly zone: Zone | undefined;
  /** True if the scan has shown that all cells of the file fit. */
  readonly allCellsFit: boolean;
}

/** How the cells of a column are written under the configured JSON schema of its property. `zone`: the configured one. */
export function recordColumn(
  propertyName: string,
  { headerName, occurrence, forms }: Pick<ColumnScan, 'headerName' | 'occurrence' | 'forms'>,
  schema: unknown,
  zone: Zone | undefined,
): RecordColumn {
  const { codec, zone: cellZone } = codecOfSchema(schema, zone);
  return {
    propertyName,
    label: memberLabel(propertyName),
    rescuedLabel: memberLabel(occurrence === 1 ? headerName : propertyName),
    codec,
    zone: cellZone,
    // The scan read the cells in `zone`. Without one `9999-12-31T23:00:00-05:00` fitted; in UTC it is of the year 10000.
    allCellsFit: fits(codec, forms) && (cellZone === zone || cellZone === undefined),
  };
}

/** What stands before the value of a member: `,"name":`. */
export const memberLabel = (name: string): Uint8Array => Buffer.from(`,${JSON.stringify(name)}:`);

/**
 * The codec of a property, and the zone in which its cells are read. A schema of no column type is that of a text.
 *
 *   property           configured zone    cells that fit             their zone
 *   an instant         yes                datetimes                  the configured one
 *   an instant         no                 those with a UTC offset    UTC
 *   of another type                       those of this type         none
 */
function codecOfSchema(schema: unknown, zone: Zone | undefined): Pick<RecordColumn, 'codec' | 'zone'> {
  const propertySchema: JsonObject = isObject(schema) ? schema : {};
  const type = typeOfSchema(propertySchema);
  if (type !== 'datetime' || propertySchema.airbyte_type === 'timestamp_without_timezone') {
    return { codec: codecOf(type, undefined), zone: undefined };
  }
  if (zone !== undefined) return { codec: codecOf('datetime', zone), zone };
  const utc = zoneOf('UTC');
  return { codec: { ...codecOf('datetime', utc), forms: DATETIME_OFFSET }, zone: utc };
}

function typeOfSchema({ type, format, items }: JsonObject): ColumnType {
  const jsonTypes: readonly unknown[] = [type ?? 'string'].flat();
  const isText = jsonTypes.includes('string');
  if (isText && format === 'date') return 'date';
  if (isText && format === 'date-time') return 'datetime';
  if (isText) return 'string';
  if (jsonTypes.includes('boolean')) return 'boolean';
  if (jsonTypes.includes('number')) return 'double';
  if (jsonTypes.includes('integer')) return 'long';
  if (!jsonTypes.includes('array')) return 'string';
  const itemType = typeOfSchema(isObject(items) ? items : {});
  return COLUMN_TYPES.find((listType) => listType === `${itemType}[]`) ?? 'string[]';
}
