import type { SpoolFile } from '../../extract/window.ts';
import { headerColumns } from '../../schema/groups.ts';
import { fitsWholly, NULL_TEXT } from '../../types/evidence.ts';
import type { ColumnType, Evidence } from '../../types/type.ts';
import { ITEM_POSITION, KEY, propertyNames, RESCUED, type StreamName } from './property-names.ts';

/** One stream of the configured catalog, as far as its records depend on it. */
export interface RecordStream {
  readonly name: StreamName;
  /** Configured properties: name → JSON schema. Nothing else is sent. */
  readonly properties: Readonly<Record<string, unknown>>;
  /** Properties that must be there even when they are not configured: the configured primary key. */
  readonly keys: readonly string[];
}

/** How a column's cells are written; decided once a file, by the evidence of its every cell. assembly/csv.ts knows the first five. */
export const SKIP = 0;
/** Any text. */
export const TEXT = 1;
/** Numbers that are JSON as they stand. */
export const COPY = 2;
/** Datetimes that all fit, of wall-clock time. */
const DATETIME = 3;
/** Booleans that all fit. */
const BOOLEAN = 4;
/** Other cells that all fit, or are absent. */
const CLEAN = 5;
/** Cells that must be looked at one by one. */
export const CHECKED = 6;
/** Instants are wanted and no zone is configured: only cells with a zone of their own fit. */
export const ZONED_ONLY = 7;

/** How the rows of one file become the records of one stream; plain data, so that it may go to a worker. */
export interface RecordPlan {
  readonly name: StreamName;
  /** Per column of the header: one of the encodings above. */
  readonly encodings: Uint8Array;
  /** Per column: the type of its property; undefined where the column is skipped, or no cell can fit. */
  readonly types: readonly (ColumnType | undefined)[];
  /** Per column: 1 where a datetime is wanted as an instant. */
  readonly zoned: Uint8Array;
  /** `,"name":` of each column, one behind the other; column i has [offsets[i], offsets[i + 1]). */
  readonly labels: Uint8Array;
  readonly labelOffsets: Int32Array;
  /** Per column: the JSON of its property's name, and of its own name. */
  readonly fields: readonly string[];
  readonly sources: readonly string[];
  readonly key: boolean;
  readonly rescued: boolean;
  readonly position: boolean;
  /** Names of columns that this stream would have and the catalog lacks. */
  readonly unsent: readonly string[];
  /** A configured property, as `,"name":null`, for a record that would be empty. */
  readonly placeholder: string;
}

/** Plans the records of one stream for a file. `hasZone`: a zone of datetimes without one is configured. */
export function planRecords(
  stream: RecordStream,
  { header, columns }: Pick<SpoolFile, 'header' | 'columns'>,
  hasZone: boolean,
): RecordPlan {
  const names = propertyNames(stream.name, headerColumns(header), (name) => isWanted(stream, name));
  const wanted = names.map((name) => (name !== undefined && isWanted(stream, name) ? name : undefined));
  const properties = wanted.map((name) => (name === undefined ? undefined : propertyType(stream.properties[name])));
  const labels = wanted.map((name) => Buffer.from(name === undefined ? '' : `,${JSON.stringify(name)}:`));
  return {
    name: stream.name,
    encodings: Uint8Array.from(properties, (property, i) =>
      property === undefined ? SKIP : encodingOf(property, columns[i].evidence, hasZone),
    ),
    types: properties.map((property) => property?.type),
    zoned: Uint8Array.from(properties, (property) => (property?.zoned ? 1 : 0)),
    labels: Uint8Array.from(Buffer.concat(labels)),
    labelOffsets: offsetsOf(labels),
    fields: names.map((name) => JSON.stringify(name ?? '')),
    sources: header.map((name) => JSON.stringify(name)),
    key: stream.name !== 'event_logs' && isWanted(stream, KEY),
    rescued: Object.hasOwn(stream.properties, RESCUED),
    position: stream.name === 'event_items' && isWanted(stream, ITEM_POSITION),
    unsent: names.filter((name): name is string => name !== undefined && !isWanted(stream, name)),
    placeholder: `,${JSON.stringify([...Object.keys(stream.properties), ...stream.keys, KEY][0])}:null`,
  };
}

/** Of columns without `null` in which every cell fits. */
const FILLED_ENCODINGS: ReadonlyMap<ColumnType, number> = new Map([
  ['long', COPY],
  ['double', COPY],
  ['date', TEXT],
  ['boolean', BOOLEAN],
]);

function encodingOf({ type, zoned }: PropertyType, evidence: Evidence, hasZone: boolean): number {
  if (type === undefined) return CHECKED;
  if (type === 'string') return TEXT;
  // Only a datetime is zoned.
  if (zoned && !hasZone) return ZONED_ONLY;
  if (!fitsWholly(evidence, type, zoned)) return CHECKED;
  if ((evidence & NULL_TEXT) !== 0) return CLEAN;
  if (type === 'datetime') return zoned ? CLEAN : DATETIME;
  return FILLED_ENCODINGS.get(type) ?? CLEAN;
}

function isWanted(stream: RecordStream, name: string): boolean {
  return Object.hasOwn(stream.properties, name) || stream.keys.includes(name);
}

function offsetsOf(parts: readonly Uint8Array[]): Int32Array {
  const offsets = new Int32Array(parts.length + 1);
  parts.forEach((part, i) => {
    offsets[i + 1] = offsets[i] + part.length;
  });
  return offsets;
}

/** What a configured property wants of its cells. `zoned` matters to datetimes: instants in UTC, or wall-clock times. */
interface PropertyType {
  /** Undefined: what no cell can be, an object or a time of day, say. */
  readonly type: ColumnType | undefined;
  readonly zoned: boolean;
}

interface PropertySchema {
  readonly type?: unknown;
  readonly format?: unknown;
  readonly airbyte_type?: unknown;
  readonly items?: unknown;
}

/** The column type behind a property of a configured JSON schema; text where the schema names no type. */
function propertyType(schema: unknown): PropertyType {
  const property: PropertySchema = isObject(schema) ? schema : {};
  const type = typeOfProperty(property);
  return { type, zoned: type === 'datetime' && property.airbyte_type !== 'timestamp_without_timezone' };
}

function typeOfProperty(property: PropertySchema): ColumnType | undefined {
  const types = typesOf(property);
  if (types.includes('string')) return typeOfText(property.format);
  if (types.includes('boolean')) return 'boolean';
  if (types.includes('number')) return property.airbyte_type === 'integer' ? 'long' : 'double';
  if (types.includes('integer')) return 'long';
  if (types.includes('array')) return listType(property.items);
  return property.type === undefined ? 'string' : undefined;
}

function typeOfText(format: unknown): ColumnType | undefined {
  if (format === 'date') return 'date';
  if (format === 'time') return undefined;
  return format === 'date-time' ? 'datetime' : 'string';
}

function listType(items: unknown): ColumnType | undefined {
  if (!isObject(items) || items.type === undefined) return 'string[]';
  const types = typesOf(items);
  if (types.includes('string')) return 'string[]';
  if (types.includes('number')) return 'double[]';
  return types.includes('integer') ? 'long[]' : undefined;
}

function typesOf(schema: PropertySchema): readonly unknown[] {
  return Array.isArray(schema.type) ? schema.type : [schema.type];
}

function isObject(value: unknown): value is PropertySchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
