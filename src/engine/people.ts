import { configError } from '../base/errors.ts';
import { isPlaceholder } from '../base/placeholder.ts';
import { UNIFIED_ID } from '../cells/columns/groups.ts';
import { type HashKey, INNER_PAD, OUTER_PAD } from '../cells/columns/hash-key.ts';
import { TYPES } from '../cells/types/index.ts';
import { asText } from '../cells/types/sql.ts';
import { COLUMN_TYPES, type ColumnType } from '../cells/types/type.ts';
import { type Zone, zoneOf } from '../cells/types/zone.ts';
import type { HashedColumns } from '../extract/export-request.ts';
import { hashedIn, serviceIn } from '../extract/state.ts';
import { isTyped, type StoredColumn, type Typed } from '../table/columns.ts';
import type { TableState } from '../table/state.ts';
import { NOBODY, type PeopleFound, type PeopleQuery, type UnifiedId } from '../targets/contract.ts';
import { rescueKey } from './rows/cells.ts';
import type { Engine } from './session/engine.ts';
import { anyOf, identifier, textLiteral } from './session/quote.ts';

// The one look-up of people, for all targets. It gives a condition on rows, so that what is found and what is
// removed cannot differ.
//
// Texts are compared by keys. The keys of a cell are its text and the canonical text of its value. The keys of an id
// are its text, the canonical text that each type gives it, and the hashes of these if the column is hashed. So every
// spelling of a number, a boolean or a datetime is found. A text column that once had another type is compared by the
// values of that type, too.

/** The rows of `events` in a place. */
export interface EventRows {
  readonly engine: Engine;
  /** Rows with the columns of `peopleColumns`; undefined if there are none. */
  readonly from: string | undefined;
  readonly state: TableState;
  readonly place: string;
}

/** A text that is looked for, with the number of its id in the list. */
interface Wanted {
  readonly n: number;
  readonly text: string;
}

export interface Lookup {
  readonly found: PeopleFound;
  /** SQL, TRUE for a row that a purge removes, else FALSE; valid on this engine until the next look-up. */
  readonly condition: string;
}

/**
 * Temporary tables of keys, with the number of their id in the list: of the fifth id, `7`, in a column of doubles
 * `n` 4, `key` 7 and `n` 4, `key` 7.0. IDS has those of the query's column, PEOPLE those of unified ids.
 */
const IDS = 'temp.main._dfinery_ids';
const PEOPLE = 'temp.main._dfinery_people';
const HASH_PATTERN = '[0-9a-f]{64}';
const HASHED_VALUE = new RegExp(`^${HASH_PATTERN}$`);

/**
 * Finds the people whose rows have one of the ids in the query's column, or whom its mapping names. Throws a
 * configuration failure for a missing column, and for one whose hashes need another key.
 */
export async function findPeople(rows: EventRows, query: PeopleQuery): Promise<Lookup> {
  const { engine, from, state } = rows;
  const service = serviceIn(state.exportState);
  const column = query.column === undefined ? undefined : new Cells(rows, query, query.column);
  const unified = new Cells(rows, query, UNIFIED_ID);
  const warnings = [
    ...(column?.hashWarnings() ?? []),
    ...(column?.listWarnings() ?? []),
    ...unifiedWarnings(rows, unified, query),
  ];
  for (const table of [IDS, PEOPLE]) await engine.run(`CREATE OR REPLACE TEMP TABLE ${table} (n INTEGER, key VARCHAR)`);
  if (from === undefined) return { found: { ...NOBODY, service, warnings }, condition: 'false' };
  const byColumn = column === undefined ? undefined : await matchColumn(engine, from, { column, unified, query });
  if (byColumn === undefined) await addMapping(engine, unified, query);
  else await addKeys(engine, unified, PEOPLE, byColumn.people);
  await addPlainForms(engine, from, unified, PEOPLE);
  const byUnifiedId = await matchingIds(engine, from, { cells: unified, table: PEOPLE, unified });
  const unifiedIds = [...new Set(byUnifiedId.flatMap(([, text]) => text ?? []))];
  const named = unified.isAmong(PEOPLE);
  const condition = column === undefined ? named : `(${column.isAmong(IDS)} OR ${named})`;
  const idsAt = (numbers: Iterable<number>) => {
    const wanted = new Set(numbers);
    return query.ids.filter((_, n) => wanted.has(n));
  };
  const found = {
    unifiedIds: unifiedIds.map((text): UnifiedId => ({ text, hashKey: unified.hashKeyOf(text) })),
    respelledAs: unified.respelledAs,
    people: new Set(unifiedIds.map((text) => unified.personOf(text))).size,
    ids: idsAt(byColumn?.ids ?? byUnifiedId.map(([n]) => n)),
    idsWithoutUnifiedId: idsAt(byColumn?.idsWithoutUnifiedId ?? []),
    rows: await engine.count(`${from} WHERE ${condition}`),
    shared: column === undefined ? 0 : await countShared(engine, from, column, unified),
    service,
    warnings,
  };
  return { found, condition };
}

/** The ids of a list that rows hold in a column, by their numbers, and whom these rows name. */
interface ColumnMatches {
  readonly ids: readonly number[];
  /** Those in a row that names nobody. */
  readonly idsWithoutUnifiedId: readonly number[];
  /** The unified ids of these rows, all with the number 0: which id led to one does not matter. */
  readonly people: readonly Wanted[];
}

/** Fills IDS, and finds the rows by it. */
async function matchColumn(
  engine: Engine,
  from: string,
  { column, unified, query }: { readonly column: Cells; readonly unified: Cells; readonly query: PeopleQuery },
): Promise<ColumnMatches> {
  const wanted = query.ids.map((text, n) => ({ n, text }));
  await addKeys(engine, column, IDS, wanted);
  await addPlainForms(engine, from, column, IDS);
  const matches = await matchingIds(engine, from, { cells: column, table: IDS, unified });
  const people = new Set(matches.flatMap(([, text]) => text ?? []));
  return {
    ids: matches.map(([n]) => n),
    idsWithoutUnifiedId: matches.filter(([, text]) => text === undefined).map(([n]) => n),
    people: [...people].map((text) => ({ n: 0, text })),
  };
}

/** Fills PEOPLE with the unified ids that the mapping has for the ids of the list. */
async function addMapping(engine: Engine, unified: Cells, { ids, mapping }: PeopleQuery): Promise<void> {
  const mapped = ids.flatMap((id, n) => (mapping?.get(id) ?? []).map((text) => ({ n, text })));
  const wanted = mapped.filter(({ text }) => !isPlaceholder(text));
  await addKeys(engine, unified, PEOPLE, wanted);
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

/** The columns, by their names in the place, that a look-up and its condition read; the relation must have them. */
export function peopleColumns(columns: readonly StoredColumn[], { column }: PeopleQuery): Typed[] {
  return columns.filter(isTyped).filter(({ source }) => source === UNIFIED_ID || source === column);
}

/** A cell of a row, NULL if it is absent: its stored text, and the keys that it is found by. */
interface Cell {
  readonly text: string;
  readonly keys: readonly string[];
  /** Canonical texts of its values as a number, a boolean or a datetime, which other spellings may have, too. */
  readonly values: readonly string[];
}

/** A column of the export in a place: the cells of all table columns with its name, and of `_rescued`. */
class Cells {
  readonly cells: readonly Cell[];
  /** The keys of an id, as SQL on `text`. */
  readonly keysOfId: readonly string[];
  /** The pads of HMAC for the key that the column is hashed under (hex); empty unless that key was given. */
  readonly pads: readonly string[];
  /** True if some rows have the values and some their hashes. */
  readonly isMixed: boolean;
  /** The type of its columns of which a value has several spellings; undefined if there is none. */
  readonly respelledAs: ColumnType | undefined;
  readonly #source: string;
  readonly #place: string;
  readonly #key: HashKey | undefined;
  readonly #hashings: readonly HashedColumns[];
  readonly #hasLists: boolean;

  constructor({ state, place }: EventRows, { hashKey }: PeopleQuery, source: string) {
    const own = state.columns.filter(isTyped).filter((column) => column.source === source);
    if (own.length === 0) throw configError(`${place} has no column ${source}: nothing was done.`);
    this.#source = source;
    this.#place = place;
    this.respelledAs = own.find(({ type }) => !TYPES[type].keepsSpelling)?.type;
    this.#hasLists = own.some(({ type }) => type.endsWith('[]'));
    this.#key = hashKey;
    const [hashed, zone] = [hashedIn(state.exportState), zoneOf(state.timezone)];
    this.#hashings = hashed.filter((hashing) => hashing.columns.includes(source));
    this.pads =
      this.#hasOwnKey && hashKey !== undefined ? [INNER_PAD, OUTER_PAD].map((pad) => padded(hashKey.block, pad)) : [];
    this.isMixed = this.#hashings.length < hashed.length;
    this.cells = own.flatMap((column) => cellsOf(column, zone));
    const plain = ['text', ...new Set(own.flatMap((column) => valueTexts(column, 'text', zone)))];
    this.keysOfId = this.pads.length === 0 ? plain : [...plain, ...plain.map(hmacSql)];
  }

  get texts(): string[] {
    return this.cells.map(({ text }) => text);
  }

  get keys(): string[] {
    return this.cells.flatMap(({ keys, values }) => [...keys, ...values]);
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
    const what = `${this.#place} holds the column ${this.#source} hashed`;
    if (this.#key === undefined) {
      throw configError(
        `${what}: give the hash_key that it was loaded with, in DFINERY_HASH_KEY or the file that ` +
          'DFINERY_HASH_KEY_FILE names. Nothing was done.',
      );
    }
    if (!this.#hasOwnKey) {
      throw configError(
        `${what} under another key than DFINERY_HASH_KEY gives: give the one that it was loaded with. Nothing was done.`,
      );
    }
    if (this.#hashings.every(({ key_check }) => key_check === this.#key?.check)) return [];
    return [
      `${this.#place}: ${this.#source} is hashed under another key in some of its rows: run again with that key to reach those.`,
    ];
  }

  /**
   * A warning if the column has lists, whose items are not compared: a list of several ids would be of several people.
   */
  listWarnings(): string[] {
    if (!this.#hasLists) return [];
    return [
      `${this.#place}: ${this.#source} has lists, and an ID inside a list is not found: find the people by another ` +
        'column, or by --mapping.',
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
function unifiedWarnings({ place, state }: EventRows, unified: Cells, { column, mapping }: PeopleQuery): string[] {
  if (mapping !== undefined || column === UNIFIED_ID) return unified.hashWarnings();
  if (!unified.isHashedUnknown || hashedIn(state.exportState).length === 1) return [];
  return [
    `${place}: df_unified_id is hashed in some of its rows: ` +
      `without that key in DFINERY_HASH_KEY, rows of these people that lack ${column} may stay.`,
  ];
}

function cellsOf(column: Typed, zone: Zone | undefined): Cell[] {
  const name = identifier(column.name);
  const text = TYPES[column.type].sqlText(name, zone);
  const pointer = `/${rescueKey(column).replaceAll('~', '~0').replaceAll('/', '~1')}`;
  const rescued = `json_extract_string(_rescued, ${textLiteral(pointer)})`;
  const own =
    column.type === 'string'
      ? { keys: [name], values: valueTexts(column, name, zone) }
      : { keys: [text, asText(name)], values: [] };
  return [
    { text, ...own },
    { text: rescued, keys: [rescued], values: [] },
  ];
}

/**
 * SQL of the canonical texts of the values that a text may have in a column, each NULL if it has none. In a column of
 * text these are what its former types left there: `7`, never `7.0`, which is an id of its own where it is stored.
 */
function valueTexts({ type, evidence }: Typed, text: string, zone: Zone | undefined): string[] {
  const valueText = (of: ColumnType, write: 'sqlText' | 'widenedText') =>
    `list_transform([${TYPES[of].sql(text, zone)}], lambda v0: ${TYPES[of][write]('v0', zone)})[1]`;
  if (type !== 'string') return [valueText(type, 'sqlText')];
  return COLUMN_TYPES.filter((former) => {
    const { keepsSpelling, cells } = TYPES[former];
    return !keepsSpelling && (evidence & cells(zone !== undefined)) !== 0;
  }).map((former) => valueText(former, 'widenedText'));
}

/** SQL of HMAC-SHA-256 in hex. The pads are parameters, so that no message of the engine can quote them. */
const hmacSql = (text: string): string => `sha256(unhex($2) || unhex(sha256(unhex($1) || encode(${text}))))`;

const padded = (block: Uint8Array, pad: number): string => Buffer.from(block.map((byte) => byte ^ pad)).toString('hex');

const isAnyAmong = (keys: readonly string[], table: string): string =>
  anyOf(keys.map((key) => `coalesce(${key} IN (SELECT key FROM ${table}), false)`));

/** Adds all keys of the wanted texts to a table. */
async function addKeys(engine: Engine, cells: Cells, table: string, wanted: readonly Wanted[]): Promise<void> {
  const { keysOfId, pads } = cells;
  const texts = `from_json($${pads.length + 1}, '[{"n":"INTEGER","text":"VARCHAR"}]')`;
  await engine.run(
    `
    INSERT INTO ${table}
    SELECT DISTINCT n, key
    FROM (
      SELECT n, unnest([${keysOfId.join(', ')}]) AS key
      FROM (SELECT wanted.n AS n, wanted.text AS text FROM (SELECT unnest(${texts}) AS wanted))
    )
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

/**
 * The numbers of a table that are in rows, each with a unified id of them, undefined if they name nobody: an id in rows
 * of two people gives `[4, 'erna']` and `[4, 'hans']`.
 */
async function matchingIds(
  engine: Engine,
  from: string,
  { cells, table, unified }: { readonly cells: Cells; readonly table: string; readonly unified: Cells },
): Promise<(readonly [number, string | undefined])[]> {
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

/** Counts the people whose rows also have another id in the column, or the same value in another spelling. */
async function countShared(engine: Engine, from: string, column: Cells, unified: Cells): Promise<number> {
  const others = column.cells.map(({ text, keys }) => `CASE WHEN NOT ${isAnyAmong(keys, IDS)} THEN ${text} END`);
  // A row for each unified id and each other id beside it.
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
