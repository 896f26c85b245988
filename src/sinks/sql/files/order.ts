import { EVENT_NAME, SERVER_DATETIME } from '../../../schema/groups.ts';
import type { StoredColumn } from '../../../table/columns.ts';
import { identifier } from '../engine/quote.ts';
import { ROW_GROUP_ROWS } from './parquet-file.ts';

/**
 * The order of rows in a file that `compact` rewrites: event names, then time, so that the statistics of row
 * groups let a filter skip some. Needs memory, or spills. None where one row group holds all.
 */
export function sortedBy(columns: readonly StoredColumn[], rows: number): string {
  const keys = [EVENT_NAME, SERVER_DATETIME].flatMap((source) => {
    const column = columns.find((c) => c.source === source && c.occurrence === 1 && c.type !== null);
    return column === undefined ? [] : identifier(column.name);
  });
  return rows <= ROW_GROUP_ROWS || keys.length === 0 ? '' : `ORDER BY ${keys.join(', ')}`;
}
