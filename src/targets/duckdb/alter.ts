import { identifier } from '../../cells/types/sql.ts';
import { TYPES } from '../../cells/types/types.ts';
import type { Zone } from '../../cells/types/zone.ts';
import { valueAfter } from '../../engine/conversions.ts';
import { checkRowCount, type TypedRows } from '../../engine/rows/typed-rows.ts';
import type { Engine } from '../../engine/session/engine.ts';
import { isRetyped, type PlannedColumn } from '../../table/column-plan.ts';
import { OWN_COLUMNS } from '../../table/names.ts';
import { EVENTS, type StoredColumn, type Table, typedColumns } from '../../table/tables.ts';

const REBUILT = '_dfinery_rebuilt';
/** Cost of adding a column, for each column of the table, in units of rewriting one cell of it (measured). */
const ADD_COST = 120;

/** The types of this program's own columns of `events` in a DuckDB file. */
export const OWN_TYPES_IN_DUCKDB = {
  _key: 'VARCHAR',
  event_date: 'DATE',
  _rescued: 'JSON',
  _loaded_at: 'TIMESTAMP',
} as const satisfies Record<(typeof OWN_COLUMNS)[number], string>;

/** The statement that makes a table for these columns under its name, or under that of one which replaces it. */
export function createTable(
  { name, ownColumns }: Pick<Table, 'ownColumns'> & { readonly name: string },
  columns: readonly StoredColumn[],
  asInstants: boolean,
): string {
  const own = ownColumns.map((column) => `${column} ${OWN_TYPES_IN_DUCKDB[column]}`);
  const typed = typedColumns(columns).map((c) => `${identifier(c.name)} ${TYPES[c.type].duckdb(asInstants)}`);
  return `CREATE TABLE ${name} (${[...own, ...typed].join(', ')})`;
}

/**
 * Adds and alters columns as planned, first of all in the transaction: DuckDB refuses it after a DELETE. True if the
 * table was made anew, without its comments.
 */
export async function alterEvents(
  engine: Engine,
  plan: readonly PlannedColumn[],
  zone: Zone | undefined,
): Promise<boolean> {
  const added = typedColumns(plan).filter(({ before }) => before === null);
  const changed = plan.filter(isRetyped);
  if (added.length * ADD_COST > (await engine.count('events')) && !(await isAltered(engine, plan))) {
    await rebuild(engine, plan, zone);
    return true;
  }
  for (const column of added) {
    const type = TYPES[column.type].duckdb(zone !== undefined);
    await engine.run(`ALTER TABLE events ADD COLUMN ${identifier(column.name)} ${type}`);
  }
  for (const column of changed) {
    const type = TYPES[column.type].duckdb(zone !== undefined);
    const value = valueAfter(column, zone);
    await engine.run(`ALTER TABLE events ALTER ${identifier(column.name)} SET DATA TYPE ${type} USING (${value})`);
  }
  return false;
}

/** True if somebody else gave the table a column or an index, which a rebuilt table would not have. */
async function isAltered(engine: Engine, plan: readonly PlannedColumn[]): Promise<boolean> {
  const ours = OWN_COLUMNS.length + plan.filter(({ before }) => before !== null).length;
  const inEvents = "database_name = current_database() AND schema_name = 'main' AND table_name = 'events'";
  const columns = await engine.count(`duckdb_columns() WHERE ${inEvents}`);
  return columns !== ours || (await engine.count(`duckdb_indexes() WHERE ${inEvents}`)) > 0;
}

/** Rewrites the table: for many new columns each ALTER takes longer. */
async function rebuild(engine: Engine, plan: readonly PlannedColumn[], zone: Zone | undefined): Promise<void> {
  const stored = plan.filter(({ before }) => before !== null);
  const into = [...OWN_COLUMNS, ...stored.map(({ name }) => identifier(name))].join(', ');
  const select = [...OWN_COLUMNS, ...stored.map((column) => valueAfter(column, zone))].join(', ');
  await engine.run(createTable({ ...EVENTS, name: REBUILT }, plan, zone !== undefined));
  await engine.run(`INSERT INTO ${REBUILT} (${into}) SELECT ${select} FROM events`);
  await engine.run('DROP TABLE events');
  await engine.run(`ALTER TABLE ${REBUILT} RENAME TO events`);
}

/** Inserts typed rows into a table. */
export async function insertRows(engine: Engine, { name, ownColumns }: Table, rows: TypedRows): Promise<void> {
  const { own, columns, values, from, days } = rows;
  const names = [...ownColumns, ...columns.map((column) => column.name)].map(identifier).join(', ');
  const inserted = await engine.run(`
    INSERT INTO ${name} (${names})
    SELECT ${[...ownColumns.map((column) => own[column]), ...values].join(', ')}
    FROM ${from}`);
  checkRowCount(days, inserted, engine.file);
}
