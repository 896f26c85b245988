// This folder: from the CSV files of days to typed rows with keys, as SQL. It also checks and counts stored rows. All
// targets store what `typedRows` of this file gives. `files-query.ts` has the query of files with one header,
// `csv-sql.ts` the SQL that reads files and their cells.

import { groupBy } from '../../base/group.ts';
import { identifier } from '../../base/sql.ts';
import type { DuckDbColumn } from '../../cells/types/duckdb-types.ts';
import type { Zone } from '../../cells/types/zone.ts';
import { type CheckedDay, mayHaveDuplicateIds, type SpoolFile } from '../../extract/checked-day.ts';
import type { PlannedBatch } from '../../table/batch-plan.ts';
import { type StoredColumn, typedColumns } from '../../table/tables.ts';
import { castToTypeSql } from '../column-sql.ts';
import type { Engine } from '../session/engine.ts';
import { MisreadFileError } from '../session/engine-errors.ts';
import { type FileOfDay, filesQuery, queryKeyOf, type TypedRows } from './files-query.ts';

/** Number of rows of these files. */
export const sumRows = (files: readonly SpoolFile[]): number => files.reduce((sum, { rows }) => sum + rows, 0);

/** Throws unless all rows of the files were stored. Whoever stores typed rows calls it. */
export function checkStored({ files }: TypedRows, storedRows: number): void {
  const expectedRows = sumRows(files);
  if (storedRows === expectedRows) return;
  const days = [...new Set(files.map(({ receipt }) => receipt.day))].join(', ');
  throw new MisreadFileError(
    `${expectedRows} rows of ${days} came to ${storedRows}: nothing was kept. Please report it.`,
  );
}

/**
 * Gives the typed rows of a batch, inside a transaction. Each query must be run before the next one is taken. The first
 * has all days whose ids are their keys, since each statement takes blocks for every column. Each other day has a query
 * of its own. Days without rows have none.
 */
export async function* typedRows(
  engine: Engine,
  batch: Pick<PlannedBatch, 'table' | 'columns' | 'days'>,
  zone: Zone | undefined,
): AsyncGenerator<TypedRows> {
  const daysWithRows = batch.days.filter(({ files }) => sumRows(files) > 0);
  const daysWithIds = daysWithRows.filter((day) => !mayHaveDuplicateIds(day));
  if (daysWithIds.length > 0) {
    const filesAlike = groupBy(daysWithIds.flatMap(filesOf), (file) => queryKeyOf(file, batch.columns, zone)).values();
    yield unionOfQueries([...filesAlike].map((files) => filesQuery(files, batch, zone)));
  }
  for (const day of daysWithRows.filter(mayHaveDuplicateIds)) {
    await engine.keepOrder();
    const rows = unionOfQueries(filesOf(day).map((file) => filesQuery([file], batch, zone)));
    yield { ...rows, sql: await numberRepeatedIds(engine, rows.sql) };
    for (const table of [STAGE, KEYS]) await engine.run(`DROP TABLE ${table}`);
  }
}

const filesOf = ({ files, receipt }: CheckedDay): FileOfDay[] => files.map((file) => ({ ...file, receipt }));

function unionOfQueries(queries: readonly TypedRows[]): TypedRows {
  const columns = new Map(queries.flatMap((query) => query.columns).map((column) => [column.position, column]));
  return {
    sql: queries.map(({ sql }) => sql).join(' UNION ALL BY NAME '),
    columns: [...columns.values()],
    files: queries.flatMap(({ files }) => files),
  };
}

/** Temporary table: the rows of a day in their order, with their ids as keys. */
const STAGE = '_dfinery_stage';
/**
 * Temporary table: the keys of the rows whose id an earlier row has. `ref` is the `rowid` in the stage.
 *
 *     ref  key
 *     23   a#2
 */
const KEYS = '_dfinery_keys';

/** Makes both temporary tables of the rows of a day. Gives the query of these rows, with repeated ids numbered. */
async function numberRepeatedIds(engine: Engine, rowsSql: string): Promise<string> {
  await engine.run(`CREATE OR REPLACE TEMP TABLE ${STAGE} AS ${rowsSql}`);
  await engine.run(`
    CREATE OR REPLACE TEMP TABLE ${KEYS} AS
    SELECT rowid AS ref, _key || '#' || row_number() OVER (PARTITION BY _key ORDER BY rowid) AS key
    FROM ${STAGE}
    WHERE _key IN (SELECT _key FROM ${STAGE} GROUP BY _key HAVING count(*) > 1)
    QUALIFY row_number() OVER (PARTITION BY _key ORDER BY rowid) > 1`);
  return `
    SELECT s.* REPLACE (coalesce(k.key, s._key) AS _key)
    FROM ${STAGE} s LEFT JOIN ${KEYS} k ON s.rowid = k.ref
    ORDER BY s.rowid`;
}

/** The SELECT of typed rows: the program's columns as asked for, then each typed one of `columns` in its type. */
export function selectRowsSql(
  rows: TypedRows,
  columns: readonly StoredColumn[],
  programColumns: readonly DuckDbColumn[],
  zone: Zone | undefined,
): string {
  const filled = new Set(rows.columns.map(({ position }) => position));
  const select = [
    // A TIMESTAMP in UTC where the place has instants.
    ...programColumns.map(({ name, type }) => (type === 'TIMESTAMPTZ' ? `timezone('UTC', ${name}) AS ${name}` : name)),
    ...typedColumns(columns).map(({ name, position, type }) => {
      const value = filled.has(position) ? identifier(name) : 'NULL';
      return `${castToTypeSql(value, type, zone)} AS ${identifier(name)}`;
    }),
  ];
  return `SELECT ${select.join(', ')} FROM (${rows.sql})`;
}
