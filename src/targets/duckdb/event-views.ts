import { anyOfSql, identifier, literal, varcharSql } from '../../base/sql.ts';
import { DETAIL_LOG_ID, ITEM_PREFIX, LOG_ID } from '../../cells/header.ts';
import { columnOfSourceSql } from '../../engine/column-sql.ts';
import type { Engine } from '../../engine/session/engine.ts';
import { ITEM_POSITION } from '../../table/column-names.ts';
import { EVENTS, isItemGroup, type StoredColumn, typedColumns } from '../../table/tables.ts';

export const EVENT_VIEWS = {
  event_logs: {
    queryOf: eventLogsSql,
    comment: 'An event each, without item columns: of its rows the one of the lowest item position.',
  },
  event_items: { queryOf: eventItemsSql, comment: 'An item each, with the short names of item columns.' },
};

/** Makes `event_logs` and `event_items` anew over these columns. */
export async function createEventViews(engine: Engine, columns: readonly StoredColumn[]): Promise<void> {
  const tableColumns = typedColumns(columns);
  for (const [view, { queryOf, comment }] of Object.entries(EVENT_VIEWS)) {
    await engine.run(`CREATE OR REPLACE VIEW ${view} AS ${queryOf(tableColumns)}`);
    await engine.run(`COMMENT ON VIEW ${view} IS ${literal(comment)}`);
  }
}

/** A query of the row of lowest position of each event, without the item columns. */
function eventLogsSql(columns: readonly StoredColumn[]): string {
  const logId = columnOfSourceSql(columns, LOG_ID);
  const names = columns.filter(({ group }) => !isItemGroup(group)).map(({ name }) => identifier(name));
  // The row of the lowest position stands for its event; one without a position comes before all. Of equal positions
  // the lowest key counts. A row without a log id is an event of its own.
  return `
    SELECT ${['event_date', ...names, '_rescued', '_loaded_at'].join(', ')}
    FROM ${EVENTS.name}
    WHERE (event_date, _key) IN (
      SELECT (event_date, arg_min(_key, (coalesce(${itemPositionSql(columns)}, -1), _key)))
      FROM ${EVENTS.name}
      GROUP BY event_date, ${logId}, CASE WHEN ${logId} IS NULL THEN _key END
    )`;
}

/** A query of the items: unified id, system columns, item columns without their prefix, position. */
function eventItemsSql(columns: readonly StoredColumn[]): string {
  const commonColumns = columns.filter(({ group }) => group === 'unified_id' || group === 'system');
  const itemColumns = columns.filter(({ group }) => isItemGroup(group));
  const select = [
    '_key',
    'event_date',
    ...commonColumns.map(({ name }) => identifier(name)),
    ...itemColumns.map(({ name, itemName }) => `${identifier(name)} AS ${identifier(itemName ?? name)}`),
    `${itemPositionSql(columns)} AS ${ITEM_POSITION}`,
  ];
  return `
    SELECT ${select.join(', ')}
    FROM ${EVENTS.name}
    WHERE ${anyOfSql([...itemColumns.map(hasValueSql), HAS_RESCUED_ITEM_SQL])}`;
}

/** SQL that is TRUE if an item column has a value. In a text column the cell `null` is stored as a text. */
function hasValueSql({ name, type }: StoredColumn): string {
  const columnSql = identifier(name);
  return type === 'string' ? `coalesce(${columnSql} <> 'null', false)` : `${columnSql} IS NOT NULL`;
}

/** SQL that is TRUE if a cell of an item column is in `_rescued`, else FALSE. */
const HAS_RESCUED_ITEM_SQL =
  `(_rescued IS NOT NULL AND len(list_filter(json_keys(_rescued), ` +
  `lambda k: starts_with(k, ${literal(ITEM_PREFIX)}) AND length(k) > ${ITEM_PREFIX.length})) > 0)`;

/** SQL of the item position: the number behind the log id and a colon in a detail log id, of at most 18 digits. */
function itemPositionSql(columns: readonly StoredColumn[]): string {
  const detailLogId = varcharSql(columnOfSourceSql(columns, DETAIL_LOG_ID));
  const logId = varcharSql(columnOfSourceSql(columns, LOG_ID));
  const digits = `regexp_extract(substr(${detailLogId}, length(${logId}) + 2), '^0*[0-9]{1,18}$')`;
  return `CASE WHEN starts_with(${detailLogId}, ${logId} || ':') THEN try_cast(${digits} AS BIGINT) END`;
}
