import { isObject } from '../../base/json.ts';
import { headerColumns, LOG_ID } from '../../cells/csv/header.ts';
import { COLUMN_TYPES, type ColumnCodec, type ColumnType } from '../../cells/types/codec.ts';
import { type CellForms, DATETIME_OFFSET, NULL_TEXT } from '../../cells/types/forms.ts';
import { copyBytes } from '../../cells/types/string.ts';
import { codecOf, fits } from '../../cells/types/types.ts';
import { type Zone, zoneOf } from '../../cells/types/zone.ts';
import type { SpoolFile } from '../../extract/checked-day.ts';
import { ITEM_POSITION } from '../../table/names.ts';
import type { ConfiguredStream } from '../protocol/catalog-and-states.ts';
import { configuredNames, type PropertyName } from './property-names.ts';
import { KEY, RESCUED, type RowSelection, STREAMS, type StreamName } from './streams.ts';

/** A stream of the configured catalog. */
export interface RecordStream {
  readonly name: StreamName;
  /** Configured properties: name → JSON schema. Other properties are not sent. */
  readonly properties: Readonly<Record<string, unknown>>;
  /** Properties that are sent even if they are not configured: the configured primary key. */
  readonly keys: readonly string[];
}

/** What the records of a configured stream have: its properties, and the keys of the first level. */
export const recordStream = (
  name: StreamName,
  { jsonSchema, primaryKey }: Pick<ConfiguredStream, 'jsonSchema' | 'primaryKey'>,
): RecordStream => ({
  name,
  properties: isObject(jsonSchema.properties) ? jsonSchema.properties : {},
  keys: primaryKey.flatMap((path) => (path.length === 1 ? path : [])),
});

/**
 * How a column's cells are written. Chosen for a whole file, by the forms of all cells.
 *
 *   text      each cell is a text
 *   copy      the bytes of each cell are its JSON
 *   fitting   cells of any other type that all fit or are absent: written without a check
 *   checked   each cell must be checked
 */
type Encoding = 'text' | 'copy' | 'fitting' | 'checked';

/** How the cells of one column become a property of the records. */
export interface RecordColumn {
  readonly encoding: Encoding;
  readonly codec: ColumnCodec;
  /** The zone of datetimes that name none. */
  readonly zone: Zone | undefined;
  /** `,"name":`. */
  readonly label: Uint8Array;
  /** The name of the property, as JSON. */
  readonly field: string;
  /** The member of `_rescued`, as JSON: the column's own name. Of equal names, the second has that of its property. */
  readonly rescuedAs: string;
}

/** How the rows of one file become records of one stream. */
export interface RecordPlan {
  readonly stream: StreamName;
  readonly selection: RowSelection;
  /** By column of the header; undefined for a column that is not sent. */
  readonly columns: readonly (RecordColumn | undefined)[];
  /** Whether the records have `_key`, `_rescued` and `item_position`. */
  readonly hasKey: boolean;
  readonly hasRescued: boolean;
  readonly hasPosition: boolean;
  /** Whether `df_event_log_id` is the key of a row that names no event: it is an event of its own. */
  readonly hasKeyAsLogId: boolean;
  /** Names of columns that this stream would have and the catalog lacks. */
  readonly unsentColumns: readonly string[];
}

/** True if the records have the text of cells that did not fit. */
export const hasRescued = ({ properties }: RecordStream): boolean => Object.hasOwn(properties, RESCUED);

/** Plans the records of one stream for a file. `timezone`: the zone of datetimes that name none. */
export function planRecords(
  stream: RecordStream,
  { header, columns }: Pick<SpoolFile, 'header' | 'columns'>,
  timezone: string | undefined,
): RecordPlan {
  const configuredProperties = new Set([...Object.keys(stream.properties), ...stream.keys]);
  const properties = configuredNames(stream.name, headerColumns(header), configuredProperties);
  const zone = zoneOf(timezone);
  const recordColumn = (property: PropertyName | undefined, i: number): RecordColumn | undefined => {
    if (property === undefined || !configuredProperties.has(property.name)) return undefined;
    const { name, column } = property;
    const field = JSON.stringify(name);
    return {
      ...encodingUnder(stream.properties[name], zone, columns[i].forms),
      label: Buffer.from(`,${field}:`),
      field,
      rescuedAs: column.occurrence === 1 ? JSON.stringify(column.name) : field,
    };
  };
  const { selection, ownProperties } = STREAMS[stream.name];
  const hasOwn = (name: string) => Object.hasOwn(ownProperties, name) && configuredProperties.has(name);
  return {
    stream: stream.name,
    selection,
    columns: properties.map(recordColumn),
    hasKey: hasOwn(KEY),
    hasRescued: hasRescued(stream),
    hasPosition: hasOwn(ITEM_POSITION),
    hasKeyAsLogId: selection === 'row_per_event' && configuredProperties.has(LOG_ID),
    unsentColumns: properties.flatMap((property) =>
      property === undefined || configuredProperties.has(property.name) ? [] : [property.name],
    ),
  };
}

function encodingOf(codec: ColumnCodec, forms: CellForms): Encoding {
  if (codec.duckdb === 'VARCHAR') return 'text';
  if (!fits(codec, forms)) return 'checked';
  return (forms & NULL_TEXT) === 0 && codec.writeJson === copyBytes ? 'copy' : 'fitting';
}

/** A codec that no cell fits. */
const NEVER_FITTING: ColumnCodec = { ...codecOf('string', undefined), forms: 0 };

interface PropertySchema {
  readonly type?: unknown;
  readonly format?: unknown;
  readonly airbyte_type?: unknown;
  readonly items?: unknown;
}

/**
 * How cells of these forms are written under a configured JSON schema: as text if it names no type. `zone`: that of
 * datetimes that name none.
 */
function encodingUnder(
  schema: unknown,
  zone: Zone | undefined,
  forms: CellForms,
): Pick<RecordColumn, 'codec' | 'zone' | 'encoding'> {
  const property: PropertySchema = isObject(schema) ? schema : {};
  // No type is a time of day: a property that asks for one must not get any text.
  const [type] = property.format === 'time' ? [] : kindsOf(property).flatMap((kind) => TYPE_OF_KIND.get(kind) ?? []);
  if (type === undefined) return { codec: NEVER_FITTING, zone: undefined, encoding: 'checked' };
  const isInstant = type === 'datetime' && property.airbyte_type !== 'timestamp_without_timezone';
  const cellZone = isInstant ? (zone ?? zoneOf('UTC')) : undefined;
  const codec = codecOf(type, cellZone);
  if (!isInstant || zone !== undefined) return { codec, zone: cellZone, encoding: encodingOf(codec, forms) };
  // Without a zone only a cell with a UTC offset is an instant; the scan did not see its year in UTC.
  return { codec: { ...codec, forms: DATETIME_OFFSET }, zone: cellZone, encoding: 'checked' };
}

const JSON_TYPES = ['string', 'boolean', 'number', 'integer', 'array'];
/** Column types by the narrowest kind of their JSON schema. */
const TYPE_OF_KIND: ReadonlyMap<string, ColumnType> = new Map(
  COLUMN_TYPES.map((type) => [kindsOf(codecOf(type, undefined).jsonSchema)[0], type]),
);

/** The kinds of a schema, the narrowest first: `string date`, `string`; `array of number`. */
function kindsOf({ type, format, airbyte_type, items }: PropertySchema): string[] {
  const types: readonly unknown[] = Array.isArray(type) ? type : [type ?? 'string'];
  const kind = JSON_TYPES.find((name) => types.includes(name)) ?? 'other';
  if (kind === 'array') return kindsOf(isObject(items) ? items : {}).map((item) => `array of ${item}`);
  if (kind === 'number' && airbyte_type === 'integer') return ['integer'];
  return [...[format, airbyte_type].flatMap((name) => (name === undefined ? [] : `${kind} ${name}`)), kind];
}
