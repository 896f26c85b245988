// This folder: from the CSV files of days to typed rows with keys. All targets store what `storeTypedRows` of this file
// gives. `rows-query.ts` has the query of these rows, `csv-sql.ts` the SQL of files and their cells.
//
// `row-counts.ts` counts stored rows by day, `check-rows.ts` for `verify`, and `report-counts.ts` for a report.

import { type CheckedDay, mayHaveDuplicateIds } from '../../extract/checked-day.ts';
import type { Engine } from '../session/engine.ts';
import { MisreadFileError } from '../session/engine-errors.ts';
import { type PlannedTable, queryOfDownloads, type RowsQuery } from './rows-query.ts';

/** Stores the rows of a query. Returns their number. */
type StoreRows = (query: RowsQuery) => Promise<number>;

/**
 * Stores the rows of downloads. The caller has begun a transaction. Those without duplicate ids share one query, since
 * each statement takes blocks for every column. In each other download equal keys are numbered. Throws unless all rows
 * of the files are stored.
 */
export async function storeTypedRows(
  engine: Engine,
  plannedTable: PlannedTable,
  downloads: readonly CheckedDay[],
  storeRows: StoreRows,
): Promise<void> {
  const downloadsWithRows = downloads.filter((download) => keptRowsOf(download) > 0);
  const uniqueIdDownloads = downloadsWithRows.filter((download) => !mayHaveDuplicateIds(download));
  if (uniqueIdDownloads.length > 0) {
    checkRowCount(uniqueIdDownloads, await storeRows(queryOfDownloads(uniqueIdDownloads, plannedTable)));
  }
  for (const download of downloadsWithRows.filter(mayHaveDuplicateIds)) {
    checkRowCount([download], await storeNumbered(engine, queryOfDownloads([download], plannedTable), storeRows));
  }
}

/** Temporary table: the rows of a download. DuckDB numbers them in its pseudo column `rowid`. */
const STAGE_TABLE = '_dfinery_stage';

/** Stores the rows of a download in their order. Rows with the ids `a`, `b`, `a` get the keys `a`, `b`, `a#2`. */
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

/** Throws a MisreadFileError: the engine then reads the files once more, in one thread. */
function checkRowCount(downloads: readonly CheckedDay[], storedRows: number): void {
  const expectedRows = downloads.reduce((sum, download) => sum + keptRowsOf(download), 0);
  if (storedRows === expectedRows) return;
  const dayList = downloads.map(({ receipt }) => receipt.day).join(', ');
  throw new MisreadFileError(
    `${expectedRows} rows of ${dayList} came to ${storedRows}: nothing was kept. Please report it.`,
  );
}

/** Number of rows of a download that are kept. */
export const keptRowsOf = ({ files }: CheckedDay): number => files.reduce((sum, { keptRows }) => sum + keptRows, 0);
