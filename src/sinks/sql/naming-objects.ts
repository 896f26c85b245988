import { literal } from '../../types/sql.ts';
import type { PeopleFound, PeopleQuery } from '../target.ts';
import type { Engine, Row } from './engine/engine.ts';

/** The objects of a database file whose texts may quote a person: the function of DuckDB, the name, the text of SQL. */
const OBJECTS = [
  ['table', 'duckdb_tables()', 'table_name', 'NULL'],
  ['column', 'duckdb_columns()', "table_name || '.' || column_name", 'column_default'],
  ['view', 'duckdb_views()', 'view_name', 'sql'],
  ['macro', 'duckdb_functions()', 'function_name', 'macro_definition'],
  ['index', 'duckdb_indexes()', 'index_name', 'sql'],
  ['sequence', 'duckdb_sequences()', 'sequence_name', 'NULL'],
  // The labels of an enum are values.
  ['type', '(FROM duckdb_types() WHERE NOT internal)', 'type_name', "CASE WHEN logical_type = 'ENUM' THEN '' END"],
] as const;

/** The ids and unified ids by which a text may name the people of a query. */
export const namesOf = ({ ids }: PeopleQuery, { unifiedIds }: PeopleFound): string[] => [
  ...ids,
  ...unifiedIds.map(({ text }) => text),
];

/** Tells of SQL, and of any other text, whether it has one of these names: in SQL they are literals. */
export function finderOf(names: readonly string[]) {
  const literals = names.map(literal);
  return {
    inSql: (sql: unknown) => literals.some((name) => String(sql).includes(name)),
    inText: (text: unknown) => names.some((name) => String(text).includes(name)),
  };
}

/**
 * Enum types, and objects whose comment, default or SQL has one of these names: they hold no rows, so that a copy of the
 * file keeps them as they are.
 */
export async function namingObjects(engine: Engine, names: readonly string[]): Promise<string[]> {
  const { inSql, inText } = finderOf(names);
  const isNaming = (row: Row) => row.sql === '' || inSql(row.sql) || inText(row.comment ?? '');
  const found = new Set<string>();
  for (const [kind, from, name, sql] of OBJECTS) {
    const rows = await engine.rows(
      `SELECT ${name} AS name, ${sql} AS sql, comment FROM ${from}
      WHERE database_name = current_database() AND (${sql} IS NOT NULL OR comment IS NOT NULL)`,
    );
    for (const row of rows) if (isNaming(row)) found.add(`${kind} ${row.name}`);
  }
  return [...found].sort();
}
