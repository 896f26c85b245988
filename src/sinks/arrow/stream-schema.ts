import {
  Bool,
  type DataType,
  DateDay,
  Field,
  Float64,
  Int64,
  List,
  Schema,
  TimestampMicrosecond,
  Utf8,
} from 'apache-arrow';
import type { Typed } from '../../table/columns.ts';
import type { ArrowType } from '../../types/codec.ts';
import { TYPES } from '../../types/index.ts';

/** The schema of a stream: `_key`, the columns of the export in their order, `_rescued`. */
export function streamSchema(columns: readonly Typed[], asInstants: boolean, version: string): Schema {
  const fields = columns.map(({ name, source, group, type }) => {
    return new Field(
      name,
      dataType(TYPES[type].arrow(asInstants)),
      true,
      new Map(Object.entries({ source, group, type })),
    );
  });
  const all = [new Field('_key', new Utf8(), true), ...fields, new Field('_rescued', new Utf8(), true)];
  return new Schema(all, new Map([['dfinery.version', version]]));
}

function dataType(type: ArrowType): DataType {
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
      return new List(new Field('item', dataType(type.item), true));
  }
}
