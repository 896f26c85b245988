import { systemError } from '../../base/errors.ts';
import type { HashKey } from '../../base/hash-key.ts';
import { isPlaceholder } from '../../base/placeholder.ts';
import { anyOfSql } from '../../base/sql.ts';
import { EXTERNAL_ID, UNIFIED_ID } from '../../cells/header.ts';
import { type ByTable, TABLES } from '../../table/tables.ts';
import { ColumnKeys } from './column-keys.ts';
import { IdColumn, type LookUp, NO_LOOK_UP } from './id-column.ts';
import {
  columnsNamed,
  joinIds,
  type PeopleInPlace,
  type PeopleQuery,
  personIdOf,
  type SearchedPlace,
  type SearchedTable,
} from './people.ts';
import { keepNearest } from './spelling.ts';

/** SQL for each table, TRUE for a row that a purge removes, else FALSE. Valid until the engine is closed. */
export type RowConditions = ByTable<string>;

export interface FoundPeople {
  readonly people: PeopleInPlace;
  /** Their rows, and those of the people of the suppression list. */
  readonly conditions: RowConditions;
}

/**
 * Finds people in both tables of a place. Whoever is found in one of them leaves both. Throws a configuration failure
 * for a column whose hashes need another key.
 */
export async function findPeople(place: SearchedPlace, query: PeopleQuery): Promise<FoundPeople> {
  const { ids, hashKey, suppressedPeople } = query;

  // 1. The rows that hold an id. Their unified ids are added to those that other ways have found.
  const searches = await searchTables(place, query);
  const { unifiedIdsById, keyCheckByHash } = await unifiedIdsOf(query, searches);
  const queryIdsByUnifiedId = joinIds(
    ids
      .flatMap((id) => (unifiedIdsById.get(id) ?? []).map((unifiedId) => [unifiedId, [id]] as const))
      .filter(([unifiedId]) => !isPlaceholder(unifiedId)),
  );
  const idKeyChecks = new Set(Array.from(queryIdsByUnifiedId.keys(), (id) => keyCheckByHash.get(id)));
  if (idKeyChecks.has(undefined)) ColumnKeys.refuseOtherKeys(searches.map(({ unifiedColumn }) => unifiedColumn.keys));

  // 2. The rows that leave: they hold an id, one of its unified ids, or one of the suppression list.
  const conditions = { events: 'false', user_profiles: 'false' };
  const leavingGroups: RowGroup[] = [];
  const keyCheckByUnifiedId = new Map<string, string | undefined>();
  for (const search of searches) {
    const { unifiedColumn } = search;
    // An id of the suppression list alone stands for none of the query.
    const suppressedIds = (await unifiedColumn.suppressedIds(suppressedPeople)).map((id) => [id, []] as const);
    const unifiedLookUp = await unifiedColumn.lookUp(new Map([...suppressedIds, ...queryIdsByUnifiedId]));
    conditions[search.name] = conditionSql(search, unifiedLookUp);
    for (const group of await groupRows(search, unifiedLookUp)) {
      leavingGroups.push(group);
      if (group.queryIds.size === 0) continue;
      for (const id of group.unifiedIds) keyCheckByUnifiedId.set(id, unifiedColumn.keys.keyCheckOf(id));
    }
  }

  // 3. Who these rows are of, and how many each id has.
  const counts = countPeople(leavingGroups, hashKey);

  // 4. Of ids without a row: the id there that is most probably the same.
  const missingIds = ids.filter((id) => !counts.rowCountById.has(id));
  const similarIdById = new Map<string, string>();
  for (const { externalColumn } of searches) {
    const similarIds = (await externalColumn?.similarIds(missingIds)) ?? [];
    for (const { id, cell } of similarIds) keepNearest(similarIdById, id, cell);
  }

  // 5. Warnings of rows that the look-ups missed. External ids are always plain.
  const warnings = [
    ...searches.flatMap(({ externalColumn }) => externalColumn?.keys.missedRowsWarnings(new Set([undefined])) ?? []),
    ...searches.flatMap(({ unifiedColumn }) => unifiedColumn.keys.missedRowsWarnings(idKeyChecks)),
  ];
  const people = {
    ...counts,
    keyCheckByUnifiedId,
    unifiedIdsById: new Map([...unifiedIdsById].filter(([id]) => counts.rowCountById.has(id))),
    similarIdById,
    state: place.state,
    warnings: [...new Set(warnings)],
  };
  return { people, conditions };
}

/** A table, its columns of ids, and the look-up of the query's ids in the external one. */
interface TableSearch extends SearchedTable {
  /** Undefined if the query looks no ids up in a column of the table. */
  readonly externalColumn: IdColumn | undefined;
  readonly externalLookUp: LookUp;
  readonly unifiedColumn: IdColumn;
}

/** Looks the ids up in the columns of external ids. */
async function searchTables(place: SearchedPlace, query: PeopleQuery): Promise<TableSearch[]> {
  const { engine, placeName } = place;
  const { ids, byColumn, searchesProfiles, hashKey } = query;
  const externalSources = { events: byColumn, user_profiles: searchesProfiles ? EXTERNAL_ID : undefined };
  const tables = TABLES.flatMap(({ name }) => {
    const [relation, state] = [place.relations[name], place.state[name]];
    if (relation === undefined || state === undefined) return [];
    const table = { engine, placeName, name, relation, state };
    if (columnsNamed(state, UNIFIED_ID).length === 0) throw systemError(`${placeName} has no column ${UNIFIED_ID}.`);
    const unifiedColumn = new IdColumn(table, UNIFIED_ID, hashKey);
    const source = externalSources[name];
    const externalColumn = ids.length > 0 && source ? new IdColumn(table, source, hashKey) : undefined;
    return [{ ...table, externalColumn, unifiedColumn }];
  });
  ColumnKeys.refuseOtherKeys(tables.flatMap(({ externalColumn }) => externalColumn?.keys ?? []));
  const searches: TableSearch[] = [];
  for (const table of tables) {
    const externalLookUp = (await table.externalColumn?.lookUp(new Map(ids.map((id) => [id, [id]])))) ?? NO_LOOK_UP;
    searches.push({ ...table, externalLookUp });
  }
  return searches;
}

/** The unified ids of each id: those of the query, and those of rows that hold the id. Of hashes also their keys. */
async function unifiedIdsOf(query: PeopleQuery, searches: readonly TableSearch[]) {
  const { ids, byColumn } = query;
  // An id that is looked up in `df_unified_id` is a unified id itself, also that of somebody without events.
  const entries: [id: string, unifiedIds: readonly string[]][] =
    byColumn === UNIFIED_ID ? ids.map((id) => [id, [id]]) : [];
  const keyCheckByHash = new Map(query.keyCheckByUnifiedId);
  for (const search of searches) {
    for (const { queryIds, unifiedIds } of await groupRows(search, NO_LOOK_UP)) {
      for (const id of queryIds) entries.push([id, unifiedIds]);
      for (const id of unifiedIds) keyCheckByHash.set(id, search.unifiedColumn.keys.keyCheckOf(id));
    }
  }
  return { unifiedIdsById: joinIds(query.unifiedIdsById, entries), keyCheckByHash };
}

/** Rows that have the same ids in their cells. */
interface RowGroup {
  /** The ids of the query that they are of; none for rows of the suppression list alone. */
  readonly queryIds: ReadonlySet<string>;
  /** Whose they are; empty if they name nobody. */
  readonly unifiedIds: readonly string[];
  /** True if they also have an external id that the query lacks. */
  readonly hasOtherId: boolean;
  readonly rowCount: number;
}

/** The rows that one of the two look-ups finds, by the ids in their cells. Placeholders are left out: they name nobody. */
async function groupRows(search: TableSearch, unifiedLookUp: LookUp): Promise<RowGroup[]> {
  const { engine, relation, externalColumn, externalLookUp, unifiedColumn } = search;
  const rows = await engine.rows(`
    SELECT ${externalColumn?.cellListSql ?? '[]'} AS external_ids, ${unifiedColumn.cellListSql} AS unified_ids,
      count(*) AS row_count
    FROM ${relation}
    WHERE ${conditionSql(search, unifiedLookUp)}
    GROUP BY ALL`);
  const withoutPlaceholders = (cells: unknown) =>
    (cells as readonly (string | null)[]).flatMap((cell) => (cell === null || isPlaceholder(cell) ? [] : [cell]));
  return rows.map(({ external_ids, unified_ids, row_count }) => {
    const externalIds = withoutPlaceholders(external_ids);
    const unifiedIds = withoutPlaceholders(unified_ids);
    return {
      queryIds: new Set([...externalLookUp.queryIdsOf(externalIds), ...unifiedLookUp.queryIdsOf(unifiedIds)]),
      unifiedIds,
      hasOtherId: externalIds.some((id) => externalLookUp.queryIdsOf([id]).length === 0),
      rowCount: Number(row_count),
    };
  });
}

const conditionSql = ({ externalLookUp }: TableSearch, unifiedLookUp: LookUp): string =>
  anyOfSql([externalLookUp.conditionSql, unifiedLookUp.conditionSql]);

/** Counts the people of the ids, and the others: rows of none of the ids are of the suppression list. */
function countPeople(leavingGroups: readonly RowGroup[], hashKey: HashKey | undefined) {
  const groupsOfIds = leavingGroups.filter(({ queryIds }) => queryIds.size > 0);
  const suppressedGroups = leavingGroups.filter(({ queryIds }) => queryIds.size === 0);
  const peopleOf = (groups: readonly RowGroup[]) =>
    new Set(groups.flatMap(({ unifiedIds }) => unifiedIds.map((id) => personIdOf(id, hashKey))));
  const countRows = (groups: readonly RowGroup[]) => groups.reduce((sum, { rowCount }) => sum + rowCount, 0);
  const peopleOfIds = peopleOf(groupsOfIds);
  const rowCountById = new Map<string, number>();
  for (const { queryIds, rowCount } of groupsOfIds) {
    for (const id of queryIds) rowCountById.set(id, (rowCountById.get(id) ?? 0) + rowCount);
  }
  const otherPeople = [...peopleOf(suppressedGroups)].filter((person) => !peopleOfIds.has(person));
  return {
    personCount: peopleOfIds.size,
    rowCountById,
    rowCount: countRows(groupsOfIds),
    namelessRowCount: countRows(groupsOfIds.filter(({ unifiedIds }) => unifiedIds.length === 0)),
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
