// This folder: from the CSV files of days to typed rows with keys. All targets store what `storeTypedRows` of this file
// gives. `rows-query.ts` has the query of these rows, `csv-sql.ts` the SQL of files and their cells. Of stored rows
// `row-counts.ts` counts those of a day, `check-rows.ts` those that `verify` objects to, and `report-counts.ts` what a
// report shows.

import type { Zone } from '../../cells/types/zone.ts';
import { type CheckedDay, type CheckedFile, mayHaveDuplicateIds } from '../../extract/checked-day.ts';
import type { PlannedBatch } from '../../table/batch-plan.ts';
import type { Engine } from '../session/engine.ts';
import { MisreadFileError } from '../session/engine-errors.ts';
import { queryOfDayInOrder, queryOfDays, type RowsQuery } from './rows-query.ts';

/** Stores the rows of a query, and returns their number. */
type StoreRows = (query: RowsQuery) => Promise<number>;

/**
 * Stores the rows of a batch. The caller has begun a transaction. Days whose ids are their keys have one query, since
 * each statement takes blocks for every column. Each other day has a query of its own. Throws unless all rows of the
 * files are stored.
 */
export async function storeTypedRows(
  engine: Engine,
  { table, columns, downloads }: Pick<PlannedBatch, 'table' | 'columns' | 'downloads'>,
  zone: Zone | undefined,
  storeRows: StoreRows,
): Promise<void> {
  const plannedTable = { table, columns, zone };
  const daysWithRows = downloads.filter(({ files }) => sumRows(files) > 0);
  const daysOfUniqueIds = daysWithRows.filter((day) => !mayHaveDuplicateIds(day));
  if (daysOfUniqueIds.length > 0) {
    checkRowCount(daysOfUniqueIds, await storeRows(queryOfDays(daysOfUniqueIds, plannedTable)));
  }
  for (const day of daysWithRows.filter(mayHaveDuplicateIds)) {
    checkRowCount([day], await storeNumbered(engine, queryOfDayInOrder(day, plannedTable), storeRows));
  }
}

/** Temporary table: the rows of a day in their order, with their ids as keys. */
const STAGE_TABLE = '_dfinery_stage';

/** Stores the rows of a day in their order. The second, third … row of an id gets the key `<id>#2`, `<id>#3` …. */
async function storeNumbered(engine: Engine, query: RowsQuery, storeRows: StoreRows): Promise<number> {
  await engine.keepOrder();
  await engine.run(`CREATE OR REPLACE TEMP TABLE ${STAGE_TABLE} AS ${query.sql}`);
  // Windows hold the keys of repeated ids alone, since those of whole rows take more memory.
  const sql = `
    SELECT stage.* REPLACE (coalesce(numbered.key, stage._key) AS _key)
    FROM ${STAGE_TABLE} stage
    LEFT JOIN (
      SELECT rowid AS stage_rowid, _key || '#' || row_number() OVER by_key AS key
      FROM ${STAGE_TABLE}
      WHERE _key IN (SELECT _key FROM ${STAGE_TABLE} GROUP BY _key HAVING count(*) > 1)
      WINDOW by_key AS (PARTITION BY _key ORDER BY rowid)
      QUALIFY row_number() OVER by_key > 1
    ) numbered ON stage.rowid = numbered.stage_rowid
    ORDER BY stage.rowid`;
  const storedRows = await storeRows({ ...query, sql });
  await engine.run(`DROP TABLE ${STAGE_TABLE}`);
  return storedRows;
}

function checkRowCount(days: readonly CheckedDay[], storedRows: number): void {
  const expectedRows = sumRows(days.flatMap(({ files }) => files));
  if (storedRows === expectedRows) return;
  const dayList = days.map(({ receipt }) => receipt.day).join(', ');
  throw new MisreadFileError(
    `${expectedRows} rows of ${dayList} came to ${storedRows}: nothing was kept. Please report it.`,
  );
}

/** Number of rows of these files. */
export const sumRows = (files: readonly CheckedFile[]): number =>
  files.reduce((sum, { keptRows }) => sum + keptRows, 0);
