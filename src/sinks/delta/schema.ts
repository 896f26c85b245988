import type { TableName } from '../../table/columns.ts';
import type { TableState } from '../../table/state.ts';
import { DUCKDB_SCALARS, type DuckDbType } from '../../types/codec.ts';
import { describeTable } from '../files/columns.ts';
import { PARTITION } from '../files/parquet-file.ts';
import { scalarOf } from '../sql/columns.ts';
import type { Engine } from '../sql/engine/engine.ts';
import { parseJson } from './protocol/entry.ts';

type DeltaType = string | { readonly type: 'array'; readonly elementType: string; readonly containsNull: true };

/** A column of a table: its name and its type as the log writes it. */
export interface DeltaField {
  readonly name: string;
  readonly type: DeltaType;
}

/** Characters that readers refuse in a column's name. */
const REFUSED = /[ ,;{}()\n\t=]/g;

/** A column's name as every reader of Delta takes it, before it is told apart from others (S43). */
export const readableName = (source: string): string => source.replaceAll(REFUSED, '_');

/** The columns that a table's files can have, in order; the partition's column is not among them. */
export async function fieldsOf(engine: Engine, table: TableName, state: TableState): Promise<DeltaField[]> {
  const described = await describeTable(engine, table, state);
  return described.map(({ name, type }) => ({ name, type: deltaType(type) }));
}

function deltaType(type: DuckDbType): DeltaType {
  const { scalar, isList } = scalarOf(type);
  const { delta } = DUCKDB_SCALARS[scalar];
  return isList ? { type: 'array', elementType: delta, containsNull: true } : delta;
}

/** The schema as `metaData` holds it. */
export function schemaString(fields: readonly DeltaField[]): string {
  const all = [...fields, { name: PARTITION, type: 'date' }];
  return JSON.stringify({
    type: 'struct',
    fields: all.map(({ name, type }) => ({ name, type, nullable: true, metadata: {} })),
  });
}

/** The columns of a schema that a log holds; empty if it has none. Throws UserError for a text that is no schema. */
export function fieldsIn(text: string | undefined, place: string): readonly DeltaField[] {
  const value = parseJson(text ?? '{}', place) as { readonly fields?: readonly DeltaField[] } | null;
  return value?.fields ?? [];
}
