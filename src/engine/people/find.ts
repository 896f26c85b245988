import { systemError } from '../../base/errors.ts';
import { groupBy } from '../../base/group.ts';
import { isPlaceholder } from '../../base/placeholder.ts';
import { anyOfSql, listSql } from '../../base/sql.ts';
import type { HashKey } from '../../cells/columns/hash-key.ts';
import { EXTERNAL_ID, UNIFIED_ID } from '../../cells/csv/header.ts';
import { serviceIn } from '../../extract/export-state.ts';
import { type PlaceState, tableState } from '../../table/place-state.ts';
import { EVENTS, type Table, USER_PROFILES } from '../../table/tables.ts';
import type { Engine } from '../session/engine.ts';
import { hmacSql, IdColumn, padsOf } from './id-column.ts';
import {
  isHash,
  joinPeople,
  type PeopleById,
  type PeopleFound,
  type PeopleQuery,
  personOf,
  type UnifiedId,
} from './query.ts';
import { foldedSql } from './spelling.ts';

export interface SearchedPlace {
  readonly engine: Engine;
  /** The place as messages name it. */
  readonly name: string;
  readonly state: PlaceState;
  /** All rows of each table, with all columns; undefined if there are none. */
  readonly relations: Readonly<Record<Table['name'], string | undefined>>;
}

export interface PlaceLookup {
  /** Of both tables together. */
  readonly people: PeopleFound;
  /** SQL for each table, TRUE for a row that a purge removes, else FALSE; valid until the engine's next look-up. */
  readonly conditions: Readonly<Record<Table['name'], string>>;
}

/** A table that has rows, with the columns in which people are looked for. */
interface SearchedTable {
  readonly name: Table['name'];
  readonly relation: string;
  /** Undefined if the table is not searched for external ids. */
  readonly external: IdColumn | undefined;
  readonly unified: IdColumn;
}

const KINDS = ['external', 'unified'] as const;
type Kind = (typeof KINDS)[number];

/**
 * Temporary table: what cells may hold for the ids that are looked for. `id` is NULL for the suppression list.
 *
 *     id    table_name  kind      text
 *     4711  events      external  4711
 *     4711  events      unified   u-1
 *     NULL  events      unified   u-2
 */
const STORED_TEXTS = 'temp.main._dfinery_stored_texts';
/** What the cells of both columns hold in the rows that leave: likewise, with a `row_id` such as `events 17`. */
const CELLS = 'temp.main._dfinery_cells';

/**
 * Finds people in both tables of a place. Whoever is found in one of them leaves both. Throws a configuration failure
 * for a column whose hashes need another key.
 */
export async function findPeople(place: SearchedPlace, query: PeopleQuery): Promise<PlaceLookup> {
  const { engine, state } = place;
  const { ids, hashKey } = query;

  // 1. The columns that hold ids.
  const searchedProfiles = state.profiles !== undefined && query.searchesProfiles === true;
  const idColumns = { events: query.column, user_profiles: searchedProfiles ? EXTERNAL_ID : undefined };
  const tables = searchedTables(place, idColumns, hashKey);

  // 2. The people of the rows that hold the external ids.
  await createTables(engine);
  const foundByTable: PeopleById[] = [];
  const idTexts = ids.map((id) => ({ id, text: id }));
  for (const table of tables) {
    await addStoredTexts(engine, table, 'external', idTexts);
    foundByTable.push(await peopleOfIds(engine, table));
  }
  const foundInRows = joinPeople(...foundByTable);
  const unifiedTexts = joinPeople(query.knownPeople, foundInRows);
  const warnings = checkKeys(place, tables, unifiedTexts, query);

  // 3. All rows of these people, of those that other ways found, and of those on the suppression list.
  const textsOfIds = ids
    .flatMap((id) => (unifiedTexts.get(id) ?? []).map((text) => ({ id, text })))
    .filter(({ text }) => !isPlaceholder(text));
  const suppressedPersons = new Set<string>();
  const conditions = { events: 'false', user_profiles: 'false' };
  for (const table of tables) {
    const suppressed = await suppressedTexts(engine, table, query);
    for (const text of suppressed) suppressedPersons.add(personOf(text, hashKey));
    const textsOfList = suppressed.map((text) => ({ id: null, text }));
    await addStoredTexts(engine, table, 'unified', [...textsOfIds, ...textsOfList]);
    conditions[table.name] = conditionSql(table, KINDS);
    await addCells(engine, table, conditions[table.name]);
  }

  // 4. Who that is, and how many rows they have.
  const { rowsOf, rowCount, leavingCount } = await countRows(engine);
  const { unifiedIds, peopleWithOtherIds } = await peopleInCells(engine, tables, hashKey);
  await engine.run(`DROP TABLE ${CELLS}`);
  const persons = new Set(unifiedIds.map(({ text }) => personOf(text, hashKey)));
  const othersCount = [...suppressedPersons].filter((person) => !persons.has(person)).length;
  const missingIds = ids.filter((id) => !rowsOf.has(id));
  return {
    people: {
      unifiedIds,
      personCount: persons.size,
      rowsOf,
      peopleOf: foundInRows,
      alikeTexts: await alikeTexts(engine, tables, missingIds),
      rowCount,
      peopleWithOtherIds,
      suppressedOthers: { personCount: othersCount, rowCount: leavingCount - rowCount },
      place: {
        column: IdColumn.named(state, query.column, hashKey)?.source,
        searchedProfiles,
        service: serviceIn(state.exportState),
        suppressionLength: state.suppressionLength ?? 0,
      },
      warnings,
    },
    conditions,
  };
}

/** The tables that have rows. `idColumns`: names in the export of the columns of external ids. */
function searchedTables(
  { name: placeName, state: placeState, relations }: SearchedPlace,
  idColumns: Readonly<Record<Table['name'], string | undefined>>,
  hashKey: HashKey | undefined,
): SearchedTable[] {
  return [EVENTS, USER_PROFILES].flatMap(({ name }) => {
    const [relation, state] = [relations[name], tableState(placeState, name)];
    if (relation === undefined || state === undefined) return [];
    const unified = IdColumn.named(state, UNIFIED_ID, hashKey);
    if (unified === undefined) throw systemError(`${placeName} has no column ${UNIFIED_ID}.`);
    return [{ name, relation, external: IdColumn.named(state, idColumns[name], hashKey), unified }];
  });
}

const createTables = (engine: Engine) =>
  engine.run(`
    CREATE OR REPLACE TEMP TABLE ${STORED_TEXTS} (id VARCHAR, table_name VARCHAR, kind VARCHAR, text VARCHAR);
    CREATE OR REPLACE TEMP TABLE ${CELLS} (row_id VARCHAR, table_name VARCHAR, kind VARCHAR, text VARCHAR)`);

/** Gives warnings of `IdColumn.checkKey`. Only what is plain, or may be, needs the key of the unified ids. */
function checkKeys(
  { name }: SearchedPlace,
  tables: readonly SearchedTable[],
  unifiedTexts: PeopleById,
  { column }: PeopleQuery,
): string[] {
  const isPlain = [...unifiedTexts.values()].flat().some((text) => !isHash(text));
  const warnings = tables.flatMap(({ external, unified }) => [
    ...(external?.checkKey(true, name) ?? []),
    ...unified.checkKey(isPlain || column === UNIFIED_ID, name),
  ]);
  return [...new Set(warnings)];
}

/** Adds what cells of a column may hold for these texts. `id`: whose text it is; null for the suppression list. */
async function addStoredTexts(
  engine: Engine,
  table: SearchedTable,
  kind: Kind,
  texts: readonly { readonly id: string | null; readonly text: string }[],
): Promise<void> {
  const column = table[kind];
  if (column === undefined) return;
  // Only its hash tells that a plain cell holds the same id as a hashed one.
  const plainTexts = `
    UNION
    SELECT id, plain.text
    FROM (SELECT DISTINCT text FROM ${cellsOf(table, column)}) AS plain
    JOIN computed ON computed.text = ${hmacSql('plain.text')}`;
  const sql = `
    INSERT INTO ${STORED_TEXTS}
    WITH
      entries AS (SELECT unnest(from_json($texts, '[{"id":"VARCHAR","text":"VARCHAR"}]')) AS entry),
      computed AS (SELECT entry.id AS id, unnest(${column.storedTextsSql('entry.text')}) AS text FROM entries),
      stored_texts AS (SELECT id, text FROM computed ${column.isMixed ? plainTexts : ''})
    SELECT DISTINCT id, '${table.name}', '${kind}', text
    FROM stored_texts
    WHERE text <> ''`;
  await engine.run(sql, { ...padsOf(column.hashKey), texts: JSON.stringify(texts) });
}

/** A relation (text) of all cells of a column. */
const cellsOf = ({ relation }: SearchedTable, { cells }: IdColumn): string =>
  `(SELECT unnest(${listSql(cells)}) AS text FROM ${relation})`;

/** A relation (id, text) of what cells of a column may hold. */
const storedTextsOf = ({ name }: SearchedTable, kind: Kind): string =>
  `(SELECT id, text FROM ${STORED_TEXTS} WHERE table_name = '${name}' AND kind = '${kind}')`;

/** SQL, TRUE for a row with a cell of these kinds that holds one of the stored texts, else FALSE. */
function conditionSql(table: SearchedTable, kinds: readonly Kind[]): string {
  const holdsText = kinds.flatMap((kind) =>
    (table[kind]?.cells ?? []).map(
      (cell) => `coalesce(${cell} IN (SELECT text FROM ${storedTextsOf(table, kind)}), false)`,
    ),
  );
  return anyOfSql(holdsText);
}

/** The people of the rows that hold an external id. */
async function peopleOfIds(engine: Engine, table: SearchedTable): Promise<PeopleById> {
  const { relation, external, unified } = table;
  if (external === undefined) return new Map();
  const pairs = await engine.rows(`
    WITH
      rows_of_ids AS (
        SELECT ${listSql(external.cells)} AS ids, ${listSql(unified.cells)} AS people
        FROM ${relation}
        WHERE ${conditionSql(table, ['external'])}
      ),
      people_by_text AS (SELECT DISTINCT unnest(ids) AS text, people FROM rows_of_ids)
    SELECT DISTINCT id, unnest(list_filter(people, lambda person: person IS NOT NULL)) AS person
    FROM people_by_text
    JOIN ${storedTextsOf(table, 'external')} USING (text)`);
  const people = pairs.filter(({ person }) => !isPlaceholder(String(person)));
  const byId = groupBy(people, ({ id }) => String(id));
  return new Map(Array.from(byId, ([id, pairsOfId]) => [id, pairsOfId.map(({ person }) => String(person))]));
}

/** The unified ids of a table that are on the suppression list. */
async function suppressedTexts(engine: Engine, table: SearchedTable, { suppressed }: PeopleQuery): Promise<string[]> {
  if (suppressed === undefined || suppressed.hmacs.length === 0) return [];
  const sql = `
    SELECT DISTINCT text
    FROM ${cellsOf(table, table.unified)}
    WHERE text IS NOT NULL AND ${hmacSql('text')} IN (SELECT unnest(from_json($hmacs, '["VARCHAR"]')))`;
  const values = { ...padsOf(suppressed.key), hmacs: JSON.stringify(suppressed.hmacs) };
  const rows = await engine.rows(sql, values);
  return rows.map(({ text }) => String(text));
}

/** Adds the cells of the rows that leave a table. */
async function addCells(engine: Engine, table: SearchedTable, condition: string): Promise<void> {
  const cells = KINDS.flatMap((kind) =>
    (table[kind]?.cells ?? []).map((cell) => `{'kind': '${kind}', 'text': ${cell}}`),
  );
  await engine.run(`
    INSERT INTO ${CELLS}
    WITH
      leaving AS (
        SELECT '${table.name} ' || row_number() OVER () AS row_id, ${listSql(cells)} AS cells
        FROM ${table.relation}
        WHERE ${condition}
      ),
      cells_of_rows AS (SELECT row_id, unnest(cells) AS cell FROM leaving)
    SELECT row_id, '${table.name}', cell.kind, cell.text
    FROM cells_of_rows
    WHERE cell.text IS NOT NULL`);
}

/** The number of rows of each id, of all ids together, and of all people who leave. A row may have several ids. */
async function countRows(engine: Engine) {
  const hits = `${CELLS} JOIN ${STORED_TEXTS} USING (table_name, kind, text) WHERE id IS NOT NULL`;
  const counts = await engine.rows(`SELECT id, count(DISTINCT row_id) AS row_count FROM ${hits} GROUP BY id`);
  return {
    rowsOf: new Map(counts.map(({ id, row_count }) => [String(id), Number(row_count)])),
    rowCount: await engine.count(`(SELECT DISTINCT row_id FROM ${hits})`),
    leavingCount: await engine.count(`(SELECT DISTINCT row_id FROM ${CELLS})`),
  };
}

/** The unified ids in the rows of the people, and the people whose rows also have another external id. */
async function peopleInCells(engine: Engine, tables: readonly SearchedTable[], hashKey: HashKey | undefined) {
  const pairs = await engine.rows(`
    WITH
      rows_of_people AS (
        SELECT DISTINCT row_id
        FROM ${CELLS}
        JOIN ${STORED_TEXTS} USING (table_name, kind, text)
        WHERE kind = 'unified' AND id IS NOT NULL
      ),
      people AS (SELECT row_id, table_name, text FROM ${CELLS} WHERE kind = 'unified'),
      other_ids AS (
        SELECT row_id, text AS other_id
        FROM ${CELLS}
        ANTI JOIN ${STORED_TEXTS} USING (table_name, kind, text)
        WHERE kind = 'external'
      )
    SELECT DISTINCT table_name, text, other_id
    FROM rows_of_people
    JOIN people USING (row_id)
    LEFT JOIN other_ids USING (row_id)
    ORDER BY table_name`);
  const unifiedIds = new Map<string, UnifiedId>();
  const peopleWithOtherIds = new Set<string>();
  for (const { table_name, text: value, other_id } of pairs) {
    const text = String(value);
    if (isPlaceholder(text)) continue;
    const column = tables.find(({ name }) => name === table_name)?.unified;
    unifiedIds.set(text, { text, keyCheck: column?.keyCheckOf(text) });
    if (other_id !== null && !isPlaceholder(String(other_id))) peopleWithOtherIds.add(personOf(text, hashKey));
  }
  return { unifiedIds: [...unifiedIds.values()], peopleWithOtherIds };
}

/** For ids without a row: a text of the external column that differs only in its spelling. */
async function alikeTexts(
  engine: Engine,
  tables: readonly SearchedTable[],
  ids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const texts = new Map<string, string>();
  for (const table of tables) {
    const { external } = table;
    if (external === undefined || ids.length === 0) continue;
    const folded = foldedSql('id');
    const storedTexts = external.hashKey === undefined ? [folded] : [folded, foldedSql(hmacSql(folded))];
    const sql = `
      WITH
        ids AS (SELECT unnest(from_json($ids, '["VARCHAR"]')) AS id),
        folded_ids AS (SELECT id, unnest(${listSql(storedTexts)}) AS folded FROM ids),
        folded_cells AS (
          SELECT ${foldedSql('text')} AS folded, any_value(text) AS stored
          FROM (SELECT DISTINCT text FROM ${cellsOf(table, external)})
          GROUP BY folded
        )
      SELECT id, any_value(stored) AS stored
      FROM folded_ids
      JOIN folded_cells USING (folded)
      WHERE folded <> ''
      GROUP BY id`;
    const rows = await engine.rows(sql, { ...padsOf(external.hashKey), ids: JSON.stringify(ids) });
    for (const { id, stored } of rows) texts.set(String(id), String(stored));
  }
  return texts;
}

/**
 * Yields the rows that meet a look-up's conditions, as JSON objects with the members `table` and `row`. A row is an
 * object without the columns that are null.
 */
export async function* jsonOfRows(
  { engine, relations }: SearchedPlace,
  conditions: PlaceLookup['conditions'],
): AsyncGenerator<string> {
  for (const { name } of [EVENTS, USER_PROFILES]) {
    if (relations[name] === undefined) continue;
    const rows = engine.stream(`
      SELECT CAST(json_merge_patch('{}', to_json(e)) AS VARCHAR) AS row
      FROM (SELECT * FROM ${relations[name]} WHERE ${conditions[name]}) AS e`);
    for await (const { row } of rows) yield `{"table":"${name}","row":${row}}`;
  }
}
