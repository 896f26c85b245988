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
import type { DuckDbScalar, DuckDbType } from '../../types/codec.ts';
import { TYPES } from '../../types/index.ts';
import { scalarOf } from '../sql/columns.ts';

/** The schema of a stream: `_key`, the columns of the export in their order, `_rescued`. */
export function streamSchema(columns: readonly Typed[], asInstants: boolean, version: string): Schema {
  const fields = columns.map(({ name, source, group, type }) => {
    return new Field(
      name,
      dataType(TYPES[type].duckdb(asInstants)),
      true,
      new Map(Object.entries({ source, group, type })),
    );
  });
  const all = [new Field('_key', new Utf8(), true), ...fields, new Field('_rescued', new Utf8(), true)];
  return new Schema(all, new Map([['dfinery.version', version]]));
}

/** DuckDB's types in Arrow's classes. */
const ARROW: Readonly<Record<DuckDbScalar, DataType>> = {
  BOOLEAN: new Bool(),
  BIGINT: new Int64(),
  DOUBLE: new Float64(),
  DATE: new DateDay(),
  TIMESTAMP: new TimestampMicrosecond(),
  TIMESTAMPTZ: new TimestampMicrosecond('UTC'),
  VARCHAR: new Utf8(),
};

function dataType(type: DuckDbType): DataType {
  const { scalar, isList } = scalarOf(type);
  return isList ? new List(new Field('item', ARROW[scalar], true)) : ARROW[scalar];
}
