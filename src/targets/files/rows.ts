import type { Day } from '../../base/days.ts';
import { identifier } from '../../cells/types/sql.ts';
import { COLUMN_TYPES, type ColumnType, type DuckDbType } from '../../cells/types/type.ts';
import { sqlWiden, TYPES } from '../../cells/types/types.ts';
import { zoneOf } from '../../cells/types/zone.ts';
import { castToColumn, type DescribedColumn, describe } from '../../engine/conversions.ts';
import type { Engine } from '../../engine/session/engine.ts';
import type { TableState } from '../../table/place-state.ts';
import { typedColumns } from '../../table/tables.ts';
import { readParquet } from './parquet-file.ts';

export const PARTITION_COLUMN = 'event_date';
/** The columns of this program that a file has; `event_date` is its partition. */
const FILE_COLUMNS = ['_key', '_rescued', '_loaded_at'] as const;

/** The folder of a day, from the root of the storage. */
export const dayFolder = (day: Day): string => `events/${PARTITION_COLUMN}=${day}`;

/** All columns that a file can have, in their order, with their types. `loadedAt`: the type of `_loaded_at`. */
export const columnsOfFiles = (
  { columns, timezone }: Pick<TableState, 'columns' | 'timezone'>,
  loadedAt: DuckDbType = 'TIMESTAMP',
): DescribedColumn[] => [
  { name: '_key', type: 'VARCHAR' },
  { name: '_rescued', type: 'VARCHAR' },
  { name: '_loaded_at', type: loadedAt },
  ...typedColumns(columns).map(({ name, type }) => ({ name, type: TYPES[type].duckdb(timezone !== null) })),
];

/** The columns of a Parquet file, as they are in it. */
export const describeFile = (engine: Engine, path: string): Promise<DescribedColumn[]> =>
  describe(engine, `SELECT * FROM ${readParquet([path])}`);

/**
 * The SELECT of the rows of a file, with all columns of a state in their types: a value of an earlier, narrower type is
 * widened, and a column that the file lacks is NULL. `found`: the columns in the file.
 */
export function selectConformed(
  path: string,
  found: readonly DescribedColumn[],
  { columns, timezone }: Pick<TableState, 'columns' | 'timezone'>,
): string {
  const zone = zoneOf(timezone);
  const types = new Map(found.map(({ name, type }) => [name, typeStoredAs(type)]));
  const values = typedColumns(columns).map(({ name, type }) => {
    const before = types.get(name);
    const value = before === undefined ? 'NULL' : sqlWiden(identifier(name), before, type, zone);
    return `${castToColumn(value, type, zone)} AS ${identifier(name)}`;
  });
  return `SELECT ${[...FILE_COLUMNS, ...values].join(', ')} FROM ${readParquet([path])}`;
}

/** The type of a column by that in its file. */
function typeStoredAs(stored: string): ColumnType | undefined {
  return COLUMN_TYPES.find((type) => [true, false].some((asInstants) => TYPES[type].duckdb(asInstants) === stored));
}
