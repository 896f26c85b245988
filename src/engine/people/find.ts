import { isPlaceholder } from '../../base/visible-text.ts';
import { EXTERNAL_ID, UNIFIED_ID } from '../../cells/columns/groups.ts';
import { anyOf, matches } from '../../cells/types/sql.ts';
import { hashedIn, serviceIn } from '../../extract/export-state.ts';
import type { PlaceState } from '../../table/place-state.ts';
import { columnsNamed, hmacSql, IdColumn, isKey, list, padsOf, type SearchedTable } from './id-column.ts';
import {
  HASH_PATTERN,
  isHash,
  joinPeople,
  NOBODY,
  type PeopleById,
  type PeopleFound,
  type PeopleQuery,
  personOf,
} from './query.ts';
import { nearSql } from './spelling.ts';

/** The tables of a place. */
export interface SearchedPlace {
  readonly events: SearchedTable & { readonly state: PlaceState };
  /** Undefined if the place has no profiles. */
  readonly profiles: SearchedTable | undefined;
}

export interface PlaceLookup {
  /** Of both tables together. */
  readonly people: PeopleFound;
  /** SQL, TRUE for a row that a purge removes, else FALSE; valid on this engine until the next look-up. */
  readonly conditions: { readonly events: string; readonly profiles: string };
}

/**
 * Finds people in both tables of a place. Whoever is found in one of them leaves both. Throws a configuration failure
 * for a column whose hashes need another key.
 */
export async function findPeople({ events, profiles }: SearchedPlace, query: PeopleQuery): Promise<PlaceLookup> {
  const askedProfiles = profiles !== undefined && query.asksProfiles === true;
  const inEvents = new TableSearch(events, query, query.column);
  const inProfiles = profiles && new TableSearch(profiles, query, askedProfiles ? EXTERNAL_ID : undefined);

  // 1. The external ids that rows hold, and the people of these rows.
  const ofEvents = await inEvents.searchIds();
  const ofProfiles = await inProfiles?.searchIds();
  // 2. All rows of these people, of those that other ways found, and of those on the suppression list.
  const eventRows = await inEvents.searchPeople(ofEvents, joinPeople(query.peopleOf, ofProfiles));
  const profileRows = ofProfiles && (await inProfiles?.searchPeople(ofProfiles, joinPeople(query.peopleOf, ofEvents)));

  const { state } = events;
  return {
    people: {
      ...together(profileRows === undefined ? [eventRows] : [eventRows, profileRows], query),
      peopleOf: joinPeople(ofEvents, ofProfiles),
      askedProfiles,
      column: inEvents.column?.source,
      service: serviceIn(state.exportState),
      suppressionLength: state.suppressionLength ?? 0,
    },
    conditions: { events: eventRows.condition, profiles: profileRows?.condition ?? 'false' },
  };
}

/** What one table has of the people. */
interface TablePeople extends Pick<PeopleFound, 'unifiedIds' | 'rowsOf' | 'near' | 'rows' | 'shared' | 'warnings'> {
  /** SQL, TRUE for a row that a purge removes, else FALSE. */
  readonly condition: string;
  /** The persons of the table who are on the suppression list. */
  readonly suppressed: readonly string[];
  /** Number of rows that a purge removes, also those of others on the suppression list. */
  readonly leaving: number;
}

/** What the tables of a place have together. */
function together(tables: readonly TablePeople[], { hashKey }: PeopleQuery) {
  const rowsOf = new Map<string, number>();
  for (const [id, rows] of tables.flatMap((table) => [...table.rowsOf])) rowsOf.set(id, (rowsOf.get(id) ?? 0) + rows);
  const unifiedIds = new Map(tables.flatMap((table) => table.unifiedIds.map((id) => [id.text, id] as const)));
  const persons = new Set([...unifiedIds.keys()].map((text) => personOf(text, hashKey)));
  const others = new Set(tables.flatMap(({ suppressed }) => suppressed.filter((person) => !persons.has(person))));
  const sum = (key: 'rows' | 'leaving') => tables.reduce((total, table) => total + table[key], 0);
  return {
    unifiedIds: [...unifiedIds.values()],
    persons: persons.size,
    rowsOf,
    near: new Map(tables.toReversed().flatMap((table) => [...table.near].filter(([id]) => !rowsOf.has(id)))),
    rows: sum('rows'),
    shared: new Set(tables.flatMap((table) => [...table.shared])),
    others: { persons: others.size, rows: sum('leaving') - sum('rows') },
    warnings: [...new Set(tables.flatMap(({ warnings }) => warnings))],
  };
}

/** A text that is looked for, and its external id; an empty one for the suppression list. */
interface IdText {
  readonly id: string;
  readonly text: string;
}

/** A relation (id, text) of the value `$texts`, a JSON of `IdText`. */
const ID_TEXTS = `(
      SELECT entry.id AS id, entry.text AS text
      FROM (SELECT unnest(from_json($texts, '[{"id":"VARCHAR","text":"VARCHAR"}]')) AS entry)
    )`;

/** A text of a cell that is no hash: rows that were loaded before the column was hashed hold it. */
const IS_PLAIN = `text IS NOT NULL AND NOT ${matches('text', HASH_PATTERN)}`;

/**
 * The search of one table. It makes tables of keys: temporary tables of the engine with the columns `id` and `key`. `id`
 * is an external id. `key` is a text that a cell may hold for it.
 */
class TableSearch {
  /** The query's column; undefined if the table lacks it. */
  readonly column: IdColumn | undefined;
  readonly #table: SearchedTable;
  /** The rows, as SQL; empty if there are none, and nothing is to be asked. */
  readonly #rows: string;
  readonly #query: PeopleQuery;
  readonly #unified: IdColumn;
  /** Table of keys of the external ids, for the column. */
  readonly #idKeys: string;
  /** Table of keys of the people, for `df_unified_id`. */
  readonly #peopleKeys: string;
  /** Table of keys of the suppression list, for `df_unified_id`. */
  readonly #suppressedKeys: string;

  constructor(table: SearchedTable, query: PeopleQuery, column: string | undefined) {
    this.#table = table;
    this.#rows = table.from ?? '';
    this.#query = query;
    this.#unified = new IdColumn(table, query, UNIFIED_ID);
    const isThere = column !== undefined && columnsNamed(table.state, column).length > 0;
    this.column = isThere ? new IdColumn(table, query, column) : undefined;
    const keysOf = (name: string) => `temp.main._dfinery_${name}_${table.table}`;
    this.#idKeys = keysOf('ids');
    this.#peopleKeys = keysOf('people');
    this.#suppressedKeys = keysOf('suppressed');
  }

  /** The external ids that the column holds, each with the people of its rows; these may name nobody. */
  async searchIds(): Promise<PeopleById> {
    const peopleOf = new Map<string, readonly string[]>();
    if (this.#rows === '') return peopleOf;
    for (const keys of [this.#idKeys, this.#peopleKeys, this.#suppressedKeys]) {
      await this.#table.engine.run(`CREATE OR REPLACE TEMP TABLE ${keys} (id VARCHAR, key VARCHAR)`);
    }
    if (this.column === undefined) return peopleOf;
    const ids = this.#query.ids.map((id) => ({ id, text: id }));
    await this.#addKeys(this.column, this.#idKeys, ids);
    for (const { id, text } of await this.#peopleWith(this.column, this.#idKeys)) {
      const texts = peopleOf.get(id) ?? [];
      peopleOf.set(id, text === undefined ? texts : [...texts, text]);
    }
    return peopleOf;
  }

  /**
   * Finds and counts the rows of the people. `inRows`: what `searchIds` gave. `elsewhere`: the people of the ids as the
   * other table and the other ways have them.
   */
  async searchPeople(inRows: PeopleById, elsewhere: PeopleById): Promise<TablePeople> {
    const warnings = [...(this.column?.hashWarnings() ?? []), ...this.#hashWarnings(elsewhere)];
    if (this.#rows === '') return { ...NO_ROWS, warnings };
    const peopleOf = joinPeople(inRows, elsewhere);
    const people = this.#query.ids
      .flatMap((id) => (peopleOf.get(id) ?? []).map((text) => ({ id, text })))
      .filter(({ text }) => !isPlaceholder(text));
    await this.#addKeys(this.#unified, this.#peopleKeys, people);
    const suppressed = await this.#suppressed();
    const suppressedTexts = suppressed.map((text) => ({ id: '', text }));
    await this.#addKeys(this.#unified, this.#suppressedKeys, suppressedTexts);

    const { engine } = this.#table;
    const { hashKey } = this.#query;
    const inColumn = this.column === undefined ? [] : [this.column.isAmong(this.#idKeys)];
    const isOfIds = anyOf([...inColumn, this.#unified.isAmong(this.#peopleKeys)]);
    const condition = anyOf([isOfIds, this.#unified.isAmong(this.#suppressedKeys)]);
    const rowsOfPeople = `${this.#rows} WHERE ${isOfIds}`;
    const unifiedIds = (await this.#peopleWith(this.#unified, this.#peopleKeys)).flatMap(({ text }) => text ?? []);
    return {
      condition,
      warnings,
      suppressed: suppressed.map((text) => personOf(text, hashKey)),
      unifiedIds: [...new Set(unifiedIds)].map((text) => ({ text, hashKey: this.#unified.hashKeyOf(text) })),
      rowsOf: await this.#rowsOf(rowsOfPeople),
      near: await this.#near(this.#query.ids.filter((id) => !inRows.has(id))),
      rows: await engine.count(rowsOfPeople),
      leaving: await engine.count(`${this.#rows} WHERE ${condition}`),
      shared: await this.#shared(),
    };
  }

  /**
   * Warnings about hashes of `df_unified_id`. A plain unified id needs the key. A hash is found in rows that hold the
   * same hash. If an older row holds `u1` in plain, only the key tells that both are one person.
   */
  #hashWarnings(elsewhere: PeopleById): string[] {
    const { place, state } = this.#table;
    const isPlain = [...elsewhere.values()].flat().some((text) => !isHash(text));
    if (isPlain || this.#query.column === UNIFIED_ID) return this.#unified.hashWarnings();
    if (this.#unified.hasOtherKey) {
      return [
        `${place}: some rows have df_unified_id hashed under another key, and its people may come back with a sync. ` +
          'Let profiles or a mapping name them, too.',
      ];
    }
    if (!this.#unified.lacksKey || hashedIn(state.exportState).length < 2) return [];
    return [
      `${place}: only some rows have df_unified_id hashed. Without that hash_key, rows of these people may stay.`,
    ];
  }

  /** Adds all keys of the texts to a table of keys. */
  async #addKeys(column: IdColumn, keys: string, texts: readonly IdText[]): Promise<void> {
    const { engine } = this.#table;
    const keysOfTexts = `
      INSERT INTO ${keys}
      SELECT DISTINCT id, key
      FROM (SELECT id, unnest(${list(column.keysOfId)}) AS key FROM ${ID_TEXTS})
      WHERE key <> ''`;
    await engine.run(keysOfTexts, { ...column.pads, texts: JSON.stringify(texts) });
    if (column.pads === undefined || !column.isMixed) return;
    const plainKeysOfHashes = `
      INSERT INTO ${keys}
      WITH plain AS (SELECT DISTINCT text FROM ${column.cellsIn(this.#rows)} WHERE ${IS_PLAIN})
      SELECT hashed.id, plain.text
      FROM plain
      JOIN ${keys} AS hashed ON hashed.key = ${hmacSql('plain.text')}`;
    await engine.run(plainKeysOfHashes, { ...column.pads });
  }

  /** The external ids with keys in rows, each with a unified id of such a row; undefined if it names nobody. */
  async #peopleWith(column: IdColumn, keys: string) {
    const rows = await this.#table.engine.rows(`
      WITH
        rows_of_ids AS (
          SELECT
            ${list(column.cellTexts)} AS cells,
            list_filter(${list(this.#unified.cellTexts)}, lambda unified_id: unified_id IS NOT NULL) AS people
          FROM ${this.#rows}
          WHERE ${column.isAmong(keys)}
        ),
        people_by_key AS (SELECT DISTINCT unnest(cells) AS key, people FROM rows_of_ids)
      SELECT DISTINCT id, unnest(CASE WHEN len(people) = 0 THEN [NULL] ELSE people END) AS text
      FROM people_by_key
      JOIN ${keys} USING (key)`);
    return rows.map(({ id, text }) => ({
      id: String(id),
      text: typeof text === 'string' && !isPlaceholder(text) ? text : undefined,
    }));
  }

  /** The unified ids of the table that are on the suppression list. */
  async #suppressed(): Promise<string[]> {
    const { suppressed } = this.#query;
    if (suppressed === undefined || suppressed.hmacs.length === 0) return [];
    const sql = `
      SELECT DISTINCT text
      FROM ${this.#unified.cellsIn(this.#rows)}
      WHERE text IS NOT NULL AND ${hmacSql('text')} IN (SELECT unnest(from_json($hmacs, '["VARCHAR"]')))`;
    const values = { ...padsOf(suppressed.key), hmacs: JSON.stringify(suppressed.hmacs) };
    const rows = await this.#table.engine.rows(sql, values);
    return rows.map(({ text }) => String(text));
  }

  /** The number of rows of each id; a row of several ids counts for each. */
  async #rowsOf(rowsOfPeople: string): Promise<ReadonlyMap<string, number>> {
    const searched = [{ column: this.#unified, keys: this.#peopleKeys }];
    if (this.column !== undefined) searched.push({ column: this.column, keys: this.#idKeys });
    const cells = searched.flatMap(({ column, keys }) =>
      column.cellTexts.map((text) => `{'keys': '${keys}', 'key': ${text}}`),
    );
    const keysOfIds = searched.map(({ keys }) => `SELECT id, key, '${keys}' AS keys FROM ${keys}`);
    const rows = await this.#table.engine.rows(`
      WITH
        numbered AS (SELECT row_number() OVER () AS number, ${list(cells)} AS cells FROM ${rowsOfPeople}),
        cells_of_rows AS (SELECT number, unnest(cells) AS cell FROM numbered),
        keys_of_rows AS (SELECT number, cell.keys AS keys, cell.key AS key FROM cells_of_rows),
        keys_of_ids AS (${keysOfIds.join(' UNION ALL ')})
      SELECT id, count(DISTINCT number) AS rows
      FROM keys_of_rows
      JOIN keys_of_ids USING (keys, key)
      GROUP BY id`);
    return new Map(rows.map(({ id, rows: count }) => [String(id), Number(count)]));
  }

  /** For each of these ids a text of the column that differs only in its spelling, if there is one. */
  async #near(missing: readonly string[]): Promise<ReadonlyMap<string, string>> {
    if (this.column === undefined || missing.length === 0) return new Map();
    const { pads } = this.column;
    const near = nearSql('text');
    const forms = pads === undefined ? [near] : [near, hmacSql(near)];
    const sql = `
      WITH
        forms_of_ids AS (SELECT id, unnest(${list(forms)}) AS form FROM ${ID_TEXTS}),
        forms_of_cells AS (
          SELECT ${near} AS form, any_value(text) AS stored
          FROM (SELECT DISTINCT text FROM ${this.column.cellsIn(this.#rows)})
          GROUP BY form
        )
      SELECT id, any_value(stored) AS stored
      FROM forms_of_ids
      JOIN forms_of_cells USING (form)
      WHERE form <> ''
      GROUP BY id`;
    const texts = JSON.stringify(missing.map((id) => ({ id, text: id })));
    const rows = await this.#table.engine.rows(sql, { ...pads, texts });
    return new Map(rows.map(({ id, stored }) => [String(id), String(stored)]));
  }

  /** The people whose rows also have another id in the column. */
  async #shared(): Promise<ReadonlySet<string>> {
    if (this.column === undefined) return new Set();
    const otherIds = this.column.cellTexts.map((text) => `CASE WHEN NOT ${isKey(text, this.#idKeys)} THEN ${text} END`);
    const rows = await this.#table.engine.rows(`
      WITH
        cells_of_rows AS (
          SELECT ${list(this.#unified.cellTexts)} AS people, ${list(otherIds)} AS other_ids
          FROM ${this.#rows}
          WHERE ${this.#unified.isAmong(this.#peopleKeys)}
        ),
        ids_of_people AS (SELECT unnest(people) AS text, other_ids FROM cells_of_rows),
        pairs AS (SELECT text, unnest(other_ids) AS other FROM ids_of_people)
      SELECT DISTINCT text, other
      FROM pairs
      WHERE text IS NOT NULL AND other IS NOT NULL`);
    const shared = rows.filter(({ other }) => !isPlaceholder(String(other)));
    return new Set(shared.map(({ text }) => personOf(String(text), this.#query.hashKey)));
  }
}

const NO_ROWS = { ...NOBODY, suppressed: [], leaving: 0, condition: 'false' };

/**
 * Yields the rows that meet a look-up's conditions, as JSON objects with the members `table` and `row`. A row is an
 * object without the columns that are null.
 */
export async function* jsonOfRows(
  { events, profiles }: SearchedPlace,
  conditions: PlaceLookup['conditions'],
): AsyncGenerator<string> {
  yield* rowsWhere(events, conditions.events);
  if (profiles !== undefined) yield* rowsWhere(profiles, conditions.profiles);
}

async function* rowsWhere({ engine, table, from }: SearchedTable, condition: string): AsyncGenerator<string> {
  if (from === undefined) return;
  const rows = engine.stream(`
    SELECT CAST(json_merge_patch('{}', to_json(e)) AS VARCHAR) AS row
    FROM (SELECT * FROM ${from} WHERE ${condition}) AS e`);
  for await (const { row } of rows) yield `{"table":"${table}","row":${row}}`;
}
