import { systemError } from '../../base/errors.ts';
import type { HashKey } from '../../base/hash-key.ts';
import { isPlaceholder } from '../../base/placeholder.ts';
import { anyOfSql } from '../../base/sql.ts';
import { EXTERNAL_ID, UNIFIED_ID } from '../../cells/header.ts';
import type { PlaceState } from '../../table/place-state.ts';
import { type ByTable, TABLES } from '../../table/tables.ts';
import type { Engine } from '../session/engine.ts';
import { IdColumn, type LookUp, type SearchedTable } from './id-column.ts';
import { joinUnifiedIds, looksHashed, type PeopleInPlace, type PeopleQuery, personIdOf } from './people.ts';
import { keepNearest } from './spelling.ts';

export interface SearchedPlace {
  readonly engine: Engine;
  /** The place as messages name it. */
  readonly placeName: string;
  readonly state: PlaceState;
  /** All rows of each table, with all columns; undefined if the place lacks the table. */
  readonly relations: ByTable<string | undefined>;
}

/** SQL for each table, TRUE for a row that a purge removes, else FALSE. Valid until the engine is closed. */
export type RowConditions = ByTable<string>;

/**
 * Finds people in both tables of a place. Whoever is found in one of them leaves both. Throws a configuration failure
 * for a column whose hashes need another key.
 */
export async function findPeople(place: SearchedPlace, query: PeopleQuery) {
  const { ids, hashKey, suppressedPeople } = query;

  // 1. The unified ids of the ids: those of the rows that hold an id, and those that any way found.
  const { searches, unifiedIdsById } = await lookUpIds(place, query);
  const soughtIds = ids
    .flatMap((queryId) => (unifiedIdsById.get(queryId) ?? []).map((id) => ({ id, queryId, isHashed: looksHashed(id) })))
    .filter(({ id }) => !isPlaceholder(id));

  // 2. The rows that leave: they hold an id, one of its unified ids, or one of the suppression list.
  const conditions = { events: 'false', user_profiles: 'false' };
  const warnings = new Set(searches.flatMap(({ externalLookUp }) => externalLookUp.warnings));
  const leavingGroups: RowGroup[] = [];
  for (const search of searches) {
    const unifiedLookUp = await search.unifiedColumn.lookUp(soughtIds, suppressedPeople);
    for (const warning of unifiedLookUp.warnings) warnings.add(warning);
    const leavingSql = anyOfSql([search.externalLookUp.conditionSql, unifiedLookUp.conditionSql]);
    conditions[search.table.name] = leavingSql;
    for (const group of await groupRows(search, leavingSql, unifiedLookUp)) leavingGroups.push(group);
  }

  // 3. Who these rows are of, and how many each id has.
  const counts = countPeople(leavingGroups, hashKey);

  // 4. Of ids without a row: the id there that is most probably the same.
  const missingIds = ids.filter((id) => !counts.rowCountById.has(id));
  const similarIdById = new Map<string, string>();
  for (const { externalColumn } of searches) {
    for (const { id, cell } of await externalColumn.similarIds(missingIds)) keepNearest(similarIdById, id, cell);
  }
  const people: PeopleInPlace = {
    ...counts,
    unifiedIdsById: new Map([...unifiedIdsById].filter(([id]) => counts.rowCountById.has(id))),
    similarIdById,
    state: place.state,
    warnings: [...warnings],
  };
  return { people, conditions };
}

/** A table, and the cells of its rows that hold an external id of the query. */
interface TableSearch {
  readonly table: SearchedTable;
  /** Without cells if the table is not searched for external ids. */
  readonly externalColumn: IdColumn;
  readonly externalLookUp: LookUp;
  readonly unifiedColumn: IdColumn;
}

/** Looks the ids up in each table that is there. Adds the unified ids of the rows that hold one to those of the query. */
async function lookUpIds({ engine, placeName, state, relations }: SearchedPlace, query: PeopleQuery) {
  const { ids, byColumn, searchesProfiles, hashKey } = query;
  const externalSources = { events: byColumn, user_profiles: searchesProfiles ? EXTERNAL_ID : undefined };
  const searches: TableSearch[] = [];
  // Ids that are looked up in `df_unified_id` are unified ids themselves, also those of people without events.
  const unifiedIdEntries: [id: string, unifiedIds: readonly string[]][] =
    byColumn === UNIFIED_ID ? ids.map((id) => [id, [id]]) : [];
  for (const { name } of TABLES) {
    const [relation, tableState] = [relations[name], state[name]];
    if (relation === undefined || tableState === undefined) continue;
    const table: SearchedTable = { engine, placeName, name, relation, state: tableState };
    const externalColumn = new IdColumn(table, ids.length > 0 ? externalSources[name] : undefined, hashKey);
    const unifiedColumn = new IdColumn(table, UNIFIED_ID, hashKey);
    if (unifiedColumn.cellSqls.length === 0) throw systemError(`${placeName} has no column ${UNIFIED_ID}.`);
    const externalLookUp = await externalColumn.lookUp(ids.map((id) => ({ id, queryId: id, isHashed: false })));
    const search = { table, externalColumn, externalLookUp, unifiedColumn };
    searches.push(search);
    for (const { queryIds, keyCheckByUnifiedId } of await groupRows(search, externalLookUp.conditionSql)) {
      for (const id of queryIds) unifiedIdEntries.push([id, [...keyCheckByUnifiedId.keys()]]);
    }
  }
  return { searches, unifiedIdsById: joinUnifiedIds(query.unifiedIdsById, unifiedIdEntries) };
}

/** Rows that have the same ids in their cells. */
type RowGroup = Awaited<ReturnType<typeof groupRows>>[number];

/** The rows that meet a condition, by the ids in their cells. Placeholders are left out: they name nobody. */
async function groupRows(
  { table, externalColumn, externalLookUp, unifiedColumn }: TableSearch,
  conditionSql: string,
  unifiedLookUp?: LookUp,
) {
  const rows = await table.engine.rows(`
    SELECT ${externalColumn.cellListSql} AS external_ids, ${unifiedColumn.cellListSql} AS unified_ids, count(*) AS row_count
    FROM ${table.relation}
    WHERE ${conditionSql}
    GROUP BY ALL`);
  const withoutPlaceholders = (cells: unknown) =>
    (cells as readonly (string | null)[]).flatMap((cell) => (cell === null || isPlaceholder(cell) ? [] : [cell]));
  return rows.map(({ external_ids, unified_ids, row_count }) => {
    const externalIds = withoutPlaceholders(external_ids);
    const unifiedIds = withoutPlaceholders(unified_ids);
    const queryIds = [...externalLookUp.queryIdsOf(externalIds), ...(unifiedLookUp?.queryIdsOf(unifiedIds) ?? [])];
    return {
      /** The ids of the query that they are of. */
      queryIds: new Set(queryIds),
      /** Whose they are; empty if they name nobody. */
      keyCheckByUnifiedId: new Map(unifiedIds.map((id) => [id, unifiedColumn.keys.keyCheckOf(id)])),
      /** True if they also have an external id that the query lacks. */
      hasOtherId: externalIds.some((id) => externalLookUp.queryIdsOf([id]).length === 0),
      rowCount: Number(row_count),
    };
  });
}

/** Counts the people of the ids, and the others: rows of none of the ids are of the suppression list. */
function countPeople(leavingGroups: readonly RowGroup[], hashKey: HashKey | undefined) {
  const groupsOfIds = leavingGroups.filter(({ queryIds }) => queryIds.size > 0);
  const suppressedGroups = leavingGroups.filter(({ queryIds }) => queryIds.size === 0);
  const peopleOf = (groups: readonly RowGroup[]) =>
    new Set(groups.flatMap((group) => Array.from(group.keyCheckByUnifiedId.keys(), (id) => personIdOf(id, hashKey))));
  const countRows = (groups: readonly RowGroup[]) => groups.reduce((sum, { rowCount }) => sum + rowCount, 0);
  const peopleOfIds = peopleOf(groupsOfIds);
  const rowCountById = new Map<string, number>();
  for (const { queryIds, rowCount } of groupsOfIds) {
    for (const id of queryIds) rowCountById.set(id, (rowCountById.get(id) ?? 0) + rowCount);
  }
  const otherPeople = [...peopleOf(suppressedGroups)].filter((person) => !peopleOfIds.has(person));
  return {
    keyCheckByUnifiedId: new Map(groupsOfIds.flatMap(({ keyCheckByUnifiedId }) => [...keyCheckByUnifiedId])),
    personCount: peopleOfIds.size,
    rowCountById,
    rowCount: countRows(groupsOfIds),
    namelessRowCount: countRows(groupsOfIds.filter(({ keyCheckByUnifiedId }) => keyCheckByUnifiedId.size === 0)),
    peopleWithOtherIds: peopleOf(groupsOfIds.filter(({ hasOtherId }) => hasOtherId)),
    suppressedOthers: { personCount: otherPeople.length, rowCount: countRows(suppressedGroups) },
  };
}

/**
 * Yields the rows that meet a look-up's conditions, as JSON objects with the members `table` and `row`. A row is an
 * object without the columns that are null.
 */
export async function* jsonOfRows(place: SearchedPlace, conditions: RowConditions): AsyncGenerator<string> {
  const { engine, relations } = place;
  for (const { name } of TABLES) {
    if (relations[name] === undefined) continue;
    const rows = engine.stream(`
      SELECT CAST(json_merge_patch('{}', to_json(struct_pack(*COLUMNS(*)))) AS VARCHAR) AS row
      FROM ${relations[name]}
      WHERE ${conditions[name]}`);
    for await (const { row } of rows) yield `{"table":"${name}","row":${row}}`;
  }
}
