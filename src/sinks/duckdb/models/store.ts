import { configFailure } from '../../../base/errors.ts';
import { isItem, isTyped, type StoredColumn, type Typed } from '../../../table/columns.ts';
import type { TableState } from '../../../table/state.ts';
import { TYPES } from '../../../types/index.ts';
import { literal } from '../../../types/sql.ts';
import type { ColumnType } from '../../../types/type.ts';
import { fileExists } from '../../sql/engine/database-file.ts';
import type { Engine, EngineOptions } from '../../sql/engine/engine.ts';
import { identifier } from '../../sql/engine/quote.ts';
import { checkStore, readState, withFile } from '../store.ts';
import { MODELS } from './index.ts';
import type { Model, ModelSource } from './model.ts';

/** What the models are made for: the columns of the file and the zone of its datetimes. */
type Loaded = Pick<TableState, 'columns' | 'timezone'>;

/** Name of the schema that the models are in. */
const ANALYTICS = 'analytics';
/** Ends the comment of each model: one that has it may be replaced. */
const MARK = '(dfinery-elt models)';

/**
 * Creates the models in a file that was loaded before, or replaces them. Returns their names. Throws a Failure for a
 * file without events of ours, and where something else has one of the names; then nothing is changed.
 */
export async function writeModels(options: Omit<EngineOptions, 'readOnly'>): Promise<string[]> {
  if (!fileExists(options.file)) throw configFailure(`${options.file} does not exist: load it with sync duckdb first.`);
  await withFile(options, async (engine) => {
    await checkStore(engine);
    const { columns, timezone } = await readState(engine);
    await engine.transaction(() => createModels(engine, { columns, timezone }));
  });
  return MODELS.map(({ name }) => `${ANALYTICS}.${name}`);
}

async function createModels(engine: Engine, { columns, timezone }: Loaded): Promise<void> {
  await engine.run(`CREATE SCHEMA IF NOT EXISTS ${ANALYTICS}`);
  const foreign = await foreignNames(engine);
  if (foreign.length > 0) {
    throw configFailure(
      `${engine.file} has ${foreign.map((name) => `${ANALYTICS}.${name}`).join(', ')}, made by somebody else: rename it, or drop it, and run models again.`,
    );
  }
  const source = sourceOf(columns, timezone);
  for (const model of MODELS) for (const statement of statementsOf(model, source)) await engine.run(statement);
}

/** Recreates the models where a file has them: after a change of the columns they read. */
export async function refreshModels(engine: Engine, loaded: Loaded): Promise<void> {
  if (await hasModels(engine)) await createModels(engine, loaded);
}

async function hasModels(engine: Engine): Promise<boolean> {
  const marked = `database_name = current_database() AND schema_name = ${literal(ANALYTICS)} AND ends_with(comment, ${literal(MARK)})`;
  const { n } = await engine.row(`SELECT count(*) AS n FROM duckdb_views() WHERE ${marked}`);
  return Number(n) > 0;
}

/** Names of models that a table, or a view or macro without our mark, has in the schema. */
async function foreignNames(engine: Engine): Promise<string[]> {
  const here = `database_name = current_database() AND schema_name = ${literal(ANALYTICS)}`;
  const unmarked = `${here} AND NOT coalesce(ends_with(comment, ${literal(MARK)}), false)`;
  const rows = await engine.rows(
    `SELECT lower(table_name) AS name FROM duckdb_tables() WHERE ${here}
    UNION SELECT lower(view_name) FROM duckdb_views() WHERE ${unmarked}
    UNION SELECT lower(function_name) FROM duckdb_functions() WHERE ${unmarked}`,
  );
  const found = new Set(rows.map(({ name }) => String(name)));
  return MODELS.map(({ name }) => name).filter((name) => found.has(name));
}

const itself = (parameter: string): string => parameter;

function statementsOf(model: Model, source: ModelSource): string[] {
  const name = `${ANALYTICS}.${model.name}`;
  const comment = literal(`${model.grain} ${MARK}`);
  if (model.parameters !== undefined) {
    return [
      `CREATE OR REPLACE MACRO ${name}(${model.parameters.join(', ')}) AS TABLE ${model.sql(source, itself)}`,
      `COMMENT ON MACRO TABLE ${name} IS ${comment}`,
    ];
  }
  return [
    `CREATE OR REPLACE VIEW ${name} AS ${model.sql(source, itself)}`,
    `COMMENT ON VIEW ${name} IS ${comment}`,
    ...Object.entries(model.columns).map(
      ([column, text]) => `COMMENT ON COLUMN ${name}.${identifier(column)} IS ${literal(text)}`,
    ),
  ];
}

/** The models' view of a file. Its views are named with their schema, so that they are found from every database. */
function sourceOf(columns: readonly StoredColumn[], timezone: string | null): ModelSource {
  const typed = columns.filter(isTyped);
  const find = (source: string) => typed.find((column) => column.source === source && column.occurrence === 1);
  const typedValue = (column: Typed | undefined, name: 'name' | 'itemName', type: ColumnType) => {
    const sqlType = TYPES[type].duckdb(timezone !== null);
    if (column === undefined) return `CAST(NULL AS ${sqlType})`;
    const value = identifier(column[name] ?? column.name);
    return column.type === type ? value : `TRY_CAST(${value} AS ${sqlType})`;
  };
  return {
    logs: 'main.event_logs',
    items: 'main.event_items',
    log: (source, type) => typedValue(find(source), 'name', type),
    item: (source, type) => typedValue(find(source), 'itemName', type),
    wallClock: (instant) => (timezone === null ? instant : `timezone(${literal(timezone)}, ${instant})`),
    filledProperties: () => filledNames(typed.filter(isProperty).map(({ name }) => name)),
  };
}

const isProperty = ({ group }: StoredColumn): boolean => !isItem(group) && group !== 'unified_id' && group !== 'system';

function filledNames(names: readonly string[]): string {
  if (names.length === 0) return 'CAST([] AS VARCHAR[])';
  const filled = names.map((name) => `CASE WHEN count(${identifier(name)}) > 0 THEN ${literal(name)} END`);
  return `list_filter([${filled.join(', ')}], lambda name: name IS NOT NULL)`;
}
