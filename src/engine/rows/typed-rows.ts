// This folder: from the CSV files of days to typed rows with keys, as SQL, and counts of stored rows. All targets store
// what `withTypedRows` of this file gives. `files-query.ts` reads files with one header, `numbered-rows.ts` a day whose
// rows have to be numbered first. `csv-sql.ts` has the SQL of a file and of a cell.

import { identifier, varcharSql } from '../../base/sql.ts';
import { zoneOf } from '../../cells/types/zone.ts';
import { mayHaveDuplicateIds } from '../../extract/checked-day.ts';
import type { PlannedBatch, PlannedDay } from '../../table/batch-plan.ts';
import { OWN_COLUMNS } from '../../table/names.ts';
import { typedColumns } from '../../table/tables.ts';
import { castToColumnSql, type DescribedColumn } from '../conversions.ts';
import type { Engine } from '../session/engine.ts';
import { MisreadFile } from '../session/faults.ts';
import { filesOf, filesQuery, groupAlike, sumRows, type TypedRows } from './files-query.ts';
import { withNumberedRows } from './numbered-rows.ts';

/** Rows that the files of these days have. */
export const rowsIn = (days: readonly PlannedDay[]): number => sumRows(days.flatMap(({ download }) => download.files));

/** Throws unless as many rows were stored as the files of these days have. `place` is where they were to be stored. */
export function checkRowCount(days: readonly PlannedDay[], stored: number, place: string): void {
  const rows = rowsIn(days);
  if (stored === rows) return;
  const dayNames = days.map(({ download }) => download.receipt.day);
  throw new MisreadFile(
    `${rows} rows of ${dayNames.join(', ')} came to ${stored}: nothing was kept. Please report it.`,
    {
      where: { file: place },
    },
  );
}

/**
 * Calls `store` with typed rows of days, inside a transaction. Days whose ids are their keys come in one call, since
 * each statement takes blocks for every column. Each other day has a call of its own. Days without rows have none.
 */
export async function withTypedRows(
  engine: Engine,
  batch: PlannedBatch,
  days: readonly PlannedDay[],
  store: (rows: TypedRows) => Promise<void>,
): Promise<void> {
  const daysWithRows = days.filter((day) => rowsIn([day]) > 0);
  const needsNumbers = ({ download }: PlannedDay) => mayHaveDuplicateIds(download);
  const files = daysWithRows.filter((day) => !needsNumbers(day)).flatMap(filesOf);
  const queries = groupAlike(batch, files).map((alike) => filesQuery(batch, alike));
  if (queries.length > 0) await store(unionOf(queries));
  for (const day of daysWithRows.filter(needsNumbers)) await withNumberedRows(engine, batch, day, store);
}

/** The SELECT of typed rows: own columns as asked for, then each typed column of the batch in its type. */
export function selectRowsSql(
  { from, ownSql, columns, values }: TypedRows,
  batch: PlannedBatch,
  ownColumns: readonly DescribedColumn[],
): string {
  const zone = zoneOf(batch.timezone);
  const sqlOf: Readonly<Record<string, string>> = { ...ownSql, _rescued: varcharSql(ownSql._rescued) };
  const valueByKey = new Map(columns.map((column, i) => [column.key, values[i]]));
  const select = [
    ...ownColumns.map(({ name, type }) => {
      // A TIMESTAMP in UTC where the place has instants.
      const value = type === 'TIMESTAMPTZ' ? `timezone('UTC', ${sqlOf[name]})` : sqlOf[name];
      return `${value} AS ${name}`;
    }),
    ...typedColumns(batch.columns).map((column) => {
      const value = castToColumnSql(valueByKey.get(column.key) ?? 'NULL', column.type, zone);
      return `${value} AS ${identifier(column.name)}`;
    }),
  ];
  return `SELECT ${select.join(', ')} FROM ${from}`;
}

/** The typed rows of several queries as those of one. */
function unionOf(queries: readonly TypedRows[]): TypedRows {
  if (queries.length === 1) return queries[0];
  const columns = [...new Map(queries.flatMap((rows) => rows.columns).map((column) => [column.key, column])).values()];
  const selects = queries.map((rows) => {
    const valueColumns = rows.columns.map(({ name }, i) => `${rows.values[i]} AS ${identifier(name)}`);
    const ownColumns = OWN_COLUMNS.map((name) => `${rows.ownSql[name]} AS ${name}`);
    return `SELECT ${[...ownColumns, ...valueColumns].join(', ')} FROM ${rows.from}`;
  });
  return {
    from: `(${selects.join(' UNION ALL BY NAME ')})`,
    ownSql: { _key: '_key', event_date: 'event_date', _rescued: '_rescued', _loaded_at: '_loaded_at' },
    columns,
    values: columns.map(({ name }) => identifier(name)),
    days: queries.flatMap(({ days }) => days),
  };
}
