import {
  Bool,
  type DataType,
  DateDay,
  Dictionary,
  Field,
  Float64,
  Int32,
  Int64,
  List,
  Schema,
  TimestampMicrosecond,
  Utf8,
} from 'apache-arrow';
import { EVENT_NAME } from '../../schema/groups.ts';
import type { Typed } from '../../table/columns.ts';
import type { ArrowType } from '../../types/face.ts';
import { TYPES } from '../../types/index.ts';
import type { StreamColumn } from './build/task.ts';

/** The columns of the export in a stream, as their builders know them. Few distinct texts are sent as a dictionary. */
export function streamColumns(columns: readonly Typed[]): StreamColumn[] {
  return columns.map(({ source, occurrence, type }) => ({
    type,
    isDictionary: source === EVENT_NAME && occurrence === 1 && type === 'string',
  }));
}

/** The schema of a stream: `_key`, the columns of the export in their order, `_rescued`. */
export function streamSchema(columns: readonly Typed[], zoned: boolean, version: string): Schema {
  const built = streamColumns(columns);
  const fields = columns.map(({ name, source, group, type }, i) => {
    const arrow = built[i].isDictionary ? new Dictionary(new Utf8(), new Int32(), 0) : typeOf(TYPES[type].arrow(zoned));
    return new Field(name, arrow, true, new Map(Object.entries({ source, group, type })));
  });
  const all = [new Field('_key', new Utf8(), true), ...fields, new Field('_rescued', new Utf8(), true)];
  return new Schema(all, new Map([['dfinery.version', version]]));
}

function typeOf(type: ArrowType): DataType {
  switch (type.kind) {
    case 'bool':
      return new Bool();
    case 'int64':
      return new Int64();
    case 'float64':
      return new Float64();
    case 'date32':
      return new DateDay();
    case 'timestamp':
      return new TimestampMicrosecond(type.timezone);
    case 'utf8':
      return new Utf8();
    case 'list':
      return new List(new Field('item', typeOf(type.item), true));
  }
}
