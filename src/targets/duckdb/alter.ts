import { configError, type UserError } from '../../base/errors.ts';
import { TYPES } from '../../cells/types/index.ts';
import type { Zone } from '../../cells/types/zone.ts';
import { rescuedAfter, valueAfter } from '../../engine/conversions.ts';
import type { Engine } from '../../engine/session/engine.ts';
import { identifier } from '../../engine/session/quote.ts';
import { isTyped, type StoredColumn, type Typed } from '../../table/columns.ts';
import { OWN_COLUMNS } from '../../table/names.ts';
import { isRetyped, isWidening, type PlannedColumn, type Retyped } from '../../table/plan.ts';

const REBUILT = '_dfinery_rebuilt';
/** Cost of adding a column, for each column of the table, in units of rewriting one cell of it (measured). */
const ADD_COST = 120;

/** The types of this program's own columns of `events` in a DuckDB file. */
export const OWN_TYPES_IN_DUCKDB = {
  _key: 'VARCHAR',
  _dfinery_window: 'BIGINT',
  _rescued: 'JSON',
} as const satisfies Record<(typeof OWN_COLUMNS)[number], string>;

/** The statement that makes a table for these columns: `events`, or a table that replaces it. */
export function createEvents(table: string, columns: readonly StoredColumn[], asInstants: boolean): string {
  const own = Object.entries(OWN_TYPES_IN_DUCKDB).map(([name, type]) => `${name} ${type}`);
  const typed = columns.filter(isTyped).map((c) => `${identifier(c.name)} ${TYPES[c.type].duckdb(asInstants)}`);
  return `CREATE OR REPLACE TABLE ${table} (${[...own, ...typed].join(', ')})`;
}

/** Adds and alters columns as planned, first of all in the transaction: DuckDB refuses it after a DELETE. */
export async function alterEvents(
  engine: Engine,
  plan: readonly PlannedColumn[],
  zone: Zone | undefined,
): Promise<void> {
  const added = plan.filter((c) => c.before === null && c.type !== null);
  const changed = plan.filter(isRetyped);
  if (added.length + changed.length === 0) return;
  const rows = await engine.count('events');
  const isNarrowed = changed.some((column) => !isWidening(column, zone !== undefined));
  if (rows > 0 && !isNarrowed && added.length * ADD_COST <= rows) {
    return alterEach(engine, added.filter(isTyped), changed, zone);
  }
  // A table that is recreated loses its indexes without a message.
  const indexes = await indexNames(engine);
  if (indexes.length > 0) throw indexError(engine, indexes);
  if (rows === 0) await engine.run(createEvents('events', plan, zone !== undefined));
  else await rebuild(engine, plan, zone);
}

/** Names of indexes that somebody made on `events`. */
export async function indexNames(engine: Engine): Promise<string[]> {
  const rows = await engine.rows(`
    SELECT index_name AS name
    FROM duckdb_indexes()
    WHERE database_name = current_database() AND table_name = 'events'
    ORDER BY 1`);
  return rows.map((row) => String(row.name));
}

export function indexError(engine: Engine, names: readonly string[]): UserError {
  const what = names.length === 0 ? 'a constraint' : `the index ${names.join(', ')}`;
  return configError(
    `${what} on "events" in ${engine.file} does not let this window in: drop it and run again. Nothing was changed.`,
  );
}

async function alterEach(engine: Engine, added: readonly Typed[], changed: readonly Retyped[], zone: Zone | undefined) {
  for (const column of added) {
    const type = TYPES[column.type].duckdb(zone !== undefined);
    await engine.run(`ALTER TABLE events ADD COLUMN ${identifier(column.name)} ${type}`);
  }
  for (const column of changed) {
    const type = TYPES[column.type].duckdb(zone !== undefined);
    const value = valueAfter(column, zone);
    await engine.run(`ALTER TABLE events ALTER ${identifier(column.name)} SET DATA TYPE ${type} USING (${value})`);
  }
}

/**
 * Rewrites the table: for many columns, each of whose ALTERs takes longer, and for narrowing, whose SQL `USING`
 * refuses.
 */
async function rebuild(engine: Engine, plan: readonly PlannedColumn[], zone: Zone | undefined): Promise<void> {
  const stored = plan.filter(({ before }) => before !== null);
  const into = [...OWN_COLUMNS, ...stored.map(({ name }) => identifier(name))].join(', ');
  const values = stored.map((column) => valueAfter(column, zone));
  const select = ['_key', '_dfinery_window', rescuedAfter(stored, zone), ...values].join(', ');
  await engine.run(createEvents(REBUILT, plan, zone !== undefined));
  await engine.run(`INSERT INTO ${REBUILT} (${into})
    SELECT ${select}
    FROM events`);
  await engine.run('DROP TABLE events');
  await engine.run(`ALTER TABLE ${REBUILT} RENAME TO events`);
}
