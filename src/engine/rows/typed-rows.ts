// This folder: from the CSV files of days to typed rows with keys, as SQL. It also checks and counts stored rows. All
// targets store what `withTypedRows` of this file gives. `files-query.ts` has the query of files with one header,
// `csv-sql.ts` the SQL that reads files and their cells.

import { groupBy } from '../../base/group.ts';
import { identifier } from '../../base/sql.ts';
import type { DuckDbColumn } from '../../cells/types/codec.ts';
import type { ColumnType } from '../../cells/types/column-types.ts';
import { zoneOf } from '../../cells/types/zone.ts';
import { mayHaveDuplicateIds } from '../../extract/checked-day.ts';
import type { PlannedDay, PlannedDays } from '../../table/batch-plan.ts';
import { cellTypeOf } from '../../table/column-type.ts';
import { typedColumns } from '../../table/tables.ts';
import { castToColumnSql } from '../column-sql.ts';
import type { Engine } from '../session/engine.ts';
import { MisreadFileError } from '../session/engine-errors.ts';
import { type FileOfDay, filesQuery, type RowsQuery, sumRows } from './files-query.ts';

/** Rows that the files of these days have. */
export const downloadedRows = (days: readonly PlannedDay[]): number =>
  sumRows(days.flatMap(({ download }) => download.files));

/**
 * Calls `store` with the typed rows of a batch, inside a transaction. It returns how many rows it stored: all, or
 * this throws. Days whose ids are their keys come in one call, since each statement takes blocks for every column.
 * Each other day has a call of its own. Days without rows have none.
 */
export async function withTypedRows(
  engine: Engine,
  batch: PlannedDays,
  store: (rows: RowsQuery) => Promise<number>,
): Promise<void> {
  const checkedStore = async (rows: RowsQuery, rowsDays: readonly PlannedDay[]) => {
    const [expected, stored] = [downloadedRows(rowsDays), await store(rows)];
    if (stored === expected) return;
    const dayNames = rowsDays.map(({ download }) => download.receipt.day).join(', ');
    throw new MisreadFileError(
      `${expected} rows of ${dayNames} came to ${stored}: nothing was kept. Please report it.`,
    );
  };
  const daysWithRows = batch.days.filter((day) => downloadedRows([day]) > 0);
  const daysWithIds = daysWithRows.filter(({ download }) => !mayHaveDuplicateIds(download));
  if (daysWithIds.length > 0) {
    const filesAlike = groupBy(daysWithIds.flatMap(filesOf), (file) => readingOf(batch, file)).values();
    await checkedStore(unionOf([...filesAlike].map((files) => filesQuery(batch, files))), daysWithIds);
  }
  for (const day of daysWithRows.filter(({ download }) => mayHaveDuplicateIds(download))) {
    await checkedStore(await numberedRows(engine, batch, day), [day]);
    for (const table of [STAGE, KEYS]) await engine.run(`DROP TABLE ${table}`);
  }
}

const filesOf = (day: PlannedDay): FileOfDay[] => day.download.files.map((file) => ({ file, day }));

/** What files that one query reads have in common: the header, and as what the texts that are stored are read. */
function readingOf({ columns, timezone }: PlannedDays, { file, day }: FileOfDay): string {
  const readings = columns.flatMap(({ type, position }): (ColumnType | boolean)[] => {
    const { forms, isNullText } = day.columnForms[position];
    // Such cells go to `_rescued`; a file without any goes with every other.
    if (type === null) return [isNullText || forms === 0];
    return type === 'string' ? [cellTypeOf(type, forms, zoneOf(timezone))] : [];
  });
  return JSON.stringify([file.columns.map(({ name }) => name), readings]);
}

function unionOf(queries: readonly RowsQuery[]): RowsQuery {
  const columns = new Map(queries.flatMap((query) => query.columns).map((column) => [column.position, column]));
  return { sql: queries.map(({ sql }) => sql).join(' UNION ALL BY NAME '), columns: [...columns.values()] };
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

/** Makes both temporary tables. The query gives the rows of a day in their order, with repeated ids numbered. */
async function numberedRows(engine: Engine, batch: PlannedDays, day: PlannedDay): Promise<RowsQuery> {
  await engine.keepOrder();
  const { sql, columns } = unionOf(filesOf(day).map((file) => filesQuery(batch, [file])));
  await engine.run(`CREATE OR REPLACE TEMP TABLE ${STAGE} AS ${sql}`);
  await engine.run(`
    CREATE OR REPLACE TEMP TABLE ${KEYS} AS
    SELECT rowid AS ref, _key || '#' || row_number() OVER (PARTITION BY _key ORDER BY rowid) AS key
    FROM ${STAGE}
    WHERE _key IN (SELECT _key FROM ${STAGE} GROUP BY _key HAVING count(*) > 1)
    QUALIFY row_number() OVER (PARTITION BY _key ORDER BY rowid) > 1`);
  const numberedSql = `
    SELECT s.* REPLACE (coalesce(k.key, s._key) AS _key)
    FROM ${STAGE} s LEFT JOIN ${KEYS} k ON s.rowid = k.ref
    ORDER BY s.rowid`;
  return { sql: numberedSql, columns };
}

/** The SELECT of typed rows: own columns as asked for, then each typed column of the batch in its type. */
export function selectRowsSql(
  { sql, columns }: RowsQuery,
  batch: Pick<PlannedDays, 'columns' | 'timezone'>,
  ownColumns: readonly DuckDbColumn[],
): string {
  const zone = zoneOf(batch.timezone);
  const filled = new Set(columns.map(({ position }) => position));
  const select = [
    // A TIMESTAMP in UTC where the place has instants.
    ...ownColumns.map(({ name, type }) => (type === 'TIMESTAMPTZ' ? `timezone('UTC', ${name}) AS ${name}` : name)),
    ...typedColumns(batch.columns).map(({ name, position, type }) => {
      const value = filled.has(position) ? identifier(name) : 'NULL';
      return `${castToColumnSql(value, type, zone)} AS ${identifier(name)}`;
    }),
  ];
  return `SELECT ${select.join(', ')} FROM (${sql})`;
}
