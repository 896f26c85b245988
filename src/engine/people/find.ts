// This folder: finds people, for all targets. It gives a condition on rows, so that what is found and what is removed
// cannot differ.
import { isPlaceholder } from '../../base/placeholder.ts';
import { EXTERNAL_ID, UNIFIED_ID } from '../../cells/columns/groups.ts';
import { hashedIn, serviceIn } from '../../extract/export-state.ts';
import type { Engine } from '../session/engine.ts';
import { anyOf } from '../session/quote.ts';
import {
  Cells,
  columnsNamed,
  HASH_PATTERN,
  hmacSql,
  isHash,
  type KeyTables,
  keyTables,
  padsOf,
  type SearchedTable,
  type Wanted,
  wantedSql,
} from './cells.ts';
import { countRowsOf, countShared, nearOf } from './count.ts';
import { NOBODY, type PeopleFound, type PeopleQuery, type SuppressedPeople } from './query.ts';

interface Lookup {
  readonly found: PeopleFound;
  /** The people of the suppression list who have rows, but for those of the ids. */
  readonly others: ReadonlySet<string>;
  /** SQL, TRUE for a row that a purge removes, else FALSE; valid on this engine until the next look-up in this table. */
  readonly condition: string;
}

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
 * Finds people in both tables of a place. Whoever is found in one of them leaves both. Throws as `findInTable` does.
 */
export async function findPeople({ events, profiles }: SearchedPlace, query: PeopleQuery): Promise<PlaceLookup> {
  if (profiles === undefined) {
    const { found, condition } = await findInTable(events, query);
    return { found, conditions: { events: condition, profiles: 'false' } };
  }
  const column = query.asksProfiles === true ? EXTERNAL_ID : undefined;
  const { found: known } = await findInTable(profiles, { ...query, column });
  const inEvents = await findInTable(events, { ...query, people: joined(query.people, known.peopleOf) });
  const people = joined(query.people, known.peopleOf, inEvents.found.peopleOf);
  const inProfiles = await findInTable(profiles, { ...query, column, people });
  return {
    found: { ...together(inEvents, inProfiles, query), hasProfiles: column !== undefined },
    conditions: { events: inEvents.condition, profiles: inProfiles.condition },
  };
}

/** What was found in two tables. */
function together(events: Lookup, profiles: Lookup, { hashKey }: PeopleQuery): PeopleFound {
  const [a, b] = [events.found, profiles.found];
  const unifiedIds = [...new Map([...a.unifiedIds, ...b.unifiedIds].map((id) => [id.text, id])).values()];
  const persons = unifiedIds.map(({ text }) => (hashKey === undefined || isHash(text) ? text : hashKey.hashOf(text)));
  const rowsOf = new Map(a.rowsOf);
  for (const [id, rows] of b.rowsOf) rowsOf.set(id, (rowsOf.get(id) ?? 0) + rows);
  const peopleOf = joined(a.peopleOf, b.peopleOf);
  return {
    ...a,
    unifiedIds,
    people: new Set(persons).size,
    rowsOf,
    peopleOf,
    near: new Map([...b.near, ...a.near].filter(([id]) => !rowsOf.has(id))),
    rows: a.rows + b.rows,
    shared: Math.max(a.shared, b.shared),
    others: { people: new Set([...events.others, ...profiles.others]).size, rows: a.others.rows + b.others.rows },
    warnings: [...new Set([...a.warnings, ...b.warnings])],
  };
}

/** The unified ids of each id, from all of these. */
export function joined(...sources: readonly (ReadonlyMap<string, readonly string[]> | undefined)[]) {
  const people = new Map<string, string[]>();
  for (const source of sources) {
    for (const [id, texts] of source ?? []) people.set(id, [...new Set([...(people.get(id) ?? []), ...texts])]);
  }
  return people;
}

/** An id of the list that is in rows, and a unified id of such a row; undefined if the row names nobody. */
type Match = readonly [n: number, unifiedId: string | undefined];

/**
 * Finds people by the ids in the query's column, by the unified ids that other ways gave, and by the suppression list.
 * Throws a configuration failure for a column whose hashes need another key.
 */
async function findInTable(rows: SearchedTable, query: PeopleQuery): Promise<Lookup> {
  const { engine, from, state } = rows;
  const unified = new Cells(rows, query, UNIFIED_ID);
  const isHere = query.column !== undefined && columnsNamed(state, query.column).length > 0;
  const column = isHere && query.column !== undefined ? new Cells(rows, query, query.column) : undefined;
  const about = {
    column: column?.source,
    service: serviceIn(state.exportState),
    suppressionLength: state.suppressionLength ?? 0,
    hasProfiles: false,
    warnings: [...(column?.hashWarnings() ?? []), ...unifiedWarnings(rows, unified, query)],
  };
  const keys = keyTables(rows);
  for (const table of Object.values(keys)) {
    await engine.run(`CREATE OR REPLACE TEMP TABLE ${table} (n INTEGER, key VARCHAR)`);
  }
  if (from === undefined) return { found: { ...NOBODY, ...about }, others: new Set(), condition: 'false' };

  const matches = column === undefined ? [] : await matchColumn(engine, from, { column, unified, query, keys });
  const suppressed = await collectPeople(engine, from, { unified, query, keys, matches });
  const ofIds = anyOf([...(column === undefined ? [] : [column.isAmong(keys.ids)]), unified.isAmong(keys.people)]);
  const condition = anyOf([ofIds, unified.isAmong(keys.others)]);
  const { others, rowsOfOthers, ...counts } = await countFound(engine, from, {
    ...{ ofIds, condition, column, unified, query, keys, matches, suppressed },
  });
  return { found: { ...about, ...counts, others: { people: others.size, rows: rowsOfOthers } }, others, condition };
}

interface Columns {
  readonly column: Cells | undefined;
  readonly unified: Cells;
  readonly query: PeopleQuery;
  readonly keys: KeyTables;
}

/** Fills `ids`, and gives the ids that the column holds, each with the unified ids of its rows. */
async function matchColumn(
  engine: Engine,
  from: string,
  { column, unified, query, keys }: Columns & { readonly column: Cells },
): Promise<Match[]> {
  await addKeys(
    engine,
    column,
    keys.ids,
    query.ids.map((text, n) => ({ n, text })),
  );
  await addPlainForms(engine, from, column, keys.ids);
  return matchesOf(engine, from, { cells: column, table: keys.ids, unified });
}

/** Fills `people` and `others`; gives the unified ids of the place that are on the suppression list. */
async function collectPeople(
  engine: Engine,
  from: string,
  { unified, query, keys, matches }: Omit<Columns, 'column'> & { readonly matches: readonly Match[] },
): Promise<string[]> {
  const { ids, people } = query;
  const inRows = matches.flatMap(([n, text]): Wanted[] => (text === undefined ? [] : [{ n, text }]));
  const elsewhere = ids.flatMap((id, n) => (people?.get(id) ?? []).map((text) => ({ n, text })));
  await addKeys(engine, unified, keys.people, [...inRows, ...elsewhere.filter(({ text }) => !isPlaceholder(text))]);
  await addPlainForms(engine, from, unified, keys.people);
  const suppressed = query.suppressed === undefined ? [] : await suppressedIn(engine, from, unified, query.suppressed);
  await addKeys(
    engine,
    unified,
    keys.others,
    suppressed.map((text) => ({ n: 0, text })),
  );
  await addPlainForms(engine, from, unified, keys.others);
  return suppressed;
}

interface Conditions extends Columns {
  /** SQL, TRUE for the rows of the ids, and for all rows that leave. */
  readonly ofIds: string;
  readonly condition: string;
  readonly matches: readonly Match[];
  readonly suppressed: readonly string[];
}

async function countFound(
  engine: Engine,
  from: string,
  { ofIds, condition, column, unified, query, keys, matches, suppressed }: Conditions,
) {
  const { ids } = query;
  const texts = (await matchesOf(engine, from, { cells: unified, table: keys.people, unified })).flatMap(
    ([, text]) => text ?? [],
  );
  const unifiedIds = [...new Set(texts)].map((text) => ({ text, hashKey: unified.hashKeyOf(text) }));
  const people = new Set(unifiedIds.map(({ text }) => unified.personOf(text)));
  const others = new Set(suppressed.map((text) => unified.personOf(text)).filter((person) => !people.has(person)));
  const peopleOf = new Map<string, string[]>();
  for (const [n, text] of matches) {
    if (text !== undefined) peopleOf.set(ids[n], [...(peopleOf.get(ids[n]) ?? []), text]);
  }
  const inRows = new Set(matches.map(([n]) => n));
  const missing = ids.flatMap((text, n) => (inRows.has(n) ? [] : [{ n, text }]));
  const near = column === undefined ? [] : [...(await nearOf(engine, from, column, missing))];
  const rows = await engine.count(`${from} WHERE ${ofIds}`);
  return {
    unifiedIds,
    people: people.size,
    rowsOf: await countRowsOf(engine, from, { condition: ofIds, keys, column, unified, ids }),
    peopleOf,
    near: new Map(near.map(([n, text]) => [ids[n], text])),
    rows,
    shared: column === undefined ? 0 : await countShared(engine, from, { column, unified, keys }),
    others,
    rowsOfOthers: (await engine.count(`${from} WHERE ${condition}`)) - rows,
  };
}

/**
 * Yields the rows that meet a look-up's conditions, as JSON objects with the members `table` and `row`: an object
 * without the columns that are null.
 */
export async function* jsonOfRows(
  { events, profiles }: SearchedPlace,
  conditions: PlaceLookup['conditions'],
): AsyncGenerator<string> {
  yield* rowsOf(events, conditions.events);
  if (profiles !== undefined) yield* rowsOf(profiles, conditions.profiles);
}

async function* rowsOf({ engine, table, from }: SearchedTable, condition: string): AsyncGenerator<string> {
  if (from === undefined) return;
  const rows = engine.stream(`
    SELECT CAST(json_merge_patch('{}', to_json(e)) AS VARCHAR) AS row
    FROM (SELECT * FROM ${from} WHERE ${condition}) AS e`);
  for await (const { row } of rows) yield `{"table":"${table}","row":${row}}`;
}

/**
 * Warnings about rows that may be missed because only some hold df_unified_id hashed. If all hold it hashed in one way,
 * people whom rows name are found by what the rows hold; a plain unified id needs the key.
 */
function unifiedWarnings({ place, state }: SearchedTable, unified: Cells, query: PeopleQuery): string[] {
  const isPlain = [...(query.people?.values() ?? [])].flat().some((text) => !isHash(text));
  if (isPlain || query.column === UNIFIED_ID) return unified.hashWarnings();
  if (!unified.isHashedUnknown || hashedIn(state.exportState).length === 1) return [];
  return [`${place}: only some rows have df_unified_id hashed. Without that hash_key, rows of these people may stay.`];
}

/** Adds all keys of the wanted texts to a table. */
async function addKeys(engine: Engine, cells: Cells, table: string, wanted: readonly Wanted[]): Promise<void> {
  const { keysOfId, pads } = cells;
  await engine.run(
    `
    INSERT INTO ${table}
    SELECT DISTINCT n, key
    FROM (SELECT n, unnest([${keysOfId.join(', ')}]) AS key FROM ${wantedSql(pads)})
    WHERE key <> ''`,
    [...pads, JSON.stringify(wanted)],
  );
}

/** Adds the values whose hashes are wanted: rows that were loaded before the column was hashed hold them. */
async function addPlainForms(engine: Engine, from: string, cells: Cells, table: string): Promise<void> {
  const { pads, isMixed, texts } = cells;
  if (pads.length === 0 || !isMixed) return;
  await engine.run(
    `
    INSERT INTO ${table}
    SELECT known.n, plain.text
    FROM (
      SELECT DISTINCT text
      FROM (SELECT unnest([${texts.join(', ')}]) AS text FROM ${from})
      WHERE text IS NOT NULL AND NOT regexp_full_match(text, '${HASH_PATTERN}')
    ) AS plain
    JOIN ${table} AS known ON known.key = ${hmacSql('plain.text')}`,
    [...pads],
  );
}

/** The unified ids of a place that are on a suppression list. */
async function suppressedIn(engine: Engine, from: string, unified: Cells, { key, hmacs }: SuppressedPeople) {
  if (hmacs.length === 0) return [];
  const rows = await engine.rows(
    `
    SELECT DISTINCT text
    FROM (SELECT unnest([${unified.texts.join(', ')}]) AS text FROM ${from})
    WHERE text IS NOT NULL AND ${hmacSql('text')} IN (SELECT unnest(from_json($3, '["VARCHAR"]')))`,
    [...padsOf(key), JSON.stringify(hmacs)],
  );
  return rows.map((row) => String(row.text));
}

/** The ids of a table that are in rows, each with the unified ids of these rows. */
async function matchesOf(
  engine: Engine,
  from: string,
  { cells, table, unified }: { readonly cells: Cells; readonly table: string; readonly unified: Cells },
): Promise<Match[]> {
  const rows = await engine.rows(`
    SELECT DISTINCT n, unnest(CASE WHEN len(people) = 0 THEN [NULL] ELSE people END) AS text
    FROM (
      SELECT DISTINCT unnest(keys) AS key, people
      FROM (
        SELECT
          [${cells.texts.join(', ')}] AS keys,
          list_filter([${unified.texts.join(', ')}], lambda p0: p0 IS NOT NULL) AS people
        FROM ${from}
        WHERE ${cells.isAmong(table)}
      )
    )
    JOIN ${table} USING (key)`);
  return rows.map(({ n, text }) => [Number(n), typeof text === 'string' && !isPlaceholder(text) ? text : undefined]);
}
