import { groupBy } from '../../base/group.ts';
import { EVENT_NAME, SERVER_DATETIME } from '../../cells/columns/groups.ts';
import { TYPES } from '../../cells/types/index.ts';
import { asText } from '../../cells/types/sql.ts';
import { type Zone, zoneOf } from '../../cells/types/zone.ts';
import { castToColumn, type DescribedColumn, describe, rescuedAfter, valueAfter } from '../../engine/conversions.ts';
import type { Engine } from '../../engine/session/engine.ts';
import { identifier } from '../../engine/session/quote.ts';
import { eventItems, eventLogs } from '../../engine/views.ts';
import { isTyped, type StoredColumn, type TableName, type Typed, typedColumns } from '../../table/columns.ts';
import { OWN_COLUMNS } from '../../table/names.ts';
import { isRetyped, type PlannedColumn } from '../../table/plan.ts';
import type { TableState } from '../../table/state.ts';
import type { ReadableFile } from './data-file.ts';
import { copiesOf } from './file-table.ts';
import { FILE, ROW_GROUP_ROWS, readFiles, readFilesWithPaths, schemaNames } from './parquet-file.ts';

/** The types of this program's own columns in files of `events`: `_rescued` is text there. */
const OWN_TYPES_IN_FILES = { _key: 'VARCHAR', _dfinery_window: 'BIGINT', _rescued: 'VARCHAR' } as const;

/**
 * All columns of a file of `events` that has these columns of the export, in their order; the column of the date is not
 * among them.
 */
export const eventColumns = (columns: readonly StoredColumn[], zone: Zone | undefined): DescribedColumn[] => [
  ...OWN_COLUMNS.map((name) => ({ name, type: OWN_TYPES_IN_FILES[name] })),
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

/**
 * The files, each also with those of the `wanted` columns that it has and its log does not name: another program may
 * have written statistics anew, of only some columns, and rows must neither be missed nor lose values for that.
 */
export async function withUnloggedColumns<F extends ReadableFile>(
  engine: Engine,
  files: readonly F[],
  wanted: readonly StoredColumn[],
): Promise<F[]> {
  const names = typedColumns(wanted).map(({ name }) => name);
  const unnamed = names.filter((name) => files.some(({ columns }) => !columns.has(name)));
  const lacking = files.filter(({ columns }) => unnamed.some((name) => !columns.has(name)));
  const footers = await schemaNames(engine, copiesOf(lacking), unnamed);
  const out: F[] = [];
  for (const file of files) {
    const found = (footers.get(file.copy) ?? []).filter((name) => !file.columns.has(name));
    // A list may have a part of that name, which is no column.
    const own = found.length === 0 ? [] : await describe(engine, `SELECT * FROM ${readFiles([file.copy])}`);
    const unlogged = own.map(({ name }) => name).filter((name) => found.includes(name));
    out.push(unlogged.length === 0 ? file : { ...file, columns: new Set([...file.columns, ...unlogged]) });
  }
  return out;
}

export function columnsIn<C extends StoredColumn>(all: readonly C[], names: ReadonlySet<string>): C[] {
  return all.filter((column) => isTyped(column) && names.has(column.name));
}

/** A select list of a file that may lack columns, for a new file with `columns` after this program's own. */
export const selectOf = (
  columns: readonly StoredColumn[],
  names: ReadonlySet<string>,
  zone: Zone | undefined,
  own: readonly string[] = OWN_COLUMNS,
): string => [...own, ...valuesOf(columns, names, zone)].join(', ');

/** SQL of the values of columns, each under its name; `sqlOf` gives that of a column which the file has. */
function valuesOf<C extends StoredColumn>(
  columns: readonly C[],
  names: ReadonlySet<string>,
  zone: Zone | undefined,
  sqlOf = ({ name }: Typed<C>) => identifier(name),
): string[] {
  return typedColumns(columns).map((column) => {
    const value = names.has(column.name) ? sqlOf(column) : castToColumn('NULL', column.type, zone);
    return `${value} AS ${identifier(column.name)}`;
  });
}

/** A select list of a stored file after a plan, with the values that the plan makes of the stored ones. */
export function selectAfter(columns: readonly PlannedColumn[], names: ReadonlySet<string>, zone: Zone | undefined) {
  const stored = columns.filter(({ name }) => names.has(name));
  const own = ['_key', '_dfinery_window', `${asText(rescuedAfter(stored, zone))} AS _rescued`];
  const sqlOf = (column: Typed<PlannedColumn>) =>
    isRetyped(column) ? castToColumn(valueAfter(column, zone), column.type, zone) : identifier(column.name);
  return [...own, ...valuesOf(columns, names, zone, sqlOf)].join(', ');
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
      `SELECT ${selectOf(columns, group[0].columns, zone, own)}, ${FILE} FROM ${readFilesWithPaths(copiesOf(group))}`,
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
