import type { ColumnChange } from '../../../table/changes.ts';
import { isColumnType } from '../../../types/type.ts';
import type { Engine } from '../../sql/engine/engine.ts';
import { hasTable } from './state.ts';

const CREATE_CHANGES = `CREATE TABLE IF NOT EXISTS _dfinery_changes (
  v INTEGER, changed_at TIMESTAMPTZ, source_name VARCHAR, change VARCHAR, from_type VARCHAR, to_type VARCHAR,
  "window" VARCHAR, shape VARCHAR)`;
const VERSION = 1;

/** Adds changes to the table `_dfinery_changes`, which is made where there is none. Inside the window's transaction. */
export async function writeChanges(engine: Engine, changes: readonly ColumnChange[]): Promise<void> {
  if (changes.length === 0) return;
  await engine.run(CREATE_CHANGES);
  await engine.run(
    `INSERT INTO _dfinery_changes SELECT ${VERSION}, CAST(c."changedAt" AS TIMESTAMPTZ), c."sourceName", c.change, c."fromType",
      c."toType", c.window, c.shape
    FROM (SELECT unnest(from_json($1, ${SHAPE})) AS c)`,
    [JSON.stringify(changes)],
  );
}

const SHAPE = `'[{"changedAt":"VARCHAR","sourceName":"VARCHAR","change":"VARCHAR","fromType":"VARCHAR","toType":"VARCHAR",
"window":"VARCHAR","shape":"VARCHAR"}]'`;

/** Source names that a window lacked before. */
export async function missedColumns(engine: Engine): Promise<Set<string>> {
  if (!(await hasTable(engine, '_dfinery_changes'))) return new Set();
  const rows = await engine.rows(`SELECT DISTINCT source_name FROM _dfinery_changes WHERE change = 'missing'`);
  return new Set(rows.map(({ source_name }) => String(source_name)));
}

/** The changes of a file, oldest first, of very many the latest; none for a file without the table. */
export async function readChanges(engine: Engine, most: number): Promise<ColumnChange[]> {
  if (!(await hasTable(engine, '_dfinery_changes'))) return [];
  const rows = await engine.rows(
    `SELECT strftime(timezone('UTC', changed_at), '%Y-%m-%dT%H:%M:%S.%gZ') AS changed_at, source_name, change, from_type,
      to_type, "window", shape
    FROM (SELECT *, rowid AS place FROM _dfinery_changes ORDER BY place DESC LIMIT ${most}) ORDER BY place`,
  );
  const typeOf = (value: unknown) => (isColumnType(value) ? value : null);
  return rows.map((row) => ({
    changedAt: String(row.changed_at),
    sourceName: String(row.source_name),
    change: row.change as ColumnChange['change'],
    fromType: typeOf(row.from_type),
    toType: typeOf(row.to_type),
    window: String(row.window),
    shape: row.shape === null ? null : String(row.shape),
  }));
}
