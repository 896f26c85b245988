// This folder: from the CSV files of days to typed rows with keys. All targets store what `storeTypedRows` of this file
// gives. `rows-query.ts` has the query of these rows, `csv-sql.ts` the SQL of files and their cells.
//
// `row-counts.ts` counts stored rows by day, `check-rows.ts` for `verify`, and `report-counts.ts` for a report.

import { type CheckedDay, mayHaveDuplicateIds } from '../../extract/checked-day.ts';
import type { Engine } from '../session/engine.ts';
import { MisreadFileError } from '../session/engine-errors.ts';
import { type PlannedTable, queryOfDownloads, type RowsQuery } from './rows-query.ts';

/**
 * Stores the rows of downloads. The caller has begun a transaction. Those without duplicate ids share one query, since
 * each statement takes blocks for every column. In each other download equal keys are numbered. Throws unless all rows
 * of the files are stored. `storeRows` stores the rows of a query, and returns their number.
 */
export async function storeTypedRows(
  engine: Engine,
  plannedTable: PlannedTable,
  downloads: readonly CheckedDay[],
  storeRows: (query: RowsQuery) => Promise<number>,
): Promise<void> {
  const downloadsWithRows = downloads.filter((download) => keptRowsOf(download) > 0);
  const uniqueIdDownloads = downloadsWithRows.filter((download) => !mayHaveDuplicateIds(download));
  if (uniqueIdDownloads.length > 0) {
    checkRowCount(uniqueIdDownloads, await storeRows(queryOfDownloads(uniqueIdDownloads, plannedTable)));
  }
  for (const download of downloadsWithRows.filter(mayHaveDuplicateIds)) {
    const storedRows = await storeRows(await stageNumbered(engine, queryOfDownloads([download], plannedTable)));
    await engine.run(`DROP TABLE ${STAGE_TABLE}`);
    checkRowCount([download], storedRows);
  }
}

/** Temporary table: the rows of a download. Its `_key` holds the text of the key and the number of the row. */
const STAGE_TABLE = '_dfinery_stage';

/** Stages the rows of a download in their order. The rows of an id get the keys `<id>`, `<id>#2`, `<id>#3` …. */
async function stageNumbered(engine: Engine, query: RowsQuery): Promise<RowsQuery> {
  await engine.keepOrder();
  // A column of its own for the number, or the pseudo column `rowid`, may have the name of a column of the export.
  await engine.run(`
    CREATE OR REPLACE TEMP TABLE ${STAGE_TABLE} AS
    SELECT * REPLACE ({'text': _key, 'row': row_number() OVER ()} AS _key) FROM (${query.sql})`);
  // Windows hold the keys of repeated ids alone, since those of whole rows take more memory.
  const sql = `
    SELECT stage.* REPLACE (coalesce(numbered.key, stage._key.text) AS _key)
    FROM ${STAGE_TABLE} stage
    LEFT JOIN (
      SELECT _key.row AS row, _key.text || '#' || row_number() OVER by_text AS key
      FROM ${STAGE_TABLE}
      WHERE _key.text IN (SELECT _key.text FROM ${STAGE_TABLE} GROUP BY _key.text HAVING count(*) > 1)
      WINDOW by_text AS (PARTITION BY _key.text ORDER BY _key.row)
      QUALIFY row_number() OVER by_text > 1
    ) numbered ON stage._key.row = numbered.row
    ORDER BY stage._key.row`;
  return { ...query, sql };
}

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
