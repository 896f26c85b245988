import { configError } from '../../../base/errors.ts';
import { identifier, literal } from '../../../base/sql.ts';
import { DETAIL_LOG_ID, EVENT_NAME, LOG_ID, UNIFIED_ID } from '../../../cells/header.ts';
import type { ColumnType } from '../../../cells/types/column-types.ts';
import { type Zone, zoneOf } from '../../../cells/types/zone.ts';
import { columnValueSql, localTimeSql, occurredAtSql } from '../../../engine/column-sql.ts';
import type { Engine } from '../../../engine/session/engine.ts';
import { foldName, ITEM_POSITION } from '../../../table/column-names.ts';
import type { PlaceState, TableState } from '../../../table/place-state.ts';
import { isItemGroup, type StoredColumn, typedColumns } from '../../../table/tables.ts';
import type { PlaceOptions } from '../../contract.ts';
import { withLoadedFile } from '../file-state.ts';
import { MODELS, type Model } from './models.ts';

const SCHEMA = 'analytics';
/** End of the comment of each model; a view or macro with this comment may be replaced. */
const COMMENT_END = '(dfinery-elt models)';

/** Conditions on what `duckdb_views()` and the like list: that it is in the schema, that it has this comment. */
const IN_SCHEMA_SQL = `database_name = current_database() AND schema_name = ${literal(SCHEMA)}`;
const IS_MODEL_SQL = `coalesce(ends_with(comment, ${literal(COMMENT_END)}), false)`;

/**
 * Creates or replaces the models in a file that was loaded; returns them by their names there. Throws UserError, and
 * changes nothing, for any other file, and if something else has one of the names.
 */
export async function writeModels(options: PlaceOptions): Promise<ReadonlyMap<string, Model>> {
  await withLoadedFile(options, 'write', (engine, state) =>
    engine.transaction(async () => {
      const takenNames = await findTakenNames(engine);
      if (takenNames.size > 0) {
        throw configError(
          `${engine.file} has ${[...takenNames].map((name) => `${SCHEMA}.${name}`).join(', ')}, made by somebody else: ` +
            'rename it, or drop it, and run models again.',
        );
      }
      await engine.run(`CREATE SCHEMA IF NOT EXISTS ${SCHEMA}`);
      await createModels(engine, state, MODELS);
    }),
  );
  return new Map(MODELS.map((model) => [`${SCHEMA}.${model.name}`, model]));
}

/**
 * Recreates the models of a file that has them, after a change of the columns that they read. Where somebody else has
 * taken a name, that model is left out.
 */
export async function refreshModels(engine: Engine, state: PlaceState): Promise<void> {
  if ((await engine.count(`duckdb_views() WHERE ${IN_SCHEMA_SQL} AND ${IS_MODEL_SQL}`)) === 0) return;
  const takenNames = await findTakenNames(engine);
  const models = MODELS.filter(({ name }) => !takenNames.has(name));
  await createModels(engine, state, models);
}

async function createModels(
  engine: Engine,
  { events: { columns, timezone }, user_profiles: profiles }: PlaceState,
  models: readonly Model[],
): Promise<void> {
  const relations = relationsOf(columns, zoneOf(timezone));
  for (const model of models) {
    // A macro names its parameters as they are.
    let select = model.sql.replaceAll(/\{\{ (.+?) \}\}/g, (_, term: string) => relations.get(term) ?? term);
    if (model.joinsProfiles && profiles !== undefined) select = withProfiles(select, model, profiles);
    for (const statement of statementsOf(model, select)) await engine.run(statement);
  }
}

/** Names of models that a table has in the schema, or a view or macro of somebody else. */
async function findTakenNames(engine: Engine): Promise<ReadonlySet<string>> {
  const rows = await engine.rows(`
    SELECT lower(table_name) AS name FROM duckdb_tables() WHERE ${IN_SCHEMA_SQL}
    UNION
    SELECT lower(view_name) FROM duckdb_views() WHERE ${IN_SCHEMA_SQL} AND NOT ${IS_MODEL_SQL}
    UNION
    SELECT lower(function_name) FROM duckdb_functions() WHERE ${IN_SCHEMA_SQL} AND NOT ${IS_MODEL_SQL}`);
  const takenNames = new Set(rows.map(({ name }) => String(name)));
  return new Set(MODELS.map(({ name }) => name).filter((name) => takenNames.has(name)));
}

/**
 * A SELECT of a row a person, with the columns of the profile whose names it does not have already. Of two profiles of
 * a person the first counts: the `_key` of the second ends with `#2`.
 */
function withProfiles(select: string, model: Model, { columns }: TableState): string {
  const modelNames = new Set(Object.keys(model.columns).map(foldName));
  const profileColumns = typedColumns(columns).filter(({ name }) => !modelNames.has(foldName(name)));
  if (profileColumns.length === 0) return select;
  const names = profileColumns.map(({ name }) => identifier(name)).join(', ');
  const profiles = `SELECT df_unified_id, ${names} FROM main.user_profiles WHERE _key = df_unified_id`;
  return `SELECT * FROM (${select}) LEFT JOIN (${profiles}) USING (df_unified_id)`;
}

/** The statements that make a model of a SELECT. */
function statementsOf({ name, grain, columns, parameters }: Model, select: string): string[] {
  const qualifiedName = `${SCHEMA}.${name}`;
  const comment = literal(`${grain} ${COMMENT_END}`);
  if (parameters !== undefined) {
    return [
      `CREATE OR REPLACE MACRO ${qualifiedName}(${parameters.join(', ')}) AS TABLE ${select}`,
      `COMMENT ON MACRO TABLE ${qualifiedName} IS ${comment}`,
    ];
  }
  return [
    `CREATE OR REPLACE VIEW ${qualifiedName} AS ${select}`,
    `COMMENT ON VIEW ${qualifiedName} IS ${comment}`,
    ...Object.entries(columns).map(
      ([column, text]) => `COMMENT ON COLUMN ${qualifiedName}.${identifier(column)} IS ${literal(text)}`,
    ),
  ];
}

/** Columns of a relation by their names there: the column of the export from which each comes, and its type. */
type RelationColumns = Readonly<Record<string, readonly [source: string, type: ColumnType]>>;

const COMMON_COLUMNS: RelationColumns = {
  person: [UNIFIED_ID, 'string'],
  log_id: [LOG_ID, 'string'],
  name: [EVENT_NAME, 'string'],
};
const EVENT_COLUMNS: RelationColumns = {
  ...COMMON_COLUMNS,
  order_id: ['df_order_id', 'string'],
  total_purchase_amount: ['df_total_purchase_amount', 'double'],
  discount: ['df_discount', 'double'],
  delivery_charge: ['df_delivery_charge', 'double'],
  payment_method: ['df_payment_method', 'string'],
};
const ITEM_COLUMNS: RelationColumns = {
  ...COMMON_COLUMNS,
  detail_log_id: [DETAIL_LOG_ID, 'string'],
  item_id: ['df_items_df_item_id', 'string'],
  item_name: ['df_items_df_item_name', 'string'],
  category1: ['df_items_df_category1', 'string'],
  category2: ['df_items_df_category2', 'string'],
  category3: ['df_items_df_category3', 'string'],
  category4: ['df_items_df_category4', 'string'],
  category5: ['df_items_df_category5', 'string'],
  price: ['df_items_df_price', 'double'],
  quantity: ['df_items_df_quantity', 'long'],
  discount: ['df_items_df_discount', 'double'],
};

/**
 * The relations that the models read; a value is NULL if the export lacks its column. Views have their schema's name,
 * so that they are found from every database. The columns:
 *
 *     events()      person, log_id, name, order_id…, payment_method, event_at, day
 *     items()       person, log_id, name, detail_log_id…, discount, event_at, day, item_position
 *     properties()  name, properties: names of the columns that an event of this name fills, as a list
 */
function relationsOf(columns: readonly StoredColumn[], zone: Zone | undefined): ReadonlyMap<string, string> {
  const eventColumns = typedColumns(columns);
  const itemColumns = eventColumns.map((column) => ({ ...column, name: column.itemName ?? column.name }));
  const eventName = columnValueSql(eventColumns, EVENT_NAME, 'string', zone);
  const properties = filledPropertiesSql(eventColumns);
  const events = columnsSql(eventColumns, EVENT_COLUMNS, zone);
  const items = [...columnsSql(itemColumns, ITEM_COLUMNS, zone), ITEM_POSITION];
  return new Map([
    ['events()', `(SELECT ${events.join(', ')} FROM main.event_logs)`],
    ['items()', `(SELECT ${items.join(', ')} FROM main.event_items)`],
    ['properties()', `(SELECT ${eventName} AS name, ${properties} AS properties FROM main.event_logs GROUP BY 1)`],
  ]);
}

/** SQL of the columns of a relation over a view that has `columns`; also of time and day. */
function columnsSql(columns: readonly StoredColumn[], relationColumns: RelationColumns, zone: Zone | undefined) {
  const eventAt = occurredAtSql(columns, zone);
  return [
    ...Object.entries(relationColumns).map(
      ([name, [source, type]]) => `${columnValueSql(columns, source, type, zone)} AS ${name}`,
    ),
    `${eventAt} AS event_at`,
    `CAST(${localTimeSql(eventAt, zone)} AS DATE) AS day`,
  ];
}

/** SQL of a VARCHAR[] aggregate: the names of the property columns that hold a value. */
function filledPropertiesSql(columns: readonly StoredColumn[]): string {
  const properties = columns.filter(({ group }) => !isItemGroup(group) && group !== 'unified_id' && group !== 'system');
  if (properties.length === 0) return 'CAST([] AS VARCHAR[])';
  const namesIfFilled = properties.map(
    ({ name }) => `CASE WHEN count(${identifier(name)}) > 0 THEN ${literal(name)} END`,
  );
  return `list_filter([${namesIfFilled.join(', ')}], lambda name: name IS NOT NULL)`;
}
