import { sqlWiden, TYPES } from '../cells/types/index.ts';
import { asText } from '../cells/types/sql.ts';
import type { ColumnType, DuckDbScalar, DuckDbType } from '../cells/types/type.ts';
import type { Zone } from '../cells/types/zone.ts';
import { isRetyped, isWidening, type PlannedColumn, type Retyped } from '../table/plan.ts';
import { rescueKey } from './rows/cells.ts';
import type { Engine } from './session/engine.ts';
import { anyOf, identifier, jsonMember } from './session/quote.ts';

/** SQL of a value in a column's own type, which a file of a dataset must have. */
export const castToColumn = (value: string, type: ColumnType, zone: Zone | undefined): string =>
  `CAST(${value} AS ${TYPES[type].duckdb(zone !== undefined)})`;

/** SQL of the value of a stored column after a plan, from the stored value. */
export function valueAfter(column: PlannedColumn, zone: Zone | undefined): string {
  const name = identifier(column.name);
  if (!isRetyped(column)) return name;
  if (isWidening(column, zone !== undefined)) return sqlWiden(name, column.before, column.type, zone);
  return TYPES[column.type].sql(textBefore(column, zone), zone);
}

/** SQL of the stored value as a text that any earlier type of it accepts: `5`, not `5.0`; a midnight as its date. */
const textBefore = ({ name, before }: Retyped, zone: Zone | undefined): string =>
  sqlWiden(identifier(name), before, 'string', zone);

/** SQL of `_rescued` of a stored row after a plan, with the values that the plan's narrower types do not hold. */
export function rescuedAfter(columns: readonly PlannedColumn[], zone: Zone | undefined): string {
  const losses = columns.filter(isRetyped).flatMap((column) => {
    if (isWidening(column, zone !== undefined)) return [];
    const text = textBefore(column, zone);
    const condition = `NOT ${TYPES[column.type].sqlFits(text, zone)}`;
    return { condition, member: jsonMember(rescueKey(column), text, condition) };
  });
  if (losses.length === 0) return '_rescued';
  const stored = asText('_rescued');
  const members = [`nullif(substr(${stored}, 2, length(${stored}) - 2), '')`, ...losses.map(({ member }) => member)];
  const isLoss = anyOf(losses.map(({ condition }) => condition));
  return `CASE WHEN ${isLoss} THEN '{' || concat_ws(',', ${members.join(', ')}) || '}' ELSE _rescued END`;
}

/** The name of a described type in `src/types`. */
export const shortName = (described: unknown): string =>
  String(described).replace(/^TIMESTAMP WITH TIME ZONE/, 'TIMESTAMPTZ');

/** A column of a query, all of whose values have a type of `src/types` or are JSON text. */
export interface DescribedColumn {
  readonly name: string;
  readonly type: DuckDbType;
}

export async function describe(engine: Pick<Engine, 'rows'>, query: string): Promise<DescribedColumn[]> {
  const rows = await engine.rows(`DESCRIBE ${query}`);
  return rows.map(({ column_name: name, column_type: described }) => {
    const type = described === 'JSON' ? 'VARCHAR' : shortName(described);
    return { name: String(name), type: type as DuckDbType };
  });
}

export function scalarOf(type: DuckDbType): { readonly scalar: DuckDbScalar; readonly isList: boolean } {
  return { scalar: type.replace(/\[\]$/, '') as DuckDbScalar, isList: type.endsWith('[]') };
}
