import { hmacSql, type IdColumn, isKey } from './id-column.ts';
import { HASH_PATTERN } from './query.ts';
import { nearSql } from './spelling.ts';

// The statements of a look-up. `rows` is SQL of the rows of a table. A table of keys has two columns. `id` is an id of
// the list; `key` is a text that a cell may hold. The pads of a column are the parameters $1 and $2. After
// them comes a JSON of the ids, each with the text that is looked for.

const list = (texts: readonly string[]): string => `[${texts.join(', ')}]`;

/** A relation (id, text) of the JSON. */
const idTexts = ({ pads }: IdColumn): string => `(
      SELECT entry.id AS id, entry.text AS text
      FROM (SELECT unnest(from_json($${pads.length + 1}, '[{"id":"VARCHAR","text":"VARCHAR"}]')) AS entry)
    )`;

/** A relation (text) of all cells of a column. */
const cellsOf = ({ cellTexts }: IdColumn, rows: string): string =>
  `(SELECT unnest(${list(cellTexts)}) AS text FROM ${rows})`;

/** Adds all keys of the ids to a table of keys. */
export const insertKeys = (keys: string, column: IdColumn): string => `
    INSERT INTO ${keys}
    SELECT DISTINCT id, key
    FROM (SELECT id, unnest(${list(column.keysOfId)}) AS key FROM ${idTexts(column)})
    WHERE key <> ''`;

/** Adds the values whose hashes are keys: rows that were loaded before the column was hashed hold them. */
export const insertPlainKeys = (keys: string, column: IdColumn, rows: string): string => `
    INSERT INTO ${keys}
    WITH plain AS (
      SELECT DISTINCT text
      FROM ${cellsOf(column, rows)}
      WHERE text IS NOT NULL AND NOT regexp_full_match(text, '${HASH_PATTERN}')
    )
    SELECT hashed.id, plain.text
    FROM plain
    JOIN ${keys} AS hashed ON hashed.key = ${hmacSql('plain.text')}`;

/** The ids whose keys are in rows, with each unified id of such a row; NULL for a row that names nobody. */
export const unifiedIdsOf = (keys: string, column: IdColumn, unified: IdColumn, rows: string): string => `
    WITH
      rows_of_ids AS (
        SELECT
          ${list(column.cellTexts)} AS cells,
          list_filter(${list(unified.cellTexts)}, lambda unified_id: unified_id IS NOT NULL) AS people
        FROM ${rows}
        WHERE ${column.isAmong(keys)}
      ),
      people_by_key AS (SELECT DISTINCT unnest(cells) AS key, people FROM rows_of_ids)
    SELECT DISTINCT id, unnest(CASE WHEN len(people) = 0 THEN [NULL] ELSE people END) AS text
    FROM people_by_key
    JOIN ${keys} USING (key)`;

/** The unified ids in rows whose HMAC is in the JSON, which is a list here. */
export const suppressedIn = (unified: IdColumn, rows: string): string => `
    SELECT DISTINCT text
    FROM ${cellsOf(unified, rows)}
    WHERE text IS NOT NULL AND ${hmacSql('text')} IN (SELECT unnest(from_json($3, '["VARCHAR"]')))`;

/** The number of rows of each id; a row of several ids counts for each. `rows` are those of the ids. */
export function rowsOfIds(searched: readonly { readonly column: IdColumn; readonly keys: string }[], rows: string) {
  const cells = searched.flatMap(({ column, keys }) =>
    column.cellTexts.map((text) => `{'keys': '${keys}', 'key': ${text}}`),
  );
  const tables = searched.map(({ keys }) => `SELECT id, key, '${keys}' AS keys FROM ${keys}`);
  return `
    WITH
      numbered AS (SELECT row_number() OVER () AS number, ${list(cells)} AS cells FROM ${rows}),
      cells_of_rows AS (SELECT number, unnest(cells) AS cell FROM numbered),
      keys_of_rows AS (SELECT number, cell.keys AS keys, cell.key AS key FROM cells_of_rows),
      keys_of_ids AS (${tables.join(' UNION ALL ')})
    SELECT id, count(DISTINCT number) AS rows
    FROM keys_of_rows
    JOIN keys_of_ids USING (keys, key)
    GROUP BY id`;
}

/** For each id a text of the column that differs only in its spelling, if there is one. */
export function nearIds(column: IdColumn, rows: string): string {
  const near = nearSql('text');
  const forms = column.pads.length === 0 ? [near] : [near, hmacSql(near)];
  return `
    WITH
      forms_of_ids AS (SELECT id, unnest(${list(forms)}) AS form FROM ${idTexts(column)}),
      forms_of_cells AS (
        SELECT ${near} AS form, any_value(text) AS stored
        FROM (SELECT DISTINCT text FROM ${cellsOf(column, rows)})
        GROUP BY form
      )
    SELECT id, any_value(stored) AS stored
    FROM forms_of_ids
    JOIN forms_of_cells USING (form)
    WHERE form <> ''
    GROUP BY id`;
}

/**
 * The unified ids of rows, each with the texts of the column there that are no key of the ids. `rows` are those of
 * people.
 */
export function otherIdsOf(keys: string, column: IdColumn, unified: IdColumn, rows: string): string {
  const otherIds = column.cellTexts.map((text) => `CASE WHEN NOT ${isKey(text, keys)} THEN ${text} END`);
  return `
    WITH
      cells_of_rows AS (SELECT ${list(unified.cellTexts)} AS people, ${list(otherIds)} AS other_ids FROM ${rows}),
      ids_of_people AS (SELECT unnest(people) AS text, other_ids FROM cells_of_rows),
      pairs AS (SELECT text, unnest(other_ids) AS other FROM ids_of_people)
    SELECT DISTINCT text, other
    FROM pairs
    WHERE text IS NOT NULL AND other IS NOT NULL`;
}
