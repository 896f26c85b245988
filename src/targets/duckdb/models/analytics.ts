import { configError } from '../../../base/errors.ts';
import { DETAIL_LOG_ID, EVENT_NAME, LOG_ID, UNIFIED_ID } from '../../../cells/columns/groups.ts';
import type { ColumnType } from '../../../cells/types/codec.ts';
import { identifier, literal } from '../../../cells/types/sql.ts';
import { TYPES } from '../../../cells/types/types.ts';
import { zoneOf } from '../../../cells/types/zone.ts';
import type { Engine } from '../../../engine/session/engine.ts';
import { localTime, occurredAt } from '../../../engine/views.ts';
import { foldName } from '../../../table/names.ts';
import type { PlaceState, StoredProfiles } from '../../../table/place-state.ts';
import { isItem, type StoredColumn, type Typed, typedColumns } from '../../../table/tables.ts';
import type { PlaceOptions } from '../../contract.ts';
import { withLoadedFile } from '../file-state.ts';
import { MODELS, type Model } from './models.ts';

const ANALYTICS = 'analytics';
/** End of the comment of each model; a view or macro with this comment may be replaced. */
const COMMENT_END = '(dfinery-elt models)';

/** Conditions on what `duckdb_views()` and the like list: that it is in the schema, that it has this comment. */
const IN_ANALYTICS = `database_name = current_database() AND schema_name = ${literal(ANALYTICS)}`;
const IS_OURS = `coalesce(ends_with(comment, ${literal(COMMENT_END)}), false)`;

/**
 * Creates or replaces the models in a file that was loaded; returns their names. Throws UserError, and changes nothing,
 * for any other file, and if something else has one of the names.
 */
export async function writeModels(file: string, options: PlaceOptions): Promise<string[]> {
  await withLoadedFile({ ...options, file }, (engine, state) => engine.transaction(() => createModels(engine, state)));
  return MODELS.map(({ name }) => `${ANALYTICS}.${name}`);
}

async function createModels(engine: Engine, { columns, timezone, profiles }: PlaceState): Promise<void> {
  await engine.run(`CREATE SCHEMA IF NOT EXISTS ${ANALYTICS}`);
  const foreign = await foreignNames(engine);
  if (foreign.length > 0) {
    throw configError(
      `${engine.file} has ${foreign.map((name) => `${ANALYTICS}.${name}`).join(', ')}, made by somebody else: ` +
        'rename it, or drop it, and run models again.',
    );
  }
  const relations = relationsOf(columns, timezone);
  for (const model of MODELS) {
    // Any other name in braces is a parameter, which a macro names as it is.
    const sql = model.sql.replaceAll(/\{\{ (.+?) \}\}/g, (_, term: string) => relations.get(term) ?? term);
    const select = model.name === 'users' && profiles !== undefined ? withAttributes(sql, model, profiles) : sql;
    for (const statement of statementsOf(model, select)) await engine.run(statement);
  }
}

/** Recreates the models of a file that has them, after a change of the columns that they read. */
export async function refreshModels(engine: Engine, state: PlaceState): Promise<void> {
  const models = await engine.count(`duckdb_views() WHERE ${IN_ANALYTICS} AND ${IS_OURS}`);
  if (models > 0) await createModels(engine, state);
}

/** Names of models that a table has in the schema, or a view or macro of somebody else. */
async function foreignNames(engine: Engine): Promise<string[]> {
  const rows = await engine.rows(`
    SELECT lower(table_name) AS name FROM duckdb_tables() WHERE ${IN_ANALYTICS}
    UNION
    SELECT lower(view_name) FROM duckdb_views() WHERE ${IN_ANALYTICS} AND NOT ${IS_OURS}
    UNION
    SELECT lower(function_name) FROM duckdb_functions() WHERE ${IN_ANALYTICS} AND NOT ${IS_OURS}`);
  const taken = new Set(rows.map(({ name }) => String(name)));
  return MODELS.map(({ name }) => name).filter((name) => taken.has(name));
}

/**
 * The SELECT of a person each, with the columns of the profile whose names it does not have already. Of two profiles
 * of a person the first counts.
 */
function withAttributes(sql: string, model: Model, { columns }: StoredProfiles): string {
  const taken = new Set(Object.keys(model.columns).map(foldName));
  const attributes = typedColumns(columns).flatMap(({ name }) => (taken.has(foldName(name)) ? [] : [identifier(name)]));
  if (attributes.length === 0) return sql;
  const profiles = `SELECT df_unified_id, ${attributes.join(', ')} FROM main.user_profiles WHERE _key = df_unified_id`;
  return `SELECT * FROM (${sql}) LEFT JOIN (${profiles}) USING (df_unified_id)`;
}

/** The statements that make a model of a SELECT. */
function statementsOf({ name: model, grain, columns, parameters }: Model, select: string): string[] {
  const name = `${ANALYTICS}.${model}`;
  const comment = literal(`${grain} ${COMMENT_END}`);
  if (parameters !== undefined) {
    return [
      `CREATE OR REPLACE MACRO ${name}(${parameters.join(', ')}) AS TABLE ${select}`,
      `COMMENT ON MACRO TABLE ${name} IS ${comment}`,
    ];
  }
  return [
    `CREATE OR REPLACE VIEW ${name} AS ${select}`,
    `COMMENT ON VIEW ${name} IS ${comment}`,
    ...Object.entries(columns).map(
      ([column, text]) => `COMMENT ON COLUMN ${name}.${identifier(column)} IS ${literal(text)}`,
    ),
  ];
}

/** A value of an event or an item: its name in the relations, its column in the export, its type. */
type ModelValue = readonly [name: string, source: string, type: ColumnType];

const COMMON: readonly ModelValue[] = [
  ['person', UNIFIED_ID, 'string'],
  ['log_id', LOG_ID, 'string'],
  ['name', EVENT_NAME, 'string'],
];
const OF_EVENTS: readonly ModelValue[] = [
  ['order_id', 'df_order_id', 'string'],
  ['total_purchase_amount', 'df_total_purchase_amount', 'double'],
  ['discount', 'df_discount', 'double'],
  ['delivery_charge', 'df_delivery_charge', 'double'],
  ['payment_method', 'df_payment_method', 'string'],
];
const OF_ITEMS: readonly ModelValue[] = [
  ['detail_log_id', DETAIL_LOG_ID, 'string'],
  ['item_id', 'df_items_df_item_id', 'string'],
  ['item_name', 'df_items_df_item_name', 'string'],
  ...[1, 2, 3, 4, 5].map((level): ModelValue => [`category${level}`, `df_items_df_category${level}`, 'string']),
  ['price', 'df_items_df_price', 'double'],
  ['quantity', 'df_items_df_quantity', 'long'],
  ['discount', 'df_items_df_discount', 'double'],
];

/**
 * The relations that the models read; a value is NULL if the export lacks its column. Views have their schema's name,
 * so that they are found from every database. The columns:
 *
 *     events()      person, log_id, name, order_id…, payment_method, event_at, day
 *     items()       person, log_id, name, detail_log_id…, discount, event_at, day, item_position
 *     properties()  name df_login, properties [channel, device]
 */
function relationsOf(columns: readonly StoredColumn[], timezone: string | null): ReadonlyMap<string, string> {
  const ofLogs = typedColumns(columns);
  const ofItems = ofLogs.map((column) => ({ ...column, name: column.itemName ?? column.name }));
  const eventName = valueSql(ofLogs, EVENT_NAME, 'string', timezone);
  const properties = filledNames(ofLogs.filter(isProperty).map(({ name }) => name));
  return new Map([
    ['events()', relationOf('main.event_logs', ofLogs, OF_EVENTS, timezone)],
    ['items()', relationOf('main.event_items', ofItems, OF_ITEMS, timezone, ['item_position'])],
    ['properties()', `(SELECT ${eventName} AS name, ${properties} AS properties FROM main.event_logs GROUP BY 1)`],
  ]);
}

/** A view with these columns as a relation of values, with time and day, and more columns of the view. */
function relationOf(
  view: string,
  columns: readonly Typed[],
  values: readonly ModelValue[],
  timezone: string | null,
  more: readonly string[] = [],
): string {
  const at = occurredAt((source) => valueSql(columns, source, 'datetime', timezone));
  const day = `CAST(${localTime(at, zoneOf(timezone))} AS DATE)`;
  const select = [...COMMON, ...values].map(
    ([name, source, type]) => `${valueSql(columns, source, type, timezone)} AS ${name}`,
  );
  return `(SELECT ${[...select, `${at} AS event_at`, `${day} AS day`, ...more].join(', ')} FROM ${view})`;
}

/** SQL of a value in a type. It is NULL without its column, and where what is stored does not fit. */
function valueSql(columns: readonly Typed[], source: string, type: ColumnType, timezone: string | null): string {
  const sqlType = TYPES[type].duckdb(timezone !== null);
  const column = columns.find((stored) => stored.source === source && stored.occurrence === 1);
  if (column === undefined) return `CAST(NULL AS ${sqlType})`;
  const name = identifier(column.name);
  return column.type === type ? name : `TRY_CAST(${name} AS ${sqlType})`;
}

const isProperty = ({ group }: StoredColumn): boolean => !isItem(group) && group !== 'unified_id' && group !== 'system';

/** SQL of a VARCHAR[] aggregate: the columns among these that hold a value. */
function filledNames(names: readonly string[]): string {
  if (names.length === 0) return 'CAST([] AS VARCHAR[])';
  const filled = names.map((name) => `CASE WHEN count(${identifier(name)}) > 0 THEN ${literal(name)} END`);
  return `list_filter([${filled.join(', ')}], lambda name: name IS NOT NULL)`;
}
