import { literal } from '../cells/types/sql.ts';
import type { PeopleFound, PeopleQuery } from '../targets/contract.ts';
import type { Engine } from './session/engine.ts';

/** Where texts lie that may quote a person: the kind of object, the relation, its name, its SQL, and any other text. */
export type NamedTexts = readonly [kind: string, from: string, name: string, sql: string, text: string];

const OF_FILE = 'WHERE database_name = current_database()';

/** The objects of a database file. */
const OBJECTS: readonly NamedTexts[] = [
  ['table', `duckdb_tables() ${OF_FILE}`, 'table_name', 'NULL', 'comment'],
  ['column', `duckdb_columns() ${OF_FILE}`, "table_name || '.' || column_name", 'column_default', 'comment'],
  ['view', `duckdb_views() ${OF_FILE}`, 'view_name', 'sql', 'comment'],
  ['macro', `duckdb_functions() ${OF_FILE}`, 'function_name', 'macro_definition', 'comment'],
  ['index', `duckdb_indexes() ${OF_FILE}`, 'index_name', 'sql', 'comment'],
  ['sequence', `duckdb_sequences() ${OF_FILE}`, 'sequence_name', 'NULL', 'comment'],
  // The labels of an enum are values.
  [
    'type',
    `duckdb_types() ${OF_FILE} AND NOT internal`,
    'type_name',
    "CASE logical_type WHEN 'ENUM' THEN '' END",
    'comment',
  ],
];

/** The ids and unified ids by which a text may name the people of a query. */
export const namesOf = ({ ids }: PeopleQuery, { unifiedIds }: PeopleFound): string[] => [
  ...ids,
  ...unifiedIds.map(({ text }) => text),
];

/**
 * Enum types, and objects whose comment, default or SQL has one of these names (in SQL a literal), of the file and of
 * `others`: they hold no rows, so that a copy of the file keeps them as they are.
 */
export async function namingObjects(engine: Engine, names: readonly string[], others: readonly NamedTexts[] = []) {
  const literals = names.map(literal);
  const found = new Set<string>();
  for (const [kind, from, name, sql, text] of [...OBJECTS, ...others]) {
    for (const row of await engine.rows(`SELECT ${name} AS name, ${sql} AS sql, ${text} AS text FROM ${from}`)) {
      const isNaming =
        row.sql === '' ||
        literals.some((one) => String(row.sql).includes(one)) ||
        names.some((one) => String(row.text ?? '').includes(one));
      if (isNaming) found.add(`${kind} ${row.name}`);
    }
  }
  return [...found].sort();
}
