import { configError } from '../base/errors.ts';
import { isPlaceholder } from '../base/placeholder.ts';
import { UNIFIED_ID } from '../cells/columns/groups.ts';
import { type HashKey, INNER_PAD, OUTER_PAD } from '../cells/columns/hash-key.ts';
import { TYPES } from '../cells/types/index.ts';
import { type Zone, zoneOf } from '../cells/types/zone.ts';
import type { HashedColumns } from '../extract/export-request.ts';
import { hashedIn, serviceIn } from '../extract/state.ts';
import { isTyped, type Typed } from '../table/columns.ts';
import type { TableState } from '../table/state.ts';
import {
  NOBODY,
  type PeopleFound,
  type PeopleQuery,
  type SuppressedPeople,
  type UnifiedId,
} from '../targets/contract.ts';
import { rescueKey } from './rows/cells.ts';
import type { Engine } from './session/engine.ts';
import { anyOf, identifier, textLiteral } from './session/quote.ts';

// The one look-up of people, for all targets. It gives a condition on rows, so that what is found and what is removed
// cannot differ. Texts are compared by keys. The key of a cell is its text, or the canonical text of its value where
// the column is no string. The keys of an id are its text, the canonical text of its value for the types of the column,
// and the hashes of these if the column is hashed.

/** The rows of `events` in a place. */
export interface EventRows {
  readonly engine: Engine;
  /** Rows with all columns; undefined if there are none. */
  readonly from: string | undefined;
  readonly state: TableState;
  readonly place: string;
}

export interface Lookup {
  readonly found: PeopleFound;
  /** SQL, TRUE for a row that a purge removes, else FALSE; valid on this engine until the next look-up. */
  readonly condition: string;
}

/** A text that is looked for, with the number of its id in the list. */
interface Wanted {
  readonly n: number;
  readonly text: string;
}

/** An id of the list that is in rows, and a unified id of such a row; undefined if the row names nobody. */
type Match = readonly [n: number, unifiedId: string | undefined];

/** Temporary tables of keys, with the number of their id: IDS of a column, PEOPLE of unified ids. */
const IDS = 'temp.main._dfinery_ids';
const PEOPLE = 'temp.main._dfinery_people';
const HASH_PATTERN = '[0-9a-f]{64}';
const HASHED_VALUE = new RegExp(`^${HASH_PATTERN}$`);

/**
 * Finds the people whose rows have one of the ids in the query's column, whom its mapping names, or who are on its
 * suppression list. Throws a configuration failure for a missing column, and for one whose hashes need another key.
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

/** Names match whatever Unicode form a keyboard or an editor gave them. */
const isSameName = (a: string, b: string): boolean => a.normalize('NFC') === b.normalize('NFC');

/** The unified ids that the mapping has for the ids of the list. */
const mappedOf = ({ ids, mapping }: PeopleQuery): Wanted[] =>
  ids
    .flatMap((id, n) => (mapping?.get(id) ?? []).map((text) => ({ n, text })))
    .filter(({ text }) => !isPlaceholder(text));

/** A cell of a row, NULL if it is absent. */
interface Cell {
  readonly text: string;
  readonly key: string;
}

/** A column of the export in a place: the cells of all table columns with its name, and of `_rescued`. */
class Cells {
  readonly source: string;
  readonly cells: readonly Cell[];
  /** The keys of an id, as SQL on `text`. */
  readonly keysOfId: readonly string[];
  /** The pads of HMAC for the key that the column is hashed under (hex); empty unless that key was given. */
  readonly pads: readonly string[];
  /** True if some rows have the values and some their hashes. */
  readonly isMixed: boolean;
  readonly #place: string;
  readonly #key: HashKey | undefined;
  readonly #hashings: readonly HashedColumns[];

  constructor({ state, place }: EventRows, { hashKey }: PeopleQuery, name: string) {
    const own = state.columns.filter(isTyped).filter(({ source }) => isSameName(source, name));
    if (own.length === 0) throw configError(`${place} has no column ${name}. Nothing was done.`);
    this.source = own[0].source;
    this.#place = place;
    this.#key = hashKey;
    const [hashed, zone] = [hashedIn(state.exportState), zoneOf(state.timezone)];
    this.#hashings = hashed.filter(({ columns }) => columns.includes(this.source));
    this.pads = this.#hasOwnKey && hashKey !== undefined ? padsOf(hashKey) : [];
    this.isMixed = this.#hashings.length < hashed.length;
    this.cells = own.flatMap((column) => cellsOf(column, zone));
    const plain = ['text', ...new Set(own.flatMap(({ type }) => (type === 'string' ? [] : canonical(type, zone))))];
    this.keysOfId = this.pads.length === 0 ? plain : [...plain, ...plain.map(hmacSql)];
  }

  get texts(): string[] {
    return this.cells.map(({ text }) => text);
  }

  get keys(): string[] {
    return this.cells.map(({ key }) => key);
  }

  /** TRUE when a cell of the row has a key of the table, else FALSE. */
  isAmong(table: string): string {
    return isAnyAmong(this.keys, table);
  }

  /** The check value of the key under which a stored text is a hash; undefined for a text that is no hash. */
  hashKeyOf(text: string): string | undefined {
    if (this.#hashings.length === 0 || !HASHED_VALUE.test(text)) return undefined;
    return (this.#hasOwnKey ? this.#key?.check : this.#hashings.at(-1)?.key_check) ?? undefined;
  }

  /** A text that is equal for a value and its hash, so that both count as one person. */
  personOf(text: string): string {
    return this.pads.length === 0 || HASHED_VALUE.test(text) || this.#key === undefined ? text : this.#key.hashOf(text);
  }

  /** Warnings about hashes that cannot be looked for; throws a configuration failure if none can. */
  hashWarnings(): string[] {
    if (this.#hashings.length === 0) return [];
    if (!this.#hasOwnKey) {
      const given = this.#key === undefined ? 'hash_key is missing' : 'hash_key is another one';
      throw configError(
        `${this.#place} holds the column ${this.source} hashed, but ${given}: give the one that it was loaded with, in ` +
          'hash_key or DFINERY_HASH_KEY. Nothing was done.',
      );
    }
    if (this.#hashings.every(({ key_check }) => key_check === this.#key?.check)) return [];
    return [
      `${this.#place}: some rows have ${this.source} hashed under another key. Run again with that key for those.`,
    ];
  }

  get isHashedUnknown(): boolean {
    return this.#hashings.length > 0 && !this.#hasOwnKey;
  }

  get #hasOwnKey(): boolean {
    return this.#hashings.some(({ key_check }) => key_check === this.#key?.check);
  }
}

/**
 * Warnings about rows that may be missed because only some hold df_unified_id hashed: if all hold it hashed in one way,
 * people are found by what the rows hold.
 */
function unifiedWarnings({ place, state }: EventRows, unified: Cells, query: PeopleQuery): string[] {
  if (query.mapping !== undefined || query.column === UNIFIED_ID) return unified.hashWarnings();
  if (!unified.isHashedUnknown || hashedIn(state.exportState).length === 1) return [];
  return [`${place}: only some rows have df_unified_id hashed. Without that hash_key, rows of these people may stay.`];
}

function cellsOf(column: Typed, zone: Zone | undefined): Cell[] {
  const name = identifier(column.name);
  const text = TYPES[column.type].sqlText(name, zone);
  const pointer = `/${rescueKey(column).replaceAll('~', '~0').replaceAll('/', '~1')}`;
  const rescued = `json_extract_string(_rescued, ${textLiteral(pointer)})`;
  return [
    { text, key: text },
    { text: rescued, key: rescued },
  ];
}

/** SQL of the canonical text of the value that `text` has in a column of a type; NULL if it has none. */
const canonical = (type: Typed['type'], zone: Zone | undefined): string =>
  `list_transform([${TYPES[type].sql('text', zone)}], lambda v0: ${TYPES[type].sqlText('v0', zone)})[1]`;

/** SQL of HMAC-SHA-256 in hex. The pads are parameters, so that no message of the engine can quote them. */
const hmacSql = (text: string): string => `sha256(unhex($2) || unhex(sha256(unhex($1) || encode(${text}))))`;

const padsOf = ({ block }: HashKey): string[] =>
  [INNER_PAD, OUTER_PAD].map((pad) => Buffer.from(block.map((byte) => byte ^ pad)).toString('hex'));

const isAnyAmong = (keys: readonly string[], table: string): string =>
  anyOf(keys.map((key) => `coalesce(${key} IN (SELECT key FROM ${table}), false)`));

/** A relation `wanted` (n, text) of a parameter of JSON, which is the one after the pads. */
const wantedSql = (pads: readonly string[]): string =>
  `(SELECT w.n AS n, w.text AS text FROM (SELECT unnest(from_json($${pads.length + 1}, '[{"n":"INTEGER","text":"VARCHAR"}]')) AS w))`;

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
          [${cells.keys.join(', ')}] AS keys,
          list_filter([${unified.texts.join(', ')}], lambda p0: p0 IS NOT NULL) AS people
        FROM ${from}
        WHERE ${cells.isAmong(table)}
      )
    )
    JOIN ${table} USING (key)`);
  return rows.map(({ n, text }) => [Number(n), typeof text === 'string' && !isPlaceholder(text) ? text : undefined]);
}

interface RowsOfQuery extends Pick<PeopleQuery, 'ids'> {
  readonly condition: string;
  readonly column: Cells | undefined;
  readonly unified: Cells;
}

/** The rows that leave for each id; a row of several ids counts for each. */
async function countRowsOf(engine: Engine, from: string, { condition, column, unified, ids }: RowsOfQuery) {
  const tables = [`SELECT n, key, 'u' AS of FROM ${PEOPLE}`, ...(column ? [`SELECT n, key, 'c' FROM ${IDS}_0`] : [])];
  const keys = [
    ...unified.keys.map((key) => `{'of': 'u', 'key': ${key}}`),
    ...(column?.keys ?? []).map((key) => `{'of': 'c', 'key': ${key}}`),
  ];
  const rows = await engine.rows(`
    SELECT n, count(DISTINCT r) AS rows
    FROM (
      SELECT r, k.of AS of, k.key AS key
      FROM (
        SELECT r, unnest(keys) AS k
        FROM (SELECT row_number() OVER () AS r, [${keys.join(', ')}] AS keys FROM ${from} WHERE ${condition})
      )
    )
    JOIN (${tables.join(' UNION ALL ')}) USING (of, key)
    GROUP BY n`);
  return new Map(
    rows.flatMap(({ n, rows: count }) => (Number(n) in ids ? [[ids[Number(n)], Number(count)] as const] : [])),
  );
}

/** SQL of a text as people compare them: without blanks at its edges, in lower case and the usual Unicode form. */
const nearSql = (text: string): string =>
  `lower(regexp_replace(nfc_normalize(${text}), '^[\\s\\pZ\\p{Cf}]+|[\\s\\pZ\\p{Cf}]+$', '', 'g'))`;

/** The numbers of the texts that differ from one in the column by blanks at the edges, case or Unicode form alone. */
async function nearOf(engine: Engine, from: string, column: Cells, wanted: readonly Wanted[]): Promise<Set<number>> {
  if (wanted.length === 0) return new Set();
  const { pads, texts } = column;
  const near = nearSql('text');
  const forms = pads.length === 0 ? [near] : [near, hmacSql(near)];
  const rows = await engine.rows(
    `
    SELECT DISTINCT n
    FROM (SELECT n, unnest([${forms.join(', ')}]) AS form FROM ${wantedSql(pads)})
    JOIN (
      SELECT DISTINCT ${near} AS form FROM (SELECT DISTINCT unnest([${texts.join(', ')}]) AS text FROM ${from})
    ) USING (form)`,
    [...pads, JSON.stringify(wanted)],
  );
  return new Set(rows.map(({ n }) => Number(n)));
}

/** Counts the people whose rows also have another id in the column. */
async function countShared(engine: Engine, from: string, column: Cells, unified: Cells): Promise<number> {
  const others = column.cells.map(({ text, key }) => `CASE WHEN NOT ${isAnyAmong([key], `${IDS}_0`)} THEN ${text} END`);
  const rows = await engine.rows(`
    SELECT DISTINCT text, other
    FROM (
      SELECT text, unnest(others) AS other
      FROM (
        SELECT unnest(texts) AS text, others
        FROM (
          SELECT [${unified.texts.join(', ')}] AS texts, [${others.join(', ')}] AS others
          FROM ${from}
          WHERE ${unified.isAmong(PEOPLE)}
        )
      )
    )
    WHERE text IS NOT NULL AND other IS NOT NULL`);
  const shared = rows.filter(({ other }) => !isPlaceholder(String(other)));
  return new Set(shared.map(({ text }) => unified.personOf(String(text)))).size;
}
