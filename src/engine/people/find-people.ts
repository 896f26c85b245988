import { configError, systemError } from '../../base/errors.ts';
import type { HashKey } from '../../base/hash-key.ts';
import { isPlaceholder } from '../../base/placeholder.ts';
import { anyOfSql } from '../../base/sql.ts';
import { nfc } from '../../base/text.ts';
import { EXTERNAL_ID, UNIFIED_ID } from '../../cells/header.ts';
import { type ByTable, EVENTS, TABLES } from '../../table/tables.ts';
import { IdColumn, type IdInCell, type LookUp, NO_LOOK_UP } from './id-column.ts';
import {
  columnsNamed,
  joinIds,
  type PeopleFindings,
  type PeopleQuery,
  personIdOf,
  type SearchedPlace,
  type SearchedTable,
} from './people.ts';

/** SQL for each table, TRUE for a row that a purge removes, else FALSE. Valid until the engine is closed. */
export type RowConditions = ByTable<string>;

/**
 * Finds people in both tables of a place. Whoever is found in one of them leaves both. `conditions`: their rows, and
 * those of the people of the suppression list. Throws a configuration failure if a column of ids is hashed, and the key
 * of the query is not that of the place.
 */
export async function findPeople(place: SearchedPlace, query: PeopleQuery) {
  const { ids, suppressionHmacs, hashKey } = query;

  // 1. The rows that hold an id.
  const searches = await searchTables(place, query);

  // 2. The unified ids of these rows, beside those that other ways have found.
  const { unifiedIdsById, soughtUnifiedIds } = await findUnifiedIds(searches, query);

  // 3. The rows that leave: they hold an id, one of its unified ids, or one of the suppression list.
  const conditions = { events: 'false', user_profiles: 'false' };
  const groupsByTable: RowGroup[][] = [];
  for (const search of searches) {
    const suppressedIds = await search.unifiedColumn.suppressedIds(suppressionHmacs);
    const unifiedLookUp = await search.unifiedColumn.lookUp([...soughtUnifiedIds, ...suppressedIds]);
    conditions[search.name] = conditionSql(search, unifiedLookUp);
    groupsByTable.push(await groupRows(search, unifiedLookUp));
  }

  // 4. Who these rows are of, and how many each id has.
  const counts = countPeople(groupsByTable.flat(), hashKey);

  // 5. Of ids without a row: the ids there that are probably the same.
  const missingIds = query.searchesSimilarIds ? ids.filter((id) => !counts.rowCountById.has(id)) : [];
  const similarIds: IdInCell[][] = [];
  for (const { externalColumn } of searches) similarIds.push((await externalColumn?.similarIds(missingIds)) ?? []);

  const findings: PeopleFindings = {
    ...counts,
    hasByColumn: searches.some(({ name, externalColumn }) => name === EVENTS.name && externalColumn !== undefined),
    unifiedIdsById: new Map([...unifiedIdsById].filter(([id]) => counts.rowCountById.has(id))),
    similarIdsById: joinIds(similarIds.flat().map(({ id, cell }) => [id, [cell]])),
    state: place.state,
    warnings: place.warnings,
  };
  return { findings, conditions };
}

/** A table, its columns of ids, and the look-up of the query's ids in that of external ids. */
interface TableSearch extends SearchedTable {
  /** Undefined if the query looks no ids up in a column of the table, or no row has a cell of it. */
  readonly externalColumn: IdColumn | undefined;
  readonly externalLookUp: LookUp;
  readonly unifiedColumn: IdColumn;
}

/** Looks the ids up in the columns of external ids. */
async function searchTables(place: SearchedPlace, query: PeopleQuery): Promise<TableSearch[]> {
  const { engine, placeName } = place;
  const { ids, byColumn, searchesProfiles, hashKey } = query;
  const externalSources = { events: byColumn, user_profiles: searchesProfiles ? EXTERNAL_ID : undefined };
  const searches: TableSearch[] = [];
  for (const { name } of TABLES) {
    const [relation, state, source] = [place.relations[name], place.state[name], externalSources[name]];
    if (relation === undefined || state === undefined) continue;
    if (columnsNamed(state, UNIFIED_ID).length === 0) throw systemError(`${placeName} has no column ${UNIFIED_ID}.`);
    const table = { engine, placeName, name, relation, state };
    const unifiedColumn = idColumnOf(table, UNIFIED_ID, hashKey);
    const column = ids.length > 0 && source ? idColumnOf(table, source, hashKey) : undefined;
    const externalColumn = (await column?.exists()) ? column : undefined;
    const soughtExternalIds = ids.map((id) => ({ id, queryIds: [id] }));
    const externalLookUp = (await externalColumn?.lookUp(soughtExternalIds)) ?? NO_LOOK_UP;
    searches.push({ ...table, externalColumn, externalLookUp, unifiedColumn });
  }
  return searches;
}

/** A column of ids. Throws a configuration failure if it was ever hashed under another key: no id would find its rows. */
function idColumnOf(table: SearchedTable, source: string, hashKey: HashKey | undefined): IdColumn {
  const { columns = [], key_check } = table.state.exportState?.hashed ?? {};
  if (!columns.includes(nfc(source)) || key_check === hashKey?.keyCheck) return new IdColumn(table, source, hashKey);
  throw configError(
    `${table.placeName} holds the column ${source} hashed, but hash_key is missing or another one. Give the key ` +
      'with which it was loaded, in hash_key or DFINERY_HASH_KEY. Nothing was done.',
  );
}

/**
 * The unified ids of each id: those that the query has, and those of rows that hold the id. `soughtUnifiedIds`: these
 * without placeholders.
 */
async function findUnifiedIds(searches: readonly TableSearch[], query: PeopleQuery) {
  const { ids, byColumn } = query;
  const groupsByTable: RowGroup[][] = [];
  for (const search of searches) groupsByTable.push(await groupRows(search, NO_LOOK_UP));
  const groups = groupsByTable.flat();
  const unifiedIdsById = joinIds(
    query.knownUnifiedIdsById,
    // An id that is looked up in `df_unified_id` is a unified id itself, also that of somebody without events.
    byColumn === UNIFIED_ID ? ids.map((id) => [id, [id]] as const) : [],
    groups.flatMap(({ queryIds, unifiedIds }) => Array.from(queryIds, (id) => [id, unifiedIds] as const)),
  );
  const soughtUnifiedIds = ids.flatMap((queryId) => {
    const unifiedIds = (unifiedIdsById.get(queryId) ?? []).filter((unifiedId) => !isPlaceholder(unifiedId));
    return unifiedIds.map((id) => ({ id, queryIds: [queryId] }));
  });
  return { unifiedIdsById, soughtUnifiedIds };
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
  const unifiedIdsOf = (groups: readonly RowGroup[]) => new Set(groups.flatMap(({ unifiedIds }) => unifiedIds));
  const personIdsIn = (groups: readonly RowGroup[]) =>
    new Set(Array.from(unifiedIdsOf(groups), (unifiedId) => personIdOf(unifiedId, hashKey)));
  const countRows = (groups: readonly RowGroup[]) => groups.reduce((sum, { rowCount }) => sum + rowCount, 0);
  const personIdsOfQuery = personIdsIn(groupsOfIds);
  const rowCountById = new Map<string, number>();
  for (const { queryIds, rowCount } of groupsOfIds) {
    for (const id of queryIds) rowCountById.set(id, (rowCountById.get(id) ?? 0) + rowCount);
  }
  const otherPersonIds = [...personIdsIn(suppressedGroups)].filter((personId) => !personIdsOfQuery.has(personId));
  return {
    unifiedIds: unifiedIdsOf(groupsOfIds),
    personCount: personIdsOfQuery.size,
    rowCountById,
    rowCount: countRows(groupsOfIds),
    namelessRowCount: countRows(groupsOfIds.filter(({ unifiedIds }) => unifiedIds.length === 0)),
    sharedPersonIds: personIdsIn(groupsOfIds.filter(({ hasOtherId }) => hasOtherId)),
    suppressedOthers: { personCount: otherPersonIds.length, rowCount: countRows(suppressedGroups) },
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
