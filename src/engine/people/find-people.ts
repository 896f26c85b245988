import { systemError } from '../../base/errors.ts';
import { anyOfSql } from '../../base/sql.ts';
import { isPlaceholder } from '../../base/visible-text.ts';
import type { HashKey } from '../../cells/columns/hash-key.ts';
import { EXTERNAL_ID, UNIFIED_ID } from '../../cells/csv/header.ts';
import type { PlaceState } from '../../table/place-state.ts';
import { type ByTable, TABLES } from '../../table/tables.ts';
import type { Engine } from '../session/engine.ts';
import { columnsNamed, IdColumn, type TableRows } from './id-column.ts';
import { isHash, joinUnifiedIds, type PeopleFound, type PeopleQuery, personOf, type UnifiedIdsById } from './people.ts';

export interface SearchedPlace {
  readonly engine: Engine;
  /** The place as messages name it. */
  readonly name: string;
  readonly state: PlaceState;
  /** All rows of each table, with all columns; undefined if there are none. */
  readonly relations: ByTable<string | undefined>;
}

/** SQL for each table, TRUE for a row that a purge removes, else FALSE. Valid until the engine's next look-up. */
export type RowConditions = ByTable<string>;

export interface PlaceLookup {
  /** Of both tables together. */
  readonly people: PeopleFound;
  readonly conditions: RowConditions;
}

/** A table that has rows, with the columns of its ids. */
interface SearchedTable extends TableRows {
  /** It has no cells if the table is not searched for external ids. */
  readonly external: IdColumn;
  readonly unified: IdColumn;
}

/**
 * Finds people in both tables of a place. Whoever is found in one of them leaves both. Throws a configuration failure
 * for a column whose hashes need another key.
 */
export async function findPeople(place: SearchedPlace, query: PeopleQuery): Promise<PlaceLookup> {
  const { state } = place;
  const { ids, column, hashKey, suppressed } = query;
  const tables = searchedTables(place, query);

  // 1. The unified ids of the ids: those of the rows that hold an id, and those that other ways found.
  const externalTexts = ids.map((id) => ({ id, text: id }));
  for (const { external } of tables) await external.lookFor(externalTexts);
  const unifiedIdsInRows = await unifiedIdsOfRows(tables);
  const unifiedIdsById = joinUnifiedIds(query.knownUnifiedIds, unifiedIdsInRows);
  const warnings = keyWarnings(place.name, tables, unifiedIdsById, query);

  // 2. The condition of all rows that hold an id, one of these unified ids, or one of the suppression list.
  const textsOfIds = ids
    .flatMap((id) => (unifiedIdsById.get(id) ?? []).map((text) => ({ id, text })))
    .filter(({ text }) => !isPlaceholder(text));
  const conditions = { events: 'false', user_profiles: 'false' };
  for (const { name, external, unified } of tables) {
    const textsOfList = (await unified.suppressedTexts(suppressed)).map((text) => ({ id: null, text }));
    await unified.lookFor([...textsOfIds, ...textsOfList]);
    conditions[name] = anyOfSql([external.matchSql, unified.matchSql]);
  }

  // 3. Who these rows are of, and how many each id has.
  const counts = await countPeople(tables, conditions, hashKey);

  // 4. Of ids without a row: how another id there differs.
  const missingIds = ids.filter((id) => !counts.rowCountById.has(id));
  const similarIds = new Map<string, string>();
  for (const { external } of tables) {
    for (const [id, text] of await external.similarIds(missingIds)) similarIds.set(id, text);
  }
  const hasColumn = columnsNamed(state.events, column).length > 0;
  return {
    people: { ...counts, unifiedIdsById: unifiedIdsInRows, similarIds, hasColumn, state, warnings },
    conditions,
  };
}

/** The tables that have rows. */
function searchedTables(place: SearchedPlace, { column, searchesProfiles, hashKey }: PeopleQuery): SearchedTable[] {
  const externalColumns = { events: column, user_profiles: searchesProfiles === true ? EXTERNAL_ID : undefined };
  return TABLES.flatMap(({ name }) => {
    const [relation, state] = [place.relations[name], place.state[name]];
    if (relation === undefined || state === undefined) return [];
    const table = { engine: place.engine, name, relation, state };
    const external = new IdColumn(table, 'external', externalColumns[name], hashKey);
    const unified = new IdColumn(table, 'unified', UNIFIED_ID, hashKey);
    if (unified.cells.length === 0) throw systemError(`${place.name} has no column ${UNIFIED_ID}.`);
    return [{ ...table, external, unified }];
  });
}

/** Rows of a table that have the same ids; without placeholders, which name nobody. */
interface RowGroup {
  readonly externalIds: readonly string[];
  readonly unifiedIds: readonly string[];
  readonly rowCount: number;
}

/** The rows of a table that meet a condition. */
async function groupRows(table: SearchedTable, condition: string): Promise<RowGroup[]> {
  const { engine, relation, external, unified } = table;
  const groups = await engine.rows(`
    SELECT ${external.textsSql} AS external_ids, ${unified.textsSql} AS unified_ids, count(*) AS row_count
    FROM ${relation}
    WHERE ${condition}
    GROUP BY ALL`);
  const idsIn = (texts: unknown) =>
    (texts as readonly (string | null)[]).flatMap((text) => (text === null || isPlaceholder(text) ? [] : [text]));
  return groups.map(({ external_ids, unified_ids, row_count }) => ({
    externalIds: idsIn(external_ids),
    unifiedIds: idsIn(unified_ids),
    rowCount: Number(row_count),
  }));
}

/** The unified ids of the rows that hold an external id, by that id. */
async function unifiedIdsOfRows(tables: readonly SearchedTable[]): Promise<UnifiedIdsById> {
  const pairs: [id: string, unifiedIds: readonly string[]][] = [];
  for (const table of tables) {
    for (const { externalIds, unifiedIds } of await groupRows(table, table.external.matchSql)) {
      for (const id of table.external.idsOf(externalIds)) pairs.push([id, unifiedIds]);
    }
  }
  return joinUnifiedIds(pairs);
}

/** The warnings of all columns, each once. Only what is plain, or may be, needs the key of the unified ids. */
function keyWarnings(
  place: string,
  tables: readonly SearchedTable[],
  unifiedIdsById: UnifiedIdsById,
  { column }: PeopleQuery,
): string[] {
  const isPlain = [...unifiedIdsById.values()].flat().some((text) => !isHash(text));
  const warnings = tables.flatMap(({ external, unified }) => [
    ...external.keyWarnings(true, place),
    ...unified.keyWarnings(isPlain || column === UNIFIED_ID, place),
  ]);
  return [...new Set(warnings)];
}

/** Counts the people whose rows leave, and the rows. A row of no id is one of the suppression list. */
async function countPeople(tables: readonly SearchedTable[], conditions: RowConditions, hashKey: HashKey | undefined) {
  const unifiedIds = new Map<string, string | undefined>();
  const people = new Set<string>();
  const peopleWithOtherIds = new Set<string>();
  const suppressedPeople = new Set<string>();
  const rowCountById = new Map<string, number>();
  let [rowCount, suppressedRowCount] = [0, 0];
  for (const table of tables) {
    const { external, unified } = table;
    for (const group of await groupRows(table, conditions[table.name])) {
      const peopleOfRow = group.unifiedIds.map((text) => personOf(text, hashKey));
      const idsOfRow = new Set([...external.idsOf(group.externalIds), ...unified.idsOf(group.unifiedIds)]);
      if (idsOfRow.size === 0) {
        suppressedRowCount += group.rowCount;
        for (const person of peopleOfRow) suppressedPeople.add(person);
        continue;
      }
      rowCount += group.rowCount;
      for (const id of idsOfRow) rowCountById.set(id, (rowCountById.get(id) ?? 0) + group.rowCount);
      for (const text of group.unifiedIds) unifiedIds.set(text, unified.keyCheckOf(text));
      const hasOtherId = group.externalIds.some((text) => external.idsOf([text]).length === 0);
      for (const person of peopleOfRow) {
        people.add(person);
        if (hasOtherId) peopleWithOtherIds.add(person);
      }
    }
  }
  const othersCount = [...suppressedPeople].filter((person) => !people.has(person)).length;
  return {
    unifiedIds,
    personCount: people.size,
    rowCountById,
    rowCount,
    peopleWithOtherIds,
    suppressedOthers: { personCount: othersCount, rowCount: suppressedRowCount },
  };
}

/**
 * Yields the rows that meet a look-up's conditions, as JSON objects with the members `table` and `row`. A row is an
 * object without the columns that are null.
 */
export async function* jsonOfRows(
  { engine, relations }: SearchedPlace,
  conditions: RowConditions,
): AsyncGenerator<string> {
  for (const { name } of TABLES) {
    if (relations[name] === undefined) continue;
    const rows = engine.stream(`
      SELECT CAST(json_merge_patch('{}', to_json(e)) AS VARCHAR) AS row
      FROM (SELECT * FROM ${relations[name]} WHERE ${conditions[name]}) AS e`);
    for await (const { row } of rows) yield `{"table":"${name}","row":${row}}`;
  }
}
