import type { Day } from '../../base/days.ts';
import { TYPES } from '../../cells/types/index.ts';
import { asText } from '../../cells/types/sql.ts';
import { COLUMN_TYPES, type ColumnType } from '../../cells/types/type.ts';
import { zoneOf } from '../../cells/types/zone.ts';
import { castToColumn, type DescribedColumn, describe, rescuedAfter, valueAfter } from '../../engine/conversions.ts';
import type { Engine } from '../../engine/session/engine.ts';
import { identifier } from '../../engine/session/quote.ts';
import { type StoredColumn, typedColumns } from '../../table/columns.ts';
import type { PlannedColumn } from '../../table/plan.ts';
import type { TableState } from '../../table/state.ts';
import { readParquet } from './parquet-file.ts';

export const PARTITION_COLUMN = 'event_date';
/** The columns of this program that a file has; `event_date` is its partition. */
export const FILE_COLUMNS = ['_key', '_rescued'] as const;

/** The folder of a day, from the root of the storage. */
export const dayFolder = (day: Day): string => `events/${PARTITION_COLUMN}=${day}`;

/** All columns that a file can have, in their order, with their types. */
export const columnsOfFiles = ({ columns, timezone }: Pick<TableState, 'columns' | 'timezone'>): DescribedColumn[] => [
  ...FILE_COLUMNS.map((name) => ({ name, type: 'VARCHAR' as const })),
  ...typedColumns(columns).map(({ name, type }) => ({ name, type: TYPES[type].duckdb(timezone !== null) })),
];

/** The columns of a Parquet file, as they are in it. */
export const describeFile = (engine: Engine, path: string): Promise<DescribedColumn[]> =>
  describe(engine, `SELECT * FROM ${readParquet([path])}`);

/**
 * The SELECT of the rows of a file, with `columns` in their types, whatever types they have in the file; NULL for a
 * column that it lacks. A value that a narrower type does not hold goes to `_rescued`. `found`: the columns in the file.
 */
export function selectConformed(
  path: string,
  found: readonly DescribedColumn[],
  {
    columns,
    timezone,
  }: { readonly columns: readonly (StoredColumn | PlannedColumn)[]; readonly timezone: string | null },
): string {
  const zone = zoneOf(timezone);
  const types = new Map(found.map(({ name, type }) => [name, typeStoredAs(type)]));
  const planned = typedColumns(columns).map((column) => {
    const before = types.get(column.name) ?? null;
    return { ...UNPLANNED, storedEvidence: column.evidence, ...column, before };
  });
  const stored = planned.filter(({ before }) => before !== null);
  const values = planned.map((column) => {
    const value = column.before === null ? 'NULL' : valueAfter(column, zone);
    return `${castToColumn(value, column.type, zone)} AS ${identifier(column.name)}`;
  });
  const own = ['_key', `${asText(rescuedAfter(stored, zone))} AS _rescued`];
  return `SELECT ${[...own, ...values].join(', ')} FROM ${readParquet([path])}`;
}

const UNPLANNED = { key: '', fixed: undefined, isRefused: false, shape: undefined };

/** The type of a column by that in its file. */
function typeStoredAs(stored: string): ColumnType | undefined {
  return COLUMN_TYPES.find((type) => [true, false].some((asInstants) => TYPES[type].duckdb(asInstants) === stored));
}
