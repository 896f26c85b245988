// This folder: finds people, for all targets. It gives a condition on rows, so that what is found and what is removed
// cannot differ.
import { isPlaceholder } from '../../base/placeholder.ts';
import { UNIFIED_ID } from '../../cells/columns/groups.ts';
import { hashedIn, serviceIn } from '../../extract/export-state.ts';
import type { Engine } from '../session/engine.ts';
import { anyOf, textLiteral } from '../session/quote.ts';
import {
  Cells,
  type EventRows,
  HASH_PATTERN,
  hmacSql,
  IDS,
  isSameName,
  PEOPLE,
  padsOf,
  type Wanted,
  wantedSql,
} from './cells.ts';
import { countRowsOf, countShared, nearOf } from './count.ts';
import { NOBODY, type PeopleFound, type PeopleQuery, type SuppressedPeople, type UnifiedId } from './query.ts';

export interface Lookup {
  readonly found: PeopleFound;
  /** SQL, TRUE for a row that a purge removes, else FALSE; valid on this engine until the next look-up. */
  readonly condition: string;
}

/** An id of the list that is in rows, and a unified id of such a row; undefined if the row names nobody. */
type Match = readonly [n: number, unifiedId: string | undefined];

/**
 * Finds people by the ids in the query's column, by its mapping, or by its suppression list. Throws a configuration
 * failure for a missing column, and for one whose hashes need another key.
 */
export async function findPeople(rows: EventRows, query: PeopleQuery): Promise<Lookup> {
  const { engine, from, state } = rows;
  const unified = new Cells(rows, query, UNIFIED_ID);
  const columns = columnsOf(query).flatMap((name) => {
    const isHere = state.columns.some(({ source }) => isSameName(source, name));
    return query.suppressed === undefined || isHere ? new Cells(rows, query, name) : [];
  });
  const [column] = query.suppressed === undefined ? columns : [];
  const warnings = [...columns.flatMap((one) => one.hashWarnings()), ...unifiedWarnings(rows, unified, query)];
  const { suppression } = state;
  const service = serviceIn(state.exportState);
  const known = { column: column?.source, service, suppression, warnings };
  await engine.run(`CREATE OR REPLACE TEMP TABLE ${PEOPLE} (n INTEGER, key VARCHAR)`);
  if (from === undefined) return { found: { ...NOBODY, ...known }, condition: 'false' };

  const conditions: string[] = [];
  const matches: Match[] = [];
  for (const [i, cells] of columns.entries()) {
    const table = `${IDS}_${i}`;
    await engine.run(`CREATE OR REPLACE TEMP TABLE ${table} (n INTEGER, key VARCHAR)`);
    const ids = query.suppressed ? await suppressedIn(engine, from, cells, query.suppressed) : query.ids;
    await addKeys(
      engine,
      cells,
      table,
      ids.map((text, n) => ({ n, text })),
    );
    await addPlainForms(engine, from, cells, table);
    matches.push(...(await matchesOf(engine, from, { cells, table, unified })));
    conditions.push(cells.isAmong(table));
  }
  const named = matches.flatMap(([n, text]): Wanted[] => (text === undefined ? [] : [{ n, text }]));
  const listed = query.suppressed ? await suppressedIn(engine, from, unified, query.suppressed) : [];
  await addKeys(engine, unified, PEOPLE, [...named, ...mappedOf(query), ...listed.map((text) => ({ n: 0, text }))]);
  await addPlainForms(engine, from, unified, PEOPLE);
  conditions.push(unified.isAmong(PEOPLE));
  const condition = anyOf(conditions);

  const byUnifiedId = await matchesOf(engine, from, { cells: unified, table: PEOPLE, unified });
  const unifiedIds = [...new Set(byUnifiedId.flatMap(([, text]) => text ?? []))];
  const numbers = new Set((column === undefined ? byUnifiedId : matches).map(([n]) => n));
  const idsWith = (wanted: ReadonlySet<number>) => query.ids.filter((_, n) => wanted.has(n));
  const missing = query.ids.flatMap((text, n) => (numbers.has(n) ? [] : [{ n, text }]));
  const found = {
    ...known,
    unifiedIds: unifiedIds.map((text): UnifiedId => ({ text, hashKey: unified.hashKeyOf(text) })),
    people: new Set(unifiedIds.map((text) => unified.personOf(text))).size,
    rowsOf: await countRowsOf(engine, from, { condition, column, unified, ids: query.ids }),
    idsWithoutUnifiedId: idsWith(new Set(matches.flatMap(([n, text]) => (text === undefined ? [n] : [])))),
    near: column === undefined ? [] : idsWith(await nearOf(engine, from, column, missing)),
    rows: await engine.count(`${from} WHERE ${condition}`),
    shared: column === undefined ? 0 : await countShared(engine, from, column, unified),
  };
  return { found, condition };
}

/** Yields the rows that meet a look-up's condition, as JSON objects without the columns that are null. */
export async function* jsonOfRows(
  { engine, from }: Pick<EventRows, 'engine' | 'from'>,
  condition: string,
): AsyncGenerator<string> {
  if (from === undefined) return;
  const rows = engine.stream(`
    SELECT CAST(json_merge_patch('{}', to_json(e)) AS VARCHAR) AS row
    FROM (SELECT * FROM ${from} WHERE ${condition}) AS e`);
  for await (const { row } of rows) yield String(row);
}

/** The columns of external ids that a query looks into. */
const columnsOf = ({ column, suppressed }: PeopleQuery): string[] =>
  suppressed === undefined
    ? [column ?? []].flat()
    : [...new Set(suppressed.entries.flatMap((entry) => entry.column ?? []))];

/** The unified ids that the mapping has for the ids of the list. */
const mappedOf = ({ ids, mapping }: PeopleQuery): Wanted[] =>
  ids
    .flatMap((id, n) => (mapping?.get(id) ?? []).map((text) => ({ n, text })))
    .filter(({ text }) => !isPlaceholder(text));

/**
 * Warnings about rows that may be missed because only some hold df_unified_id hashed: if all hold it hashed in one way,
 * people are found by what the rows hold.
 */
function unifiedWarnings({ place, state }: EventRows, unified: Cells, query: PeopleQuery): string[] {
  if (query.mapping !== undefined || query.column === UNIFIED_ID) return unified.hashWarnings();
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

/** The texts of a column that are on a suppression list, with the column's name before an external id. */
async function suppressedIn(engine: Engine, from: string, cells: Cells, { key, entries }: SuppressedPeople) {
  const isUnified = cells.source === UNIFIED_ID;
  const hmacs = entries.flatMap(({ hmac, column }) => ((column === undefined) === isUnified ? [hmac] : []));
  const text = isUnified ? 'text' : `${textLiteral(`${cells.source}\0`)} || text`;
  const rows = await engine.rows(
    `
    SELECT DISTINCT text
    FROM (SELECT unnest([${cells.texts.join(', ')}]) AS text FROM ${from})
    WHERE text IS NOT NULL AND ${hmacSql(text)} IN (SELECT unnest(from_json($3, '["VARCHAR"]')))`,
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
