import { anyOfSql, listSql } from '../../base/sql.ts';
import { isPlaceholder } from '../../base/visible-text.ts';
import { EXTERNAL_ID, UNIFIED_ID } from '../../cells/columns/groups.ts';
import { hashedIn, serviceIn } from '../../extract/export-state.ts';
import type { PlaceState } from '../../table/place-state.ts';
import { hmacSql, padsOf } from './hmac-sql.ts';
import { columnsNamed, IdColumn, type SearchedTable } from './id-column.ts';
import { ID_TEXTS, KeyTable } from './key-table.ts';
import { isHash, joinPeople, type PeopleById, type PeopleFound, type PeopleQuery, personKey } from './query.ts';
import { spellingKeySql } from './spelling.ts';

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
  const searchedProfiles = profiles !== undefined && query.searchesProfiles === true;

  // 1. The external ids that rows hold, and the people of these rows.
  const eventSearch = await TableSearch.begin(events, query, query.column);
  const profileSearch =
    profiles && (await TableSearch.begin(profiles, query, searchedProfiles ? EXTERNAL_ID : undefined));
  const { peopleOf: peopleInEvents } = eventSearch;
  const peopleInProfiles = profileSearch?.peopleOf;
  // 2. All rows of these people, of those that other ways found, and of those on the suppression list.
  const eventPeople = await eventSearch.searchPeople(joinPeople(query.knownPeople, peopleInProfiles));
  const profilePeople = await profileSearch?.searchPeople(joinPeople(query.knownPeople, peopleInEvents));

  const { state } = events;
  return {
    people: {
      ...mergeTables(profilePeople === undefined ? [eventPeople] : [eventPeople, profilePeople], query),
      peopleOf: joinPeople(peopleInEvents, peopleInProfiles),
      place: {
        column: eventSearch.column?.source,
        searchedProfiles,
        service: serviceIn(state.exportState),
        suppressionLength: state.suppressionLength ?? 0,
      },
    },
    conditions: { events: eventPeople.condition, profiles: profilePeople?.condition ?? 'false' },
  };
}

/** What one table has of the people. */
interface TablePeople
  extends Pick<PeopleFound, 'unifiedIds' | 'rowsOf' | 'alikeTexts' | 'rows' | 'peopleWithOtherIds' | 'warnings'> {
  /** SQL, TRUE for a row that a purge removes, else FALSE. */
  readonly condition: string;
  /** The persons of the table who are on the suppression list, by `personKey`. */
  readonly suppressedPeople: readonly string[];
  /** Number of rows that a purge removes, also those of others on the suppression list. */
  readonly rowsLeaving: number;
}

/** What a table without rows has. */
const NO_ROWS: Omit<TablePeople, 'warnings'> = {
  unifiedIds: [],
  rowsOf: new Map(),
  alikeTexts: new Map(),
  rows: 0,
  peopleWithOtherIds: new Set(),
  condition: 'false',
  suppressedPeople: [],
  rowsLeaving: 0,
};

/** What the tables of a place have together. */
function mergeTables(tables: readonly TablePeople[], { hashKey }: PeopleQuery) {
  const rowsOf = new Map<string, number>();
  for (const [id, rows] of tables.flatMap((table) => [...table.rowsOf])) rowsOf.set(id, (rowsOf.get(id) ?? 0) + rows);
  const unifiedIds = new Map(tables.flatMap((table) => table.unifiedIds.map((id) => [id.text, id] as const)));
  const people = new Set([...unifiedIds.keys()].map((text) => personKey(text, hashKey)));
  const others = new Set(
    tables.flatMap(({ suppressedPeople }) => suppressedPeople.filter((person) => !people.has(person))),
  );
  const sum = (key: 'rows' | 'rowsLeaving') => tables.reduce((total, table) => total + table[key], 0);
  return {
    unifiedIds: [...unifiedIds.values()],
    personCount: people.size,
    rowsOf,
    alikeTexts: new Map(
      tables.toReversed().flatMap(({ alikeTexts }) => [...alikeTexts].filter(([id]) => !rowsOf.has(id))),
    ),
    rows: sum('rows'),
    peopleWithOtherIds: new Set(tables.flatMap((table) => [...table.peopleWithOtherIds])),
    suppressedOthers: { personCount: others.size, rows: sum('rowsLeaving') - sum('rows') },
    warnings: [...new Set(tables.flatMap(({ warnings }) => warnings))],
  };
}

/** The search of one table: for external ids when it begins, then for people. */
class TableSearch {
  /** The query's column; undefined if the table lacks it. */
  readonly column: IdColumn | undefined;
  /** The external ids that the column holds, each with the people of its rows; these may name nobody. */
  readonly peopleOf = new Map<string, readonly string[]>();
  readonly #table: SearchedTable;
  readonly #query: PeopleQuery;
  readonly #unifiedColumn: IdColumn;
  /** Keys of the external ids, for the column. */
  #idKeys: KeyTable | undefined;

  private constructor(table: SearchedTable, query: PeopleQuery, column: string | undefined) {
    this.#table = table;
    this.#query = query;
    this.#unifiedColumn = new IdColumn(table, query, UNIFIED_ID);
    const isThere = column !== undefined && columnsNamed(table.state, column).length > 0;
    this.column = isThere ? new IdColumn(table, query, column) : undefined;
  }

  static async begin(table: SearchedTable, query: PeopleQuery, column: string | undefined): Promise<TableSearch> {
    const search = new TableSearch(table, query, column);
    await search.#searchIds();
    return search;
  }

  async #searchIds(): Promise<void> {
    const { relation } = this.#table;
    if (relation === undefined || this.column === undefined) return;
    this.#idKeys = await KeyTable.create(this.#table, 'ids', this.column);
    await this.#idKeys.add(
      this.#query.ids.map((id) => ({ id, text: id })),
      relation,
    );
    for (const { id, text } of await this.#idKeys.peopleIn(relation, this.#unifiedColumn)) {
      const texts = this.peopleOf.get(id) ?? [];
      this.peopleOf.set(id, text === undefined ? texts : [...texts, text]);
    }
  }

  /** Finds and counts the rows of the people. `knownPeople`: those of the other table, and of the other ways. */
  async searchPeople(knownPeople: PeopleById): Promise<TablePeople> {
    this.column?.requireKey();
    const warnings = [...(this.column?.otherKeyWarnings() ?? []), ...this.#unifiedIdWarnings(knownPeople)];
    const { engine, relation } = this.#table;
    if (relation === undefined) return { ...NO_ROWS, warnings };
    const { ids, hashKey } = this.#query;

    const peopleOf = joinPeople(this.peopleOf, knownPeople);
    const people = ids
      .flatMap((id) => (peopleOf.get(id) ?? []).map((text) => ({ id, text })))
      .filter(({ text }) => !isPlaceholder(text));
    const peopleKeys = await KeyTable.create(this.#table, 'people', this.#unifiedColumn);
    await peopleKeys.add(people, relation);
    const suppressedTexts = await this.#suppressedTexts(relation);
    const suppressedKeys = await KeyTable.create(this.#table, 'suppressed', this.#unifiedColumn);
    await suppressedKeys.add(
      suppressedTexts.map((text) => ({ id: '', text })),
      relation,
    );

    const keyTables = this.#idKeys === undefined ? [peopleKeys] : [this.#idKeys, peopleKeys];
    const ofIdsSql = anyOfSql(keyTables.map(({ rowSql }) => rowSql));
    const condition = anyOfSql([ofIdsSql, suppressedKeys.rowSql]);
    const rowsOfPeople = `${relation} WHERE ${ofIdsSql}`;
    const pairs = await peopleKeys.peopleIn(relation, this.#unifiedColumn);
    const texts = new Set(pairs.flatMap(({ text }) => text ?? []));
    return {
      condition,
      warnings,
      suppressedPeople: suppressedTexts.map((text) => personKey(text, hashKey)),
      unifiedIds: [...texts].map((text) => ({ text, hashKey: this.#unifiedColumn.hashKeyOf(text) })),
      rowsOf: await this.#rowsOf(rowsOfPeople, keyTables),
      alikeTexts: await this.#alikeTexts(relation),
      rows: await engine.count(rowsOfPeople),
      rowsLeaving: await engine.count(`${relation} WHERE ${condition}`),
      peopleWithOtherIds: await this.#peopleWithOtherIds(relation, peopleKeys),
    };
  }

  /**
   * Warnings about hashes of `df_unified_id`. A plain unified id needs the key. A hash is found in rows that hold the
   * same hash. If an older row holds `u1` in plain, only the key tells that both are one person.
   */
  #unifiedIdWarnings(knownPeople: PeopleById): string[] {
    const { place, state } = this.#table;
    const column = this.#unifiedColumn;
    const isPlain = [...knownPeople.values()].flat().some((text) => !isHash(text));
    if (isPlain || this.#query.column === UNIFIED_ID) {
      column.requireKey();
      return column.otherKeyWarnings();
    }
    if (column.hasOtherKey) {
      return [
        `${place}: some rows have df_unified_id hashed under another key, and its people may come back with a sync. ` +
          'Let profiles or a mapping name them, too.',
      ];
    }
    if (!column.lacksKey || hashedIn(state.exportState).length < 2) return [];
    return [
      `${place}: only some rows have df_unified_id hashed. Without that hash_key, rows of these people may stay.`,
    ];
  }

  /** The unified ids of the table that are on the suppression list. */
  async #suppressedTexts(relation: string): Promise<string[]> {
    const { suppressed } = this.#query;
    if (suppressed === undefined || suppressed.hmacs.length === 0) return [];
    const sql = `
      SELECT DISTINCT text
      FROM ${this.#unifiedColumn.cellsInSql(relation)}
      WHERE text IS NOT NULL AND ${hmacSql('text')} IN (SELECT unnest(from_json($hmacs, '["VARCHAR"]')))`;
    const values = { ...padsOf(suppressed.key), hmacs: JSON.stringify(suppressed.hmacs) };
    const rows = await this.#table.engine.rows(sql, values);
    return rows.map(({ text }) => String(text));
  }

  /** The number of rows of each id; a row of several ids counts for each. */
  async #rowsOf(rowsOfPeople: string, keyTables: readonly KeyTable[]): Promise<ReadonlyMap<string, number>> {
    const cells = keyTables.flatMap(({ column, name }) =>
      column.cellTexts.map((text) => `{'keys': '${name}', 'key': ${text}}`),
    );
    const keysOfIds = keyTables.map(({ name }) => `SELECT id, key, '${name}' AS keys FROM ${name}`);
    const rows = await this.#table.engine.rows(`
      WITH
        numbered AS (SELECT row_number() OVER () AS number, ${listSql(cells)} AS cells FROM ${rowsOfPeople}),
        cells_of_rows AS (SELECT number, unnest(cells) AS cell FROM numbered),
        keys_of_rows AS (SELECT number, cell.keys AS keys, cell.key AS key FROM cells_of_rows),
        keys_of_ids AS (${keysOfIds.join(' UNION ALL ')})
      SELECT id, count(DISTINCT number) AS rows
      FROM keys_of_rows
      JOIN keys_of_ids USING (keys, key)
      GROUP BY id`);
    return new Map(rows.map(({ id, rows: count }) => [String(id), Number(count)]));
  }

  /** For ids without a row: a text of the column that differs only in its spelling. */
  async #alikeTexts(relation: string): Promise<ReadonlyMap<string, string>> {
    const missingIds = this.#query.ids.filter((id) => !this.peopleOf.has(id));
    if (this.column === undefined || missingIds.length === 0) return new Map();
    const { pads } = this.column;
    const spellingSql = spellingKeySql('text');
    const spellings = pads === undefined ? [spellingSql] : [spellingSql, hmacSql(spellingSql)];
    const sql = `
      WITH
        spellings_of_ids AS (SELECT id, unnest(${listSql(spellings)}) AS spelling FROM ${ID_TEXTS}),
        spellings_of_cells AS (
          SELECT ${spellingSql} AS spelling, any_value(text) AS stored
          FROM (SELECT DISTINCT text FROM ${this.column.cellsInSql(relation)})
          GROUP BY spelling
        )
      SELECT id, any_value(stored) AS stored
      FROM spellings_of_ids
      JOIN spellings_of_cells USING (spelling)
      WHERE spelling <> ''
      GROUP BY id`;
    const texts = JSON.stringify(missingIds.map((id) => ({ id, text: id })));
    const rows = await this.#table.engine.rows(sql, { ...pads, texts });
    return new Map(rows.map(({ id, stored }) => [String(id), String(stored)]));
  }

  /** The people whose rows also have another id in the column. */
  async #peopleWithOtherIds(relation: string, peopleKeys: KeyTable): Promise<ReadonlySet<string>> {
    const idKeys = this.#idKeys;
    if (idKeys === undefined) return new Set();
    const otherIds = idKeys.column.cellTexts.map((text) => `CASE WHEN NOT ${idKeys.keySql(text)} THEN ${text} END`);
    const pairs = await this.#table.engine.rows(`
      WITH
        cells_of_rows AS (
          SELECT ${listSql(this.#unifiedColumn.cellTexts)} AS people, ${listSql(otherIds)} AS other_ids
          FROM ${relation}
          WHERE ${peopleKeys.rowSql}
        ),
        ids_of_people AS (SELECT unnest(people) AS text, other_ids FROM cells_of_rows),
        pairs AS (SELECT text, unnest(other_ids) AS other FROM ids_of_people)
      SELECT DISTINCT text, other
      FROM pairs
      WHERE text IS NOT NULL AND other IS NOT NULL`);
    const withOtherIds = pairs.filter(({ other }) => !isPlaceholder(String(other)));
    return new Set(withOtherIds.map(({ text }) => personKey(String(text), this.#query.hashKey)));
  }
}

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

async function* rowsWhere({ engine, name, relation }: SearchedTable, condition: string): AsyncGenerator<string> {
  if (relation === undefined) return;
  const rows = engine.stream(`
    SELECT CAST(json_merge_patch('{}', to_json(e)) AS VARCHAR) AS row
    FROM (SELECT * FROM ${relation} WHERE ${condition}) AS e`);
  for await (const { row } of rows) yield `{"table":"${name}","row":${row}}`;
}
