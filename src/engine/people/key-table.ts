import { anyOfSql, listSql, matchesSql } from '../../base/sql.ts';
import { isPlaceholder } from '../../base/visible-text.ts';
import { hmacSql } from './hmac-sql.ts';
import type { IdColumn, SearchedTable } from './id-column.ts';
import { HASH_PATTERN } from './query.ts';

/** A text that is looked for, and its external id; an empty one for the suppression list. */
interface IdText {
  readonly id: string;
  readonly text: string;
}

/** A relation (id, text) of the value `$texts`, a JSON of `IdText`. */
export const ID_TEXTS = `(
      SELECT entry.id AS id, entry.text AS text
      FROM (SELECT unnest(from_json($texts, '[{"id":"VARCHAR","text":"VARCHAR"}]')) AS entry)
    )`;

/** SQL, TRUE for a text that is no hash. Rows that were loaded before the column was hashed hold such texts. */
const PLAIN_SQL = `text IS NOT NULL AND NOT ${matchesSql('text', HASH_PATTERN)}`;

/**
 * A temporary table of the engine with the columns `id` and `key`. `id` is an external id. `key` is a text that a cell
 * of one column may hold for it.
 */
export class KeyTable {
  readonly name: string;
  readonly column: IdColumn;
  readonly #table: SearchedTable;

  private constructor(table: SearchedTable, name: string, column: IdColumn) {
    this.#table = table;
    this.name = name;
    this.column = column;
  }

  /** Makes an empty table. `purpose` is part of its name. */
  static async create(table: SearchedTable, purpose: string, column: IdColumn): Promise<KeyTable> {
    const name = `temp.main._dfinery_${purpose}_${table.name}`;
    await table.engine.run(`CREATE OR REPLACE TEMP TABLE ${name} (id VARCHAR, key VARCHAR)`);
    return new KeyTable(table, name, column);
  }

  /** Adds all keys of the texts. `rows`: the rows whose cells may hold them. */
  async add(texts: readonly IdText[], rows: string): Promise<void> {
    const { engine } = this.#table;
    const { pads, keysOfId, isMixed } = this.column;
    const keysOfTexts = `
      INSERT INTO ${this.name}
      SELECT DISTINCT id, key
      FROM (SELECT id, unnest(${listSql(keysOfId)}) AS key FROM ${ID_TEXTS})
      WHERE key <> ''`;
    await engine.run(keysOfTexts, { ...pads, texts: JSON.stringify(texts) });
    if (pads === undefined || !isMixed) return;
    const plainKeysOfHashes = `
      INSERT INTO ${this.name}
      WITH plain AS (SELECT DISTINCT text FROM ${this.column.cellsInSql(rows)} WHERE ${PLAIN_SQL})
      SELECT hashed.id, plain.text
      FROM plain
      JOIN ${this.name} AS hashed ON hashed.key = ${hmacSql('plain.text')}`;
    await engine.run(plainKeysOfHashes, { ...pads });
  }

  /** SQL, TRUE if a text is a key, else FALSE. */
  keySql(text: string): string {
    return `coalesce(${text} IN (SELECT key FROM ${this.name}), false)`;
  }

  /** SQL, TRUE for a row with a key in one of its cells, else FALSE. */
  get rowSql(): string {
    return anyOfSql(this.column.cellTexts.map((text) => this.keySql(text)));
  }

  /** The external ids with keys in rows. Each has a unified id of such a row; undefined if it names nobody. */
  async peopleIn(rows: string, unifiedColumn: IdColumn) {
    const pairs = await this.#table.engine.rows(`
      WITH
        rows_of_ids AS (
          SELECT
            ${listSql(this.column.cellTexts)} AS cells,
            list_filter(${listSql(unifiedColumn.cellTexts)}, lambda unified_id: unified_id IS NOT NULL) AS people
          FROM ${rows}
          WHERE ${this.rowSql}
        ),
        people_by_key AS (SELECT DISTINCT unnest(cells) AS key, people FROM rows_of_ids)
      SELECT DISTINCT id, unnest(CASE WHEN len(people) = 0 THEN [NULL] ELSE people END) AS text
      FROM people_by_key
      JOIN ${this.name} USING (key)`);
    return pairs.map(({ id, text }) => ({
      id: String(id),
      text: typeof text === 'string' && !isPlaceholder(text) ? text : undefined,
    }));
  }
}
