import { isRetyped, isWidening, type PlannedColumn, type Retyped } from '../../table/plan.ts';
import type { DuckDbScalar, DuckDbType } from '../../types/codec.ts';
import { sqlWiden, TYPES } from '../../types/index.ts';
import type { ColumnType } from '../../types/type.ts';
import type { Zone } from '../../types/zone.ts';
import type { Engine } from './engine/engine.ts';
import { anyOf, identifier, jsonMember } from './engine/quote.ts';
import { rescueKey } from './rows/cells.ts';

/** A NULL of a column's type, as SQL. */
export const typedNull = (type: ColumnType, zone: Zone | undefined): string => castTo('NULL', type, zone);

/** A value in a column's own type: files keep the type that a query gives, and all files of a dataset have one. */
export const castTo = (value: string, type: ColumnType, zone: Zone | undefined): string =>
  `CAST(${value} AS ${TYPES[type].duckdb(zone !== undefined)})`;

/** The value of a stored column as a plan has it, from what is stored. */
export function valueAfter(column: PlannedColumn, zone: Zone | undefined): string {
  const name = identifier(column.name);
  if (!isRetyped(column)) return name;
  if (isWidening(column, zone !== undefined)) return sqlWiden(name, column.before, column.type, zone);
  return TYPES[column.type].sql(textBefore(column, zone), zone);
}

/** What is stored, as text that any type it could have had before takes: `5`, not `5.0`; a midnight as its date. */
const textBefore = ({ name, before }: Retyped, zone: Zone | undefined): string =>
  sqlWiden(identifier(name), before, 'string', zone);

/** `_rescued` of a stored row with what those of these columns that a plan narrows no longer hold. */
export function rescuedAfter(columns: readonly PlannedColumn[], zone: Zone | undefined): string {
  const losses = columns.filter(isRetyped).flatMap((column) => {
    if (isWidening(column, zone !== undefined)) return [];
    const text = textBefore(column, zone);
    const condition = `NOT ${TYPES[column.type].sqlFits(text, zone)}`;
    return { condition, member: jsonMember(rescueKey(column), text, condition) };
  });
  if (losses.length === 0) return '_rescued';
  const stored = 'CAST(_rescued AS VARCHAR)';
  const members = [`nullif(substr(${stored}, 2, length(${stored}) - 2), '')`, ...losses.map(({ member }) => member)];
  const isLoss = anyOf(losses.map(({ condition }) => condition));
  return `CASE WHEN ${isLoss} THEN '{' || concat_ws(',', ${members.join(', ')}) || '}' ELSE _rescued END`;
}

/** A type as DuckDB's queries describe it, by its name in `src/types`. */
export function shortName(described: string): string {
  return described.replace(/^TIMESTAMP WITH TIME ZONE/, 'TIMESTAMPTZ');
}

/** A column of a query whose every value has a type of `src/types`, or is JSON text. */
export interface DescribedColumn {
  readonly name: string;
  readonly type: DuckDbType;
}

/** The columns of such a query. */
export async function describe(engine: Pick<Engine, 'rows'>, query: string): Promise<DescribedColumn[]> {
  const rows = await engine.rows(`DESCRIBE ${query}`);
  return rows.map(({ column_name: name, column_type: described }) => {
    const type = described === 'JSON' ? 'VARCHAR' : (shortName(String(described)) as DuckDbType);
    return { name: String(name), type };
  });
}

/** The scalar type of a column or of its elements. */
export function scalarOf(type: DuckDbType): { readonly scalar: DuckDbScalar; readonly isList: boolean } {
  return { scalar: type.replace(/\[\]$/, '') as DuckDbScalar, isList: type.endsWith('[]') };
}
