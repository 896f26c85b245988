// This folder: DuckDB as the engine of tables and files, shared by the targets. `engine/` opens files and runs
// statements, `rows/` reads a window's CSV into typed rows with keys, `copies/` publishes a database file for readers;
// the files here are views, column conversions, the dates of a row, the making of a new database file, people, the
// objects of a file that may name them, reports and the profile of one CSV file.

import { DETAIL_LOG_ID, ITEM_PREFIX, LOG_ID } from '../cells/columns/groups.ts';
import { asText, literal } from '../cells/types/sql.ts';
import { isItem, type StoredColumn } from '../table/columns.ts';
import { anyOf, identifier } from './session/quote.ts';

/** A query of the row of lowest position of each event, among those that meet `keep`, without the item columns. */
export function eventLogs(columns: readonly StoredColumn[], from = 'events', keep = 'true'): string {
  return `
    SELECT ${logColumns(columns)}
    FROM ${from}
    WHERE _key IN (
      SELECT arg_min(_key, ${rank(columns)})
      FROM ${from}
      WHERE ${keep}
      GROUP BY ${eventIdentity(columns)}
    )`;
}

/** The rows of `eventLogs`, found by sorting the keys of the other rows, which spills if memory is short. */
export function sortedEventLogs(columns: readonly StoredColumn[], from: string, keep: string): string {
  return `
    SELECT ${logColumns(columns)}
    FROM ${from}
    WHERE ${keep} AND _key NOT IN (
      SELECT _key
      FROM (
        SELECT _key, row_number() OVER (PARTITION BY ${eventIdentity(columns)} ORDER BY ${rank(columns)}) AS ordinal
        FROM ${from}
        WHERE ${keep}
      )
      WHERE ordinal > 1
    )`;
}

function logColumns(columns: readonly StoredColumn[]): string {
  const own = columns.filter((column) => !isItem(column.group)).map((column) => identifier(column.name));
  return [...own, '_rescued'].join(', ');
}

/** SQL of the order of an event's rows; the lowest row stands for the event. */
export function rank(columns: readonly StoredColumn[]): string {
  return `(coalesce(${position(columns)}, -1), _key)`;
}

/** SQL of the values that the rows of one event share; a row without a log id is an event of its own. */
export function eventIdentity(columns: readonly StoredColumn[]): string {
  const log = columnOfSource(columns, LOG_ID);
  return `${log}, CASE WHEN ${log} IS NULL THEN _key END`;
}

/** A query of the items: unified id, system columns, item columns without their prefix, position. */
export function eventItems(columns: readonly StoredColumn[], from = 'events'): string {
  const common = columns.filter(({ group }) => group === 'unified_id' || group === 'system');
  const items = columns.filter((column) => isItem(column.group));
  const select = [
    '_key',
    ...common.map((column) => identifier(column.name)),
    ...items.map((column) => `${identifier(column.name)} AS ${identifier(column.itemName ?? column.name)}`),
    `${position(columns)} AS item_position`,
  ];
  return `
    SELECT ${select.join(', ')}
    FROM ${from}
    WHERE ${anyOf([...items.map(hasValue), RESCUED_ITEM])}`;
}

/** SQL that is TRUE if an item column has a value: `null` is a text in a text column, and NULL in any other. */
function hasValue({ name, type }: StoredColumn): string {
  const column = identifier(name);
  return type === 'string' ? `coalesce(${column} <> 'null', false)` : `${column} IS NOT NULL`;
}

const RESCUED_ITEM =
  `(_rescued IS NOT NULL AND len(list_filter(json_keys(_rescued), ` +
  `lambda k: starts_with(k, ${literal(ITEM_PREFIX)}) AND length(k) > ${ITEM_PREFIX.length})) > 0)`;

/** SQL of the number `n` of a detail log id that is its log id, a colon and `n`. */
function position(columns: readonly StoredColumn[]): string {
  const detail = asText(columnOfSource(columns, DETAIL_LOG_ID));
  const log = asText(columnOfSource(columns, LOG_ID));
  const rest = `substr(${detail}, length(${log}) + 2)`;
  return `CASE WHEN starts_with(${detail}, ${log} || ':') THEN try_cast(regexp_extract(${rest}, '^[0-9]+$') AS BIGINT) END`;
}

export function columnOfSource(columns: readonly StoredColumn[], source: string): string {
  return identifier(columns.find((c) => c.source === source && c.occurrence === 1)?.name ?? source);
}
