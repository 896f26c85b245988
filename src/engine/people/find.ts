import { isPlaceholder } from '../../base/placeholder.ts';
import { EXTERNAL_ID, UNIFIED_ID } from '../../cells/columns/groups.ts';
import { anyOf } from '../../cells/types/sql.ts';
import { hashedIn, serviceIn } from '../../extract/export-state.ts';
import { columnsNamed, hmacSql, IdColumn, isKey, padsOf, type SearchedTable } from './id-column.ts';
import {
  HASH_PATTERN,
  isHash,
  joinPeople,
  NOBODY,
  type PeopleFound,
  type PeopleOfIds,
  type PeopleQuery,
  personOf,
  type SuppressedPeople,
} from './query.ts';
import { nearSql } from './spelling.ts';

/** The tables of a place. */
export interface SearchedPlace {
  readonly events: SearchedTable;
  /** Undefined if the place has no profiles. */
  readonly profiles: SearchedTable | undefined;
}

export interface PlaceLookup {
  /** Of both tables together. */
  readonly found: PeopleFound;
  /** SQL, TRUE for a row that a purge removes, else FALSE; valid on this engine until the next look-up. */
  readonly conditions: { readonly events: string; readonly profiles: string };
}

/**
 * Finds people in both tables of a place. Whoever is found in one of them leaves both. Throws a configuration failure
 * for a column whose hashes need another key.
 */
export async function findPeople({ events, profiles }: SearchedPlace, query: PeopleQuery): Promise<PlaceLookup> {
  const hasProfiles = profiles !== undefined && query.asksProfiles === true;
  const inEvents = new TableSearch(events, query, query.column);
  const inProfiles = profiles && new TableSearch(profiles, query, hasProfiles ? EXTERNAL_ID : undefined);
  const searches = inProfiles === undefined ? [inEvents] : [inEvents, inProfiles];

  // 1. The ids that rows hold, and the people of these rows.
  for (const search of searches) await search.searchIds();
  // 2. All rows of these people, of those that other ways found, and of those on the suppression list.
  for (const search of searches) {
    const others = searches.filter((other) => other !== search);
    await search.searchPeople(joinPeople(query.people, ...others.map(({ peopleOf }) => peopleOf)));
  }
  // 3. What the conditions meet.
  const counts: TableCounts[] = [];
  for (const search of searches) counts.push(await search.count());

  const { state } = events;
  return {
    found: {
      ...sumOf(counts, query),
      peopleOf: joinPeople(...searches.map(({ peopleOf }) => peopleOf)),
      hasProfiles,
      column: inEvents.column?.source,
      service: serviceIn(state.exportState),
      suppressionLength: state.suppressionLength ?? 0,
      warnings: [...new Set(searches.flatMap(({ warnings }) => warnings))],
    },
    conditions: { events: inEvents.condition, profiles: inProfiles?.condition ?? 'false' },
  };
}

/** What one table has of the people. */
interface TableCounts extends Pick<PeopleFound, 'unifiedIds' | 'rowsOf' | 'near' | 'rows' | 'shared'> {
  /** The unified ids of the table that are on the suppression list. */
  readonly suppressed: readonly string[];
  /** Number of rows that a purge removes, also those of others on the suppression list. */
  readonly leaving: number;
}

const NO_ROWS: TableCounts = { ...NOBODY, suppressed: [], leaving: 0 };

/** What the tables of a place have together. */
function sumOf(counts: readonly TableCounts[], { hashKey }: PeopleQuery) {
  const rowsOf = new Map<string, number>();
  for (const [id, rows] of counts.flatMap((table) => [...table.rowsOf])) rowsOf.set(id, (rowsOf.get(id) ?? 0) + rows);
  const unifiedIds = new Map(counts.flatMap((table) => table.unifiedIds.map((id) => [id.text, id] as const)));
  const people = new Set([...unifiedIds.keys()].map((text) => personOf(text, hashKey)));
  const others = new Set(counts.flatMap((table) => table.suppressed).map((text) => personOf(text, hashKey)));
  const rows = counts.reduce((sum, table) => sum + table.rows, 0);
  return {
    unifiedIds: [...unifiedIds.values()],
    people: people.size,
    rowsOf,
    near: new Map(counts.toReversed().flatMap((table) => [...table.near].filter(([id]) => !rowsOf.has(id)))),
    rows,
    shared: Math.max(...counts.map((table) => table.shared)),
    others: {
      people: [...others].filter((person) => !people.has(person)).length,
      rows: counts.reduce((sum, table) => sum + table.leaving, 0) - rows,
    },
  };
}

/** A text that is looked for, and the id of the list for which it is. */
interface IdText {
  readonly id: string;
  readonly text: string;
}

/** The search of one table. Its condition is complete after `searchPeople`. */
class TableSearch {
  /** The query's column; undefined if the table lacks it. */
  readonly column: IdColumn | undefined;
  readonly warnings: string[] = [];
  /** The ids that the column holds, each with the unified ids of its rows; an empty list if these name nobody. */
  readonly peopleOf = new Map<string, readonly string[]>();
  readonly #table: SearchedTable;
  /** The rows, as SQL; empty if there are none, and nothing is to be asked. */
  readonly #from: string;
  readonly #query: PeopleQuery;
  readonly #unified: IdColumn;
  /**
   * Temporary tables of the keys of ids: `ids` for the column; `people` for the unified ids of the ids, `others` for
   * those of the suppression list.
   */
  readonly #keys: Readonly<Record<'ids' | 'people' | 'others', string>>;
  /** The unified ids of the table that are on the suppression list. */
  #suppressed: readonly string[] = [];

  constructor(table: SearchedTable, query: PeopleQuery, column: string | undefined) {
    this.#table = table;
    this.#from = table.from ?? '';
    this.#query = query;
    this.#unified = new IdColumn(table, query, UNIFIED_ID);
    const isThere = column !== undefined && columnsNamed(table.state, column).length > 0;
    this.column = isThere ? new IdColumn(table, query, column) : undefined;
    this.warnings.push(...(this.column?.hashWarnings() ?? []));
    const keysOf = (name: string) => `temp.main._dfinery_${name}_${table.table}`;
    this.#keys = { ids: keysOf('ids'), people: keysOf('people'), others: keysOf('others') };
  }

  /** SQL, TRUE for a row that a purge removes, else FALSE. */
  get condition(): string {
    if (this.#from === '') return 'false';
    return anyOf([this.#ofIds, this.#unified.isAmong(this.#keys.others)]);
  }

  /** SQL, TRUE for a row of the ids, else FALSE. */
  get #ofIds(): string {
    const { ids, people } = this.#keys;
    return anyOf([...(this.column === undefined ? [] : [this.column.isAmong(ids)]), this.#unified.isAmong(people)]);
  }

  async searchIds(): Promise<void> {
    if (this.#from === '') return;
    for (const table of Object.values(this.#keys)) {
      await this.#table.engine.run(`CREATE OR REPLACE TEMP TABLE ${table} (id VARCHAR, key VARCHAR)`);
    }
    if (this.column === undefined) return;
    const ids = this.#query.ids.map((id) => ({ id, text: id }));
    await this.#addKeys(this.column, this.#keys.ids, ids);
    for (const { id, text } of await this.#unifiedIdsOf(this.column, this.#keys.ids)) {
      const texts = this.peopleOf.get(id) ?? [];
      this.peopleOf.set(id, text === undefined ? texts : [...texts, text]);
    }
  }

  /** `elsewhere`: the people of the ids as the other table and the other ways have them. */
  async searchPeople(elsewhere: PeopleOfIds): Promise<void> {
    const unified = this.#unified;
    this.#warnOfHashes(elsewhere);
    if (this.#from === '') return;
    const { ids, suppressed } = this.#query;
    const people = joinPeople(this.peopleOf, elsewhere);
    const texts = ids.flatMap((id) => (people.get(id) ?? []).map((text) => ({ id, text })));
    const named = texts.filter(({ text }) => !isPlaceholder(text));
    await this.#addKeys(unified, this.#keys.people, named);
    this.#suppressed = suppressed === undefined ? [] : await this.#unifiedIdsOn(suppressed);
    const others = this.#suppressed.map((text) => ({ id: '', text }));
    await this.#addKeys(unified, this.#keys.others, others);
  }

  /** Counts the rows that meet the condition, and the people in them. */
  async count(): Promise<TableCounts> {
    const { engine } = this.#table;
    if (this.#from === '') return NO_ROWS;
    const named = (await this.#unifiedIdsOf(this.#unified, this.#keys.people)).flatMap(({ text }) => text ?? []);
    return {
      unifiedIds: [...new Set(named)].map((text) => ({ text, hashKey: this.#unified.hashKeyOf(text) })),
      suppressed: this.#suppressed,
      rowsOf: await this.#rowsOf(),
      near: this.column === undefined ? new Map() : await this.#near(this.column),
      rows: await engine.count(`${this.#from} WHERE ${this.#ofIds}`),
      leaving: await engine.count(`${this.#from} WHERE ${this.condition}`),
      shared: this.column === undefined ? 0 : await this.#shared(this.column),
    };
  }

  /**
   * Rows may be missed because only some hold df_unified_id hashed. If all hold it hashed in one way, people whom rows
   * name are found by what the rows hold; a plain unified id needs the key.
   */
  #warnOfHashes(elsewhere: PeopleOfIds): void {
    const { place, state } = this.#table;
    const isPlain = [...elsewhere.values()].flat().some((text) => !isHash(text));
    if (isPlain || this.#query.column === UNIFIED_ID) this.warnings.push(...this.#unified.hashWarnings());
    else if (this.#unified.lacksKey && hashedIn(state.exportState).length > 1) {
      this.warnings.push(
        `${place}: only some rows have df_unified_id hashed. Without that hash_key, rows of these people may stay.`,
      );
    }
  }

  /** Adds all keys of the texts to a table. */
  async #addKeys(column: IdColumn, table: string, idTexts: readonly IdText[]): Promise<void> {
    const { engine } = this.#table;
    const { keysOfId, pads, isMixed, cellTexts } = column;
    await engine.run(
      `
      INSERT INTO ${table}
      SELECT DISTINCT id, key
      FROM (SELECT id, unnest([${keysOfId.join(', ')}]) AS key FROM ${idTextsSql(pads)})
      WHERE key <> ''`,
      [...pads, JSON.stringify(idTexts)],
    );
    if (pads.length === 0 || !isMixed) return;
    // Rows that were loaded before the column was hashed hold the values whose hashes are keys.
    await engine.run(
      `
      INSERT INTO ${table}
      SELECT hashed.id, plain.text
      FROM (
        SELECT DISTINCT text
        FROM (SELECT unnest([${cellTexts.join(', ')}]) AS text FROM ${this.#from})
        WHERE text IS NOT NULL AND NOT regexp_full_match(text, '${HASH_PATTERN}')
      ) AS plain
      JOIN ${table} AS hashed ON hashed.key = ${hmacSql('plain.text')}`,
      [...pads],
    );
  }

  /** The ids of a table of keys that are in rows, with a unified id of such a row each; undefined if it names nobody. */
  async #unifiedIdsOf(column: IdColumn, table: string) {
    const rows = await this.#table.engine.rows(`
      SELECT DISTINCT id, unnest(CASE WHEN len(people) = 0 THEN [NULL] ELSE people END) AS text
      FROM (
        SELECT DISTINCT unnest(keys) AS key, people
        FROM (
          SELECT
            [${column.cellTexts.join(', ')}] AS keys,
            list_filter([${this.#unified.cellTexts.join(', ')}], lambda p0: p0 IS NOT NULL) AS people
          FROM ${this.#from}
          WHERE ${column.isAmong(table)}
        )
      )
      JOIN ${table} USING (key)`);
    return rows.map(({ id, text }) => ({
      id: String(id),
      text: typeof text === 'string' && !isPlaceholder(text) ? text : undefined,
    }));
  }

  async #unifiedIdsOn({ key, hmacs }: SuppressedPeople): Promise<string[]> {
    if (hmacs.length === 0) return [];
    const rows = await this.#table.engine.rows(
      `
      SELECT DISTINCT text
      FROM (SELECT unnest([${this.#unified.cellTexts.join(', ')}]) AS text FROM ${this.#from})
      WHERE text IS NOT NULL AND ${hmacSql('text')} IN (SELECT unnest(from_json($3, '["VARCHAR"]')))`,
      [...padsOf(key), JSON.stringify(hmacs)],
    );
    return rows.map(({ text }) => String(text));
  }

  /** The rows that leave for each id; a row of several ids counts for each. */
  async #rowsOf(): Promise<ReadonlyMap<string, number>> {
    const searched = [{ column: this.#unified, keys: this.#keys.people }];
    if (this.column !== undefined) searched.push({ column: this.column, keys: this.#keys.ids });
    const cells = searched.flatMap(({ column, keys }) =>
      column.cellTexts.map((text) => `{'keys': '${keys}', 'key': ${text}}`),
    );
    const tables = searched.map(({ keys }) => `SELECT id, key, '${keys}' AS keys FROM ${keys}`);
    const rows = await this.#table.engine.rows(`
      SELECT id, count(DISTINCT r) AS rows
      FROM (
        SELECT r, cell.keys AS keys, cell.key AS key
        FROM (
          SELECT r, unnest(cells) AS cell
          FROM (
            SELECT row_number() OVER () AS r, [${cells.join(', ')}] AS cells FROM ${this.#from} WHERE ${this.#ofIds}
          )
        )
      )
      JOIN (${tables.join(' UNION ALL ')}) USING (keys, key)
      GROUP BY id`);
    return new Map(rows.map(({ id, rows: count }) => [String(id), Number(count)]));
  }

  /** For ids that the column lacks: a text of it that differs only in its spelling. */
  async #near({ pads, cellTexts }: IdColumn): Promise<ReadonlyMap<string, string>> {
    const missing = this.#query.ids.filter((id) => !this.peopleOf.has(id)).map((id) => ({ id, text: id }));
    if (missing.length === 0) return new Map();
    const near = nearSql('text');
    const forms = pads.length === 0 ? [near] : [near, hmacSql(near)];
    const rows = await this.#table.engine.rows(
      `
      SELECT id, any_value(stored) AS stored
      FROM (SELECT id, unnest([${forms.join(', ')}]) AS form FROM ${idTextsSql(pads)})
      JOIN (
        SELECT ${near} AS form, any_value(text) AS stored
        FROM (SELECT DISTINCT unnest([${cellTexts.join(', ')}]) AS text FROM ${this.#from})
        GROUP BY form
      ) USING (form)
      WHERE form <> ''
      GROUP BY id`,
      [...pads, JSON.stringify(missing)],
    );
    return new Map(rows.map(({ id, stored }) => [String(id), String(stored)]));
  }

  /** Counts the people whose rows also have another id in the column. */
  async #shared(column: IdColumn): Promise<number> {
    const { ids, people } = this.#keys;
    const others = column.cellTexts.map((text) => `CASE WHEN NOT ${isKey(text, ids)} THEN ${text} END`);
    const rows = await this.#table.engine.rows(`
      SELECT DISTINCT text, other
      FROM (
        SELECT text, unnest(others) AS other
        FROM (
          SELECT unnest(texts) AS text, others
          FROM (
            SELECT [${this.#unified.cellTexts.join(', ')}] AS texts, [${others.join(', ')}] AS others
            FROM ${this.#from}
            WHERE ${this.#unified.isAmong(people)}
          )
        )
      )
      WHERE text IS NOT NULL AND other IS NOT NULL`);
    const shared = rows.filter(({ other }) => !isPlaceholder(String(other)));
    return new Set(shared.map(({ text }) => personOf(String(text), this.#query.hashKey))).size;
  }
}

/** A relation (id, text) of a parameter of JSON, which is the one after the pads. */
const idTextsSql = (pads: readonly string[]): string =>
  `(SELECT w.id AS id, w.text AS text FROM (SELECT unnest(from_json($${pads.length + 1}, '[{"id":"VARCHAR","text":"VARCHAR"}]')) AS w))`;

/**
 * Yields the rows that meet a look-up's conditions, as JSON objects with the members `table` and `row`: an object
 * without the columns that are null.
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
