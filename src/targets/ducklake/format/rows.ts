import type { Engine, Value } from '../../../engine/session/engine.ts';
import CATALOG_TABLES from './catalog.sql';

/** The columns of the tables of a catalog, by name of the table, in their order. */
const CATALOG_COLUMNS: ReadonlyMap<string, readonly string[]> = new Map(
  [...CATALOG_TABLES.matchAll(/^CREATE TABLE (\w+) \(([^;]*)\);/gm)].map(([, table, columns]) => [
    table,
    columns.split(',').map((column) => /\w+/.exec(column)?.[0] ?? ''),
  ]),
);

export const CATALOG_TABLE_NAMES = [...CATALOG_COLUMNS.keys()];

/** A row of a table of the catalog by names of columns; a column that is not named is NULL. */
export type CatalogRow = Readonly<Record<string, Value>>;

export function appendRows(engine: Engine, table: string, rows: readonly CatalogRow[]): Promise<void> {
  const columns = CATALOG_COLUMNS.get(table) ?? [];
  const unknown = rows.flatMap(Object.keys).find((name) => !columns.includes(name));
  if (unknown !== undefined) throw new RangeError(`the table ${table} has no column ${unknown}`);
  return engine.append(
    table,
    rows.map((row) => columns.map((column) => row[column] ?? null)),
  );
}
