import { isPlaceholder } from '../../base/placeholder.ts';
import { EXTERNAL_ID, UNIFIED_ID } from '../../cells/columns/groups.ts';
import { anyOf } from '../../cells/types/sql.ts';
import { hashedIn, serviceIn } from '../../extract/export-state.ts';
import type { PlaceState } from '../../table/place-state.ts';
import { columnsNamed, IdColumn, padsOf, type SearchedTable } from './id-column.ts';
import {
  insertKeys,
  insertPlainKeys,
  nearIds,
  otherIdsOf,
  rowsOfIds,
  suppressedIn,
  unifiedIdsOf,
} from './people-sql.ts';
import {
  isHash,
  joinPeople,
  NOBODY,
  type PeopleFound,
  type PeopleOfIds,
  type PeopleQuery,
  personOf,
  type SuppressedPeople,
} from './query.ts';

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
  const searches = inProfiles === undefined ? [inEvents] : [inEvents, inProfiles];

  // 1. The ids that rows hold, and the people of these rows.
  const peopleOfTables: PeopleOfIds[] = [];
  for (const search of searches) peopleOfTables.push(await search.searchIds());
  // 2. All rows of these people, of those that other ways found, and of those on the suppression list.
  const tables: TablePeople[] = [];
  for (const [i, search] of searches.entries()) {
    const elsewhere = joinPeople(query.peopleOf, ...peopleOfTables.toSpliced(i, 1));
    tables.push(await search.searchPeople(peopleOfTables[i], elsewhere));
  }

  const { state } = events;
  const [ofEvents, ofProfiles] = tables;
  return {
    people: {
      ...sumOf(tables, query),
      peopleOf: joinPeople(...peopleOfTables),
      askedProfiles,
      column: inEvents.column?.source,
      service: serviceIn(state.exportState),
      suppressionLength: state.suppressionLength ?? 0,
      warnings: [...new Set(tables.flatMap(({ warnings }) => warnings))],
    },
    conditions: { events: ofEvents.condition, profiles: ofProfiles?.condition ?? 'false' },
  };
}

/** What one table has of the people. */
interface TablePeople extends Pick<PeopleFound, 'unifiedIds' | 'rowsOf' | 'near' | 'rows' | 'shared' | 'warnings'> {
  /** SQL, TRUE for a row that a purge removes, else FALSE. */
  readonly condition: string;
  /** The unified ids of the table that are on the suppression list. */
  readonly suppressed: readonly string[];
  /** Number of rows that a purge removes, also those of others on the suppression list. */
  readonly leaving: number;
}

/** What the tables of a place have together. */
function sumOf(tables: readonly TablePeople[], { hashKey }: PeopleQuery) {
  const rowsOf = new Map<string, number>();
  for (const [id, rows] of tables.flatMap((table) => [...table.rowsOf])) rowsOf.set(id, (rowsOf.get(id) ?? 0) + rows);
  const unifiedIds = new Map(tables.flatMap((table) => table.unifiedIds.map((id) => [id.text, id] as const)));
  const persons = new Set([...unifiedIds.keys()].map((text) => personOf(text, hashKey)));
  const suppressed = new Set(tables.flatMap((table) => table.suppressed).map((text) => personOf(text, hashKey)));
  const rows = tables.reduce((sum, table) => sum + table.rows, 0);
  return {
    unifiedIds: [...unifiedIds.values()],
    persons: persons.size,
    rowsOf,
    near: new Map(tables.toReversed().flatMap((table) => [...table.near].filter(([id]) => !rowsOf.has(id)))),
    rows,
    shared: new Set(tables.flatMap((table) => [...table.shared])),
    others: {
      persons: [...suppressed].filter((person) => !persons.has(person)).length,
      rows: tables.reduce((sum, table) => sum + table.leaving, 0) - rows,
    },
  };
}

/** A text that is looked for, and the id of the list for which it is. */
interface IdText {
  readonly id: string;
  readonly text: string;
}

/** The search of one table. It keeps its keys in temporary tables of the engine. */
class TableSearch {
  /** The query's column; undefined if the table lacks it. */
  readonly column: IdColumn | undefined;
  readonly #table: SearchedTable;
  /** The rows, as SQL; empty if there are none, and nothing is to be asked. */
  readonly #rows: string;
  readonly #query: PeopleQuery;
  readonly #unified: IdColumn;
  readonly #columnWarnings: readonly string[];
  /** Keys of the ids for the column. */
  readonly #idKeys: string;
  /** Keys of the ids for `df_unified_id`. */
  readonly #peopleKeys: string;
  /** Keys of the suppression list for `df_unified_id`. */
  readonly #suppressedKeys: string;

  constructor(table: SearchedTable, query: PeopleQuery, column: string | undefined) {
    this.#table = table;
    this.#rows = table.from ?? '';
    this.#query = query;
    this.#unified = new IdColumn(table, query, UNIFIED_ID);
    const isThere = column !== undefined && columnsNamed(table.state, column).length > 0;
    this.column = isThere ? new IdColumn(table, query, column) : undefined;
    this.#columnWarnings = this.column?.hashWarnings() ?? [];
    const keysOf = (name: string) => `temp.main._dfinery_${name}_${table.table}`;
    this.#idKeys = keysOf('ids');
    this.#peopleKeys = keysOf('people');
    this.#suppressedKeys = keysOf('suppressed');
  }

  /** The ids that the column holds, each with the unified ids of its rows; an empty list if these name nobody. */
  async searchIds(): Promise<PeopleOfIds> {
    const peopleOf = new Map<string, readonly string[]>();
    if (this.#rows === '') return peopleOf;
    for (const keys of [this.#idKeys, this.#peopleKeys, this.#suppressedKeys]) {
      await this.#table.engine.run(`CREATE OR REPLACE TEMP TABLE ${keys} (id VARCHAR, key VARCHAR)`);
    }
    if (this.column === undefined) return peopleOf;
    const ids = this.#query.ids.map((id) => ({ id, text: id }));
    await this.#addKeys(this.column, this.#idKeys, ids);
    for (const { id, text } of await this.#unifiedIdsOf(this.column, this.#idKeys)) {
      const texts = peopleOf.get(id) ?? [];
      peopleOf.set(id, text === undefined ? texts : [...texts, text]);
    }
    return peopleOf;
  }

  /**
   * Finds and counts the rows of the people. `inRows`: what `searchIds` gave. `elsewhere`: the people of the ids as the
   * other table and the other ways have them.
   */
  async searchPeople(inRows: PeopleOfIds, elsewhere: PeopleOfIds): Promise<TablePeople> {
    const warnings = [...this.#columnWarnings, ...this.#hashWarnings(elsewhere)];
    if (this.#rows === '') return { ...NOBODY, condition: 'false', suppressed: [], leaving: 0, warnings };
    const peopleOf = joinPeople(inRows, elsewhere);
    const texts = this.#query.ids.flatMap((id) => (peopleOf.get(id) ?? []).map((text) => ({ id, text })));
    await this.#addKeys(
      this.#unified,
      this.#peopleKeys,
      texts.filter(({ text }) => !isPlaceholder(text)),
    );
    const suppressed = await this.#suppressedIn(this.#query.suppressed);
    const suppressedTexts = suppressed.map((text) => ({ id: '', text }));
    await this.#addKeys(this.#unified, this.#suppressedKeys, suppressedTexts);

    const { engine } = this.#table;
    const inColumn = this.column === undefined ? [] : [this.column.isAmong(this.#idKeys)];
    const isOfIds = anyOf([...inColumn, this.#unified.isAmong(this.#peopleKeys)]);
    const condition = anyOf([isOfIds, this.#unified.isAmong(this.#suppressedKeys)]);
    const rowsOfPeople = `${this.#rows} WHERE ${isOfIds}`;
    const unifiedIds = (await this.#unifiedIdsOf(this.#unified, this.#peopleKeys)).flatMap(({ text }) => text ?? []);
    return {
      condition,
      warnings,
      suppressed,
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
  #hashWarnings(elsewhere: PeopleOfIds): string[] {
    const { place, state } = this.#table;
    const isPlain = [...elsewhere.values()].flat().some((text) => !isHash(text));
    if (isPlain || this.#query.column === UNIFIED_ID) return this.#unified.hashWarnings();
    if (!this.#unified.lacksKey || hashedIn(state.exportState).length < 2) return [];
    return [
      `${place}: only some rows have df_unified_id hashed. Without that hash_key, rows of these people may stay.`,
    ];
  }

  /** Adds all keys of the texts to a table. */
  async #addKeys(column: IdColumn, keys: string, idTexts: readonly IdText[]): Promise<void> {
    const { engine } = this.#table;
    const { pads, isMixed } = column;
    await engine.run(insertKeys(keys, column), [...pads, JSON.stringify(idTexts)]);
    if (pads.length > 0 && isMixed) await engine.run(insertPlainKeys(keys, column, this.#rows), [...pads]);
  }

  /**
   * The ids of a table of keys that are in rows, with a unified id of such a row each; undefined if it names nobody.
   */
  async #unifiedIdsOf(column: IdColumn, keys: string) {
    const rows = await this.#table.engine.rows(unifiedIdsOf(keys, column, this.#unified, this.#rows));
    return rows.map(({ id, text }) => ({
      id: String(id),
      text: typeof text === 'string' && !isPlaceholder(text) ? text : undefined,
    }));
  }

  /** The unified ids of the table that are on a suppression list. */
  async #suppressedIn(list: SuppressedPeople | undefined): Promise<string[]> {
    if (list === undefined || list.hmacs.length === 0) return [];
    const parameters = [...padsOf(list.key), JSON.stringify(list.hmacs)];
    const rows = await this.#table.engine.rows(suppressedIn(this.#unified, this.#rows), parameters);
    return rows.map(({ text }) => String(text));
  }

  /** The rows that leave for each id. */
  async #rowsOf(rowsOfPeople: string): Promise<ReadonlyMap<string, number>> {
    const searched = [{ column: this.#unified, keys: this.#peopleKeys }];
    if (this.column !== undefined) searched.push({ column: this.column, keys: this.#idKeys });
    const rows = await this.#table.engine.rows(rowsOfIds(searched, rowsOfPeople));
    return new Map(rows.map(({ id, rows: count }) => [String(id), Number(count)]));
  }

  /** For ids that the column lacks: a text of it that differs only in its spelling. */
  async #near(missing: readonly string[]): Promise<ReadonlyMap<string, string>> {
    if (this.column === undefined || missing.length === 0) return new Map();
    const idTexts = missing.map((id) => ({ id, text: id }));
    const parameters = [...this.column.pads, JSON.stringify(idTexts)];
    const rows = await this.#table.engine.rows(nearIds(this.column, this.#rows), parameters);
    return new Map(rows.map(({ id, stored }) => [String(id), String(stored)]));
  }

  /** The people whose rows also have another id in the column. */
  async #shared(): Promise<ReadonlySet<string>> {
    if (this.column === undefined) return new Set();
    const rowsOfPeople = `${this.#rows} WHERE ${this.#unified.isAmong(this.#peopleKeys)}`;
    const pairs = await this.#table.engine.rows(otherIdsOf(this.#idKeys, this.column, this.#unified, rowsOfPeople));
    const shared = pairs.filter(({ other }) => !isPlaceholder(String(other)));
    return new Set(shared.map(({ text }) => personOf(String(text), this.#query.hashKey)));
  }
}

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
