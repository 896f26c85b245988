import { DUCKDB_SCALARS } from '../../../cells/types/type.ts';
import { type DescribedColumn, scalarOf } from '../../../engine/conversions.ts';
import type { Engine } from '../../../engine/session/engine.ts';
import type { TableName } from '../../../table/columns.ts';
import type { TableState } from '../../../table/state.ts';
import type { Field, IdentifiedColumn } from '../../files/field-ids.ts';
import { describeTable } from '../../files/file-columns.ts';
import { PARTITION_COLUMN } from '../../files/parquet-file.ts';

export const sameType = (field: Field, column: IdentifiedColumn | undefined): boolean =>
  column?.type === field.type && column.element?.type === field.element;

const DUCKDB_TYPES = new Map<string, string>(
  Object.entries(DUCKDB_SCALARS).map(([duckdb, { ducklake }]) => [ducklake, duckdb]),
);

export const duckDbType = ({ type, element }: Omit<Field, 'name'>): string =>
  element === undefined ? (DUCKDB_TYPES.get(type) ?? type) : `${duckDbType({ type: element })}[]`;

export function fieldOf({ name, type }: DescribedColumn): Field {
  const { scalar, isList } = scalarOf(type);
  const { ducklake } = DUCKDB_SCALARS[scalar];
  return isList ? { name, type: 'list', element: ducklake } : { name, type: ducklake };
}

/** The columns that a table's files can have, in their order, that of the partition included. */
export async function fieldsOf(engine: Engine, table: TableName, state: TableState): Promise<Field[]> {
  const fields = await describeTable(engine, table, state);
  return [...fields.map(fieldOf), { name: PARTITION_COLUMN, type: 'date' }];
}
