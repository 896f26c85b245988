import type { ColumnType } from '../../../types/type.ts';

/** What a configured property wants of its cells. `zoned` matters to datetimes: instants in UTC, or wall-clock times. */
export interface PropertyType {
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
export function propertyType(schema: unknown): PropertyType {
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
