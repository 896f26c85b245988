import { randomBytes } from 'node:crypto';
import { groupBy } from '../../base/group.ts';
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

/** An id, and a cell that stands for it. */
interface IdInCell {
  readonly id: string;
  readonly cell: string;
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
    const warnings = this.keys.missedRowsWarnings(placeName, soughtIds);
    const soughtById = groupBy(soughtIds, ({ id }) => id);
    const ids = new Set([...soughtById.keys(), ...(await this.#suppressedIds(suppressedPeople))]);
    // A condition without a look-up needs no scan of the rows.
    if (this.cellSqls.length === 0 || ids.size === 0) return { conditionSql: 'false', warnings, queryIdsOf: () => [] };
    const byCell = groupBy(await this.#cellsOf([...ids]), ({ cell }) => cell);
    const cellTable = `temp.main._dfinery_cells_${randomBytes(8).toString('hex')}`;
    const cells = JSON.stringify([...byCell.keys()]);
    await engine.run(`CREATE TEMP TABLE ${cellTable} AS SELECT ${textsSql('cells')} AS cell`, { cells });
    const isSoughtSql = (cellSql: string) => `coalesce(${cellSql} IN (SELECT cell FROM ${cellTable}), false)`;
    return {
      conditionSql: anyOfSql(this.cellSqls.map(isSoughtSql)),
      warnings,
      queryIdsOf: (cells) => {
        const idsInCells = cells.flatMap((cell) => byCell.get(cell) ?? []);
        return idsInCells.flatMap(({ id }) => soughtById.get(id) ?? []).map(({ queryId }) => queryId);
      },
    };
  }

  /** The ids in its cells that are on the suppression list, by the id or by its hash. */
  async #suppressedIds(suppressedPeople: SuppressedPeople | undefined): Promise<string[]> {
    if (suppressedPeople === undefined || suppressedPeople.hmacs.length === 0) return [];
    const { key, hmacs } = suppressedPeople;
    const { keyOfPlainRows } = this.keys;
    const idSqls = keyOfPlainRows === undefined ? ['cell'] : ['cell', hmacSql('cell', 'hash_key')];
    const isListedSql = (idSql: string) => `${hmacSql(idSql, 'list_key')} IN (SELECT ${textsSql('hmacs')})`;
    const sql = `SELECT cell FROM ${this.#distinctCellsSql} WHERE ${anyOfSql(idSqls.map(isListedSql))}`;
    const pads = { ...key.hmacPads('list_key'), ...keyOfPlainRows?.hmacPads('hash_key') };
    const rows = await this.#table.engine.rows(sql, { hmacs: JSON.stringify(hmacs), ...pads });
    return rows.map(({ cell }) => String(cell));
  }

  /**
   * What cells may hold for these ids:
   *
   * | rows of the column                 | their cells                                       |
   * | ---------------------------------- | ------------------------------------------------- |
   * | any                                | the id, or its value in a type of the column      |
   * | some hashed under `matchingKey`    | the hash of these                                 |
   * | some plain, under `keyOfPlainRows` | for an id that is a hash: the text with this hash |
   */
  async #cellsOf(ids: readonly string[]): Promise<IdInCell[]> {
    const { matchingKey, keyOfPlainRows } = this.keys;
    const plainTexts = [...ids.map((id) => ({ id, cell: id })), ...(await this.#typedTexts(ids))];
    const hashes = matchingKey && plainTexts.map(({ id, cell }) => ({ id, cell: matchingKey.hashOf(cell) }));
    // Such a hash is that of other rows, of another place or of the suppression list.
    const hashedIds = ids.filter(looksHashed);
    const cells = keyOfPlainRows && hashedIds.length > 0 ? await this.#cellsWithHash(hashedIds, keyOfPlainRows) : [];
    return [...plainTexts, ...(hashes ?? []), ...cells];
  }

  /** The canonical texts of ids in the types of the column, if they have a value there. */
  async #typedTexts(ids: readonly string[]): Promise<IdInCell[]> {
    if (this.#typedCodecs.length === 0) return [];
    const textSqls = this.#typedCodecs.map((codec) => canonicalSql(codec, 'id'));
    const sql = `SELECT id, unnest(${listSql(textSqls)}) AS cell FROM (SELECT ${textsSql('ids')} AS id)`;
    return this.#idsInCells(sql, { ids: JSON.stringify(ids) });
  }

  #cellsWithHash(hashes: readonly string[], key: HashKey): Promise<IdInCell[]> {
    const sql = `
      SELECT ${hmacSql('cell', 'hash_key')} AS id, cell
      FROM ${this.#distinctCellsSql}
      WHERE id IN (SELECT ${textsSql('hashes')})`;
    return this.#idsInCells(sql, { hashes: JSON.stringify(hashes), ...key.hmacPads('hash_key') });
  }

  /** For these ids, cells with another spelling of the id, or with the hash of a usual spelling. */
  async similarIds(ids: readonly string[]): Promise<IdInCell[]> {
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
    return this.#idsInCells(sql, { spellings: JSON.stringify(spellings) });
  }

  async #idsInCells(sql: string, values: Readonly<Record<string, string>>): Promise<IdInCell[]> {
    const rows = await this.#table.engine.rows(sql, values);
    return rows.flatMap(({ id, cell }) => (cell === null ? [] : { id: String(id), cell: String(cell) }));
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
 * HMAC-SHA-256 of a text in hex. The pads of the key are values of the statement, `hmacPads` with the name of the key: no
 * message of the engine can quote them.
 */
const hmacSql = (text: string, keyName: string): string =>
  `sha256(unhex($${keyName}_outer_pad) || unhex(sha256(unhex($${keyName}_inner_pad) || encode(${text}))))`;

/** The texts of a value of the statement, which is a JSON list, one a row. */
const textsSql = (valueName: string): string => `unnest(from_json($${valueName}, '["VARCHAR"]'))`;
