import { groupBy } from '../../base/group.ts';
import { EVENT_NAME, SERVER_DATETIME } from '../../schema/groups.ts';
import { isTyped, type StoredColumn, type TableName, typedColumns } from '../../table/columns.ts';
import { OWN_COLUMNS } from '../../table/names.ts';
import { isRetyped, type PlannedColumn } from '../../table/plan.ts';
import type { TableState } from '../../table/state.ts';
import { TYPES } from '../../types/index.ts';
import { type Zone, zoneOf } from '../../types/zone.ts';
import { castToColumn, type DescribedColumn, describe, rescuedAfter, typedNull, valueAfter } from '../sql/columns.ts';
import type { Engine } from '../sql/engine/engine.ts';
import { identifier } from '../sql/engine/quote.ts';
import { eventItems, eventLogs } from '../sql/views.ts';
import { copiesOf } from './file-table.ts';
import type { ReadableFile } from './log.ts';
import { FILE, ROW_GROUP_ROWS, readFiles } from './parquet-file.ts';

const OWN_TYPES = { _key: 'VARCHAR', _dfinery_window: 'BIGINT', _rescued: 'VARCHAR' } as const;

/** All columns of a file of `events` that has these columns of the export, in their order; the column of the date is not among them. */
export const eventColumns = (columns: readonly StoredColumn[], zone: Zone | undefined): DescribedColumn[] => [
  ...OWN_COLUMNS.map((name) => ({ name, type: OWN_TYPES[name] })),
  ...typedColumns(columns).map(({ name, type }) => ({ name, type: TYPES[type].duckdb(zone !== undefined) })),
];

/** All columns that a table's files can have, in their order; that of the date is not among them. */
export async function describeTable(
  engine: Engine,
  table: TableName,
  { columns, timezone }: Pick<TableState, 'columns' | 'timezone'>,
): Promise<DescribedColumn[]> {
  const zone = zoneOf(timezone);
  const events = eventColumns(columns, zone);
  if (table === 'events') return events;
  const nulls = events.map(({ name, type }) => `CAST(NULL AS ${type}) AS ${identifier(name)}`);
  const [typed, from] = [typedColumns(columns), `(SELECT ${nulls.join(', ')})`];
  return describe(engine, table === 'event_items' ? eventItems(typed, from) : eventLogs(typed, from));
}

/** The names of the columns of a file of `events`. */
export function namesOf(columns: readonly StoredColumn[]): Set<string> {
  return new Set([...OWN_COLUMNS, ...typedColumns(columns).map(({ name }) => name)]);
}

/** The columns among all that a file has. */
export function columnsIn<C extends StoredColumn>(all: readonly C[], names: ReadonlySet<string>): C[] {
  return all.filter((column) => isTyped(column) && names.has(column.name));
}

/**
 * A select list of the columns of a stored file of `events` after a plan; NULL for a column that the file lacks.
 * `columns` are those of the new file, in their order.
 */
export function selectAfter(
  columns: readonly PlannedColumn[],
  names: ReadonlySet<string>,
  zone: Zone | undefined,
): string {
  const values = columns.filter(isTyped).map((column) => {
    const name = identifier(column.name);
    if (!names.has(column.name)) return `${typedNull(column.type, zone)} AS ${name}`;
    return isRetyped(column) ? `${castToColumn(valueAfter(column, zone), column.type, zone)} AS ${name}` : name;
  });
  const stored = columns.filter(({ name }) => names.has(name));
  const rescued = rescuedAfter(stored, zone);
  return ['_key', '_dfinery_window', `CAST(${rescued} AS VARCHAR) AS _rescued`, ...values].join(', ');
}

/** A select list of this program's own columns and of unchanged columns, for a file that may lack some of them. */
export function selectOf(
  columns: readonly StoredColumn[],
  names: ReadonlySet<string>,
  zone: Zone | undefined,
  own: readonly string[] = OWN_COLUMNS,
): string {
  const values = typedColumns(columns).map(({ name, type }) =>
    names.has(name) ? identifier(name) : `${typedNull(type, zone)} AS ${identifier(name)}`,
  );
  return [...own, ...values].join(', ');
}

/**
 * A relation of the rows of files of `events`, with these columns, this program's own columns in `own`, and the local
 * path of the row's file; NULL for a column that a file lacks. Undefined if there is no file.
 */
export function eventRows(
  files: readonly ReadableFile[],
  columns: readonly StoredColumn[],
  zone: Zone | undefined,
  own?: readonly string[],
): string | undefined {
  const groups = groupBy(files, (file) => JSON.stringify(columnsIn(columns, file.columns).map(({ name }) => name)));
  const parts = [...groups.values()].map(
    (group) =>
      `SELECT ${selectOf(columns, group[0].columns, zone, own)}, ${FILE} FROM ${readFiles(copiesOf(group), true)}`,
  );
  return parts.length === 0 ? undefined : `(${parts.join(' UNION ALL ')})`;
}

/** The ORDER BY with which filters can skip row groups; empty if one row group holds all rows. */
export function sortedBy(columns: readonly StoredColumn[], rows: number): string {
  const keys = [EVENT_NAME, SERVER_DATETIME].flatMap((source) => {
    const column = columns.find((c) => c.source === source && c.occurrence === 1 && c.type !== null);
    return column === undefined ? [] : identifier(column.name);
  });
  return rows <= ROW_GROUP_ROWS || keys.length === 0 ? '' : `ORDER BY ${keys.join(', ')}`;
}
