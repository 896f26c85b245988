import { castSql } from '../base/sql.ts';
import type { ColumnType, DuckDbScalar, DuckDbType } from '../cells/types/codec.ts';
import { codecOf } from '../cells/types/types.ts';
import type { Zone } from '../cells/types/zone.ts';
import type { Engine } from './session/engine.ts';

/** SQL of a value in a column's own type, which a file of a dataset must have. */
export const castToColumnSql = (value: string, type: ColumnType, zone: Zone | undefined): string =>
  castSql(value, codecOf(type, zone).duckdb);

/** The name of a described type in `cells/types`. */
export const duckDbTypeOf = (described: unknown): string =>
  String(described).replace(/^TIMESTAMP WITH TIME ZONE/, 'TIMESTAMPTZ');

/** A column of a query, all of whose values have a type of `cells/types` or are JSON text. */
export interface DescribedColumn {
  readonly name: string;
  readonly type: DuckDbType;
}

export async function describe(engine: Pick<Engine, 'rows'>, query: string): Promise<DescribedColumn[]> {
  const rows = await engine.rows(`DESCRIBE ${query}`);
  return rows.map(({ column_name: name, column_type: described }) => {
    const type = described === 'JSON' ? 'VARCHAR' : duckDbTypeOf(described);
    return { name: String(name), type: type as DuckDbType };
  });
}

export function scalarOf(type: DuckDbType): { readonly scalar: DuckDbScalar; readonly isList: boolean } {
  return { scalar: type.replace(/\[\]$/, '') as DuckDbScalar, isList: type.endsWith('[]') };
}
