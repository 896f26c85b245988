import { randomBytes } from 'node:crypto';
import type { HashKey } from '../../base/hash-key.ts';
import { anyOfSql, identifier, listSql, literal } from '../../base/sql.ts';
import type { ColumnCodec } from '../../cells/types/codec.ts';
import { codecOf } from '../../cells/types/column-types.ts';
import { zoneOf } from '../../cells/types/zone.ts';
import type { TableState } from '../../table/place-state.ts';
import { rescueKey, type TableName, type TypedColumn } from '../../table/tables.ts';
import type { Engine } from '../session/engine.ts';
import { ColumnKeys } from './column-keys.ts';
import { columnsNamed, looksHashed, type SuppressedPeople } from './people.ts';
import { foldedSql, usualSpellings } from './spelling.ts';

/** A table of a place in which people are looked for. */
export interface SearchedTable {
  readonly engine: Engine;
  /** The place as messages name it. */
  readonly placeName: string;
  readonly name: TableName;
  /** SQL after FROM that gives all its rows, with all columns. */
  readonly relation: string;
  readonly state: TableState;
}

/** An id that cells may hold, and the id of the query that it stands for. */
interface SoughtId {
  readonly id: string;
  readonly queryId: string;
  /** True for the hash of a unified id: warnings and refusals tell it apart. The look-up takes all ids alike. */
  readonly isHashed: boolean;
}

/** What a look-up finds in a column. */
export interface LookUp {
  /** TRUE for a row with a cell that holds one of the ids, else FALSE. */
  readonly conditionSql: string;
  /** Sentences about cells that could not be searched. */
  readonly warnings: readonly string[];
  /** The ids of the query that these cells stand for; none for a cell that nobody looked up. */
  queryIdsOf(cells: readonly string[]): string[];
}

/**
 * A column of external or unified ids, as the export names it. Its cells are those of all table columns with its name,
 * and of `_rescued`; none if the table lacks it. A cell is read as the canonical text of its value: an id, or its hash.
 */
export class IdColumn {
  /** SQL of each of its cells in a row, NULL if it is absent. */
  readonly cellSqls: readonly string[];
  /** SQL of the list of these cells. */
  readonly cellListSql: string;
  readonly keys: ColumnKeys;
  readonly #table: SearchedTable;
  /** Of its types but `string`, whose values are the texts themselves. */
  readonly #typedCodecs: readonly ColumnCodec[];
  /** A relation (cell) of the different cells in all rows. */
  readonly #distinctCellsSql: string;

  /** `source`: its name in the export; undefined for a column without cells. */
  constructor(table: SearchedTable, source: string | undefined, hashKey: HashKey | undefined) {
    const { relation, state } = table;
    const columns = columnsNamed(state, source);
    const zone = zoneOf(state.timezone);
    this.cellSqls = columns.flatMap((column) => [
      codecOf(column.type, zone).textSql(identifier(column.name)),
      rescuedTextSql(column),
    ]);
    // The NULL gives a type also to the list of a column without cells.
    this.cellListSql = listSql([...this.cellSqls, 'CAST(NULL AS VARCHAR)']);
    // Rows have no hashes of a column that their table lacks, whatever the settings hash.
    this.keys = new ColumnKeys(columns[0]?.source ?? '', state, hashKey);
    this.#table = table;
    const types = new Set(columns.map(({ type }) => type).filter((type) => type !== 'string'));
    this.#typedCodecs = Array.from(types, (type) => codecOf(type, zone));
    this.#distinctCellsSql = `(SELECT DISTINCT unnest(${this.cellListSql}) AS cell FROM ${relation})`;
  }

  /**
   * Looks for ids, and for those of the suppression list. Throws a configuration failure for plain ids in a column whose
   * hashes need another key.
   */
  async lookUp(soughtIds: readonly SoughtId[], suppressedPeople?: SuppressedPeople): Promise<LookUp> {
    const { placeName, engine } = this.#table;
    const suppressedIds = await this.#suppressedIds(suppressedPeople);
    const warnings = this.keys.missedRowsWarnings(placeName, soughtIds);
    const ids = [...soughtIds, ...suppressedIds.map((id) => ({ id, queryId: null }))];
    // A condition without a look-up needs no scan of the rows.
    if (this.cellSqls.length === 0 || ids.length === 0)
      return { conditionSql: 'false', warnings, queryIdsOf: () => [] };
    const matchTable = await this.#storeMatches(ids);
    const rows = await engine.rows(`
      SELECT cell, list(query_id) AS query_ids
      FROM ${matchTable}
      WHERE query_id IS NOT NULL
      GROUP BY cell`);
    const idsByCell = new Map(rows.map(({ cell, query_ids }) => [String(cell), query_ids as readonly string[]]));
    const isMatchSql = (cellSql: string) => `coalesce(${cellSql} IN (SELECT cell FROM ${matchTable}), false)`;
    return {
      conditionSql: anyOfSql(this.cellSqls.map(isMatchSql)),
      warnings,
      queryIdsOf: (cells) => cells.flatMap((cell) => idsByCell.get(cell) ?? []),
    };
  }

  /**
   * Makes a temporary table (query_id, cell) of what cells may hold for these ids. Returns its name.
   * `queryId` is null for an id of the suppression list, which nobody asked for.
   *
   * | rows of the column              | what their cells hold for an id                   |
   * | ------------------------------- | ------------------------------------------------- |
   * | any                             | the id, or its value in a type of the column      |
   * | some hashed under `matchingKey` | the hash of these                                 |
   * | some plain, and a key is given  | for an id that is a hash: the text with this hash |
   */
  async #storeMatches(ids: readonly { readonly id: string; readonly queryId: string | null }[]): Promise<string> {
    const { hashKey, matchingKey, hasPlainRows } = this.keys;
    const plainSqls = ['id', ...this.#typedCodecs.map((codec) => canonicalSql(codec, 'id'))];
    const idHmac = matchingKey && hmacInSql(matchingKey);
    const textSqls = idHmac === undefined ? plainSqls : [...plainSqls, ...plainSqls.map(idHmac.sqlOf)];
    // Such a hash is that of other rows, of another place or of the suppression list.
    const cellHmac = hasPlainRows && ids.some(({ id }) => looksHashed(id)) ? hashKey && hmacInSql(hashKey) : undefined;
    const hashedCellsSql =
      cellHmac &&
      `UNION
      SELECT query_id, cell
      FROM ${this.#distinctCellsSql}
      JOIN texts ON text = ${cellHmac.sqlOf('cell')}`;
    const matchTable = `temp.main._dfinery_matches_${randomBytes(8).toString('hex')}`;
    const sql = `
      CREATE TEMP TABLE ${matchTable} AS
      WITH
        ids AS (SELECT unnest(from_json($ids, '[{"id":"VARCHAR","queryId":"VARCHAR"}]'), recursive := true)),
        texts AS (SELECT queryId AS query_id, unnest(${listSql(textSqls)}) AS text FROM ids)
      SELECT DISTINCT query_id, text AS cell
      FROM texts
      WHERE text <> ''
      ${hashedCellsSql ?? ''}`;
    await this.#table.engine.run(sql, { ids: JSON.stringify(ids), ...idHmac?.values, ...cellHmac?.values });
    return matchTable;
  }

  /** The ids in its cells that are on the suppression list, by the id or by its hash. */
  async #suppressedIds(suppressedPeople: SuppressedPeople | undefined): Promise<string[]> {
    if (suppressedPeople === undefined || suppressedPeople.hmacs.length === 0) return [];
    const { key, hmacs } = suppressedPeople;
    const { hashKey, hasPlainRows } = this.keys;
    const listHmac = hmacInSql(key);
    const cellHmac = hasPlainRows ? hashKey && hmacInSql(hashKey, 'cell_') : undefined;
    const idSqls = cellHmac === undefined ? ['cell'] : ['cell', cellHmac.sqlOf('cell')];
    const isListedSql = (idSql: string) =>
      `${listHmac.sqlOf(idSql)} IN (SELECT unnest(from_json($hmacs, '["VARCHAR"]')))`;
    const sql = `SELECT cell FROM ${this.#distinctCellsSql} WHERE ${anyOfSql(idSqls.map(isListedSql))}`;
    const values = { hmacs: JSON.stringify(hmacs), ...listHmac.values, ...cellHmac?.values };
    return (await this.#table.engine.rows(sql, values)).map(({ cell }) => String(cell));
  }

  /** Pairs of one of these ids and a cell: another spelling of the id, or the hash of a usual spelling. */
  async similarIds(ids: readonly string[]): Promise<(readonly [id: string, similarId: string])[]> {
    if (ids.length === 0 || this.cellSqls.length === 0) return [];
    const { matchingKey } = this.keys;
    const spellings = ids.flatMap((id) => {
      const hashes = matchingKey === undefined ? [] : usualSpellings(id).map((text) => matchingKey.hashOf(text));
      return [id, ...hashes].map((spelling) => ({ id, spelling }));
    });
    const sql = `
      WITH
        spellings AS (SELECT unnest(from_json($spellings, '[{"id":"VARCHAR","spelling":"VARCHAR"}]'), recursive := true)),
        ids AS (SELECT DISTINCT id, ${foldedSql('spelling')} AS folded FROM spellings),
        cells AS (SELECT cell, ${foldedSql('cell')} AS folded FROM ${this.#distinctCellsSql})
      SELECT id, cell
      FROM ids
      JOIN cells USING (folded)
      WHERE folded <> ''`;
    const rows = await this.#table.engine.rows(sql, { spellings: JSON.stringify(spellings) });
    return rows.map(({ id, cell }) => [String(id), String(cell)]);
  }
}

function rescuedTextSql(column: TypedColumn): string {
  const pointer = `/${rescueKey(column).replaceAll('~', '~0').replaceAll('/', '~1')}`;
  return `json_extract_string(_rescued, ${literal(pointer)})`;
}

/** SQL of the canonical text of the value that a text has in a type; NULL if it has none. The list casts once. */
const canonicalSql = ({ valueSql, textSql }: ColumnCodec, text: string): string =>
  `list_transform([${valueSql(text)}], lambda v0: ${textSql('v0')})[1]`;

/**
 * HMAC-SHA-256 in hex under a key, as SQL of a text. The pads of the key are `values` of the statement, under names that
 * begin with `prefix`: no message of the engine can quote them.
 */
const hmacInSql = (key: HashKey, prefix = '') => ({
  sqlOf: (text: string): string =>
    `sha256(unhex($${prefix}outer_pad) || unhex(sha256(unhex($${prefix}inner_pad) || encode(${text}))))`,
  values: key.hmacPads(prefix),
});
