// This folder: from the bytes of a row to the bytes of a RECORD message.

import { headerColumns } from '../../../schema/groups.ts';
import { COLUMN_TYPES } from '../../../types/type.ts';
import { ITEM_POSITION, KEY, propertyNames, RESCUED, type StreamName } from '../property-names.ts';
import { type PropertyType, propertyType } from './property-type.ts';

/** One stream of the configured catalog, as far as its records depend on it. */
export interface RecordStream {
  readonly name: StreamName;
  /** Configured properties: name → JSON schema. Nothing else is sent. */
  readonly properties: Readonly<Record<string, unknown>>;
  /** Properties that must be there even when they are not configured: the configured primary key. */
  readonly keys: readonly string[];
}

/** What a cell of a column becomes: nothing, 1 + the index of its type in COLUMN_TYPES, or text in `_rescued` alone. */
const HIDDEN = 0;
export const UNFIT = COLUMN_TYPES.length + 1;

/** How the rows of one header become the records of one stream; plain data, so that it may go to a worker. */
export interface RecordPlan {
  readonly name: StreamName;
  /** Per column of the header. */
  readonly kinds: Uint8Array;
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

const encoder = new TextEncoder();

/** Plans the records of one stream for files with this header. */
export function planRecords(stream: RecordStream, header: readonly string[]): RecordPlan {
  const columns = headerColumns(header);
  const names = propertyNames(stream.name, columns, (name) => isWanted(stream, name));
  const wanted = names.map((name) => (name !== undefined && isWanted(stream, name) ? name : undefined));
  const types = wanted.map((name) => (name === undefined ? undefined : propertyType(stream.properties[name])));
  const labels = wanted
    // Stryker disable next-line ConditionalExpression: the label of a hidden column is never written
    .map((name) => (name === undefined ? '' : `,${JSON.stringify(name)}:`))
    .map((l) => encoder.encode(l));
  return {
    name: stream.name,
    kinds: Uint8Array.from(types, kindOf),
    zoned: Uint8Array.from(types, (type) => (type?.zoned ? 1 : 0)),
    labels: joined(labels),
    labelOffsets: offsetsOf(labels),
    fields: names.map((name) => JSON.stringify(name ?? '')),
    sources: header.map((name) => JSON.stringify(name)),
    key: stream.name !== 'event_logs' && isWanted(stream, KEY),
    rescued: Object.hasOwn(stream.properties, RESCUED),
    position: stream.name === 'event_items' && isWanted(stream, ITEM_POSITION),
    unsent: names.filter((name): name is string => name !== undefined && !isWanted(stream, name)),
    placeholder: placeholderOf(stream),
  };
}

function kindOf(wanted: PropertyType | undefined): number {
  if (wanted === undefined) return HIDDEN;
  return wanted.type === undefined ? UNFIT : COLUMN_TYPES.indexOf(wanted.type) + 1;
}

function isWanted(stream: RecordStream, name: string): boolean {
  return Object.hasOwn(stream.properties, name) || stream.keys.includes(name);
}

function placeholderOf(stream: RecordStream): string {
  const [first] = [...Object.keys(stream.properties), ...stream.keys, KEY];
  return `,${JSON.stringify(first)}:null`;
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

function offsetsOf(parts: readonly Uint8Array[]): Int32Array {
  const offsets = new Int32Array(parts.length + 1);
  parts.forEach((part, i) => {
    offsets[i + 1] = offsets[i] + part.length;
  });
  return offsets;
}
