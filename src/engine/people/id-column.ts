import { randomBytes } from 'node:crypto';
import type { HashKey } from '../../base/hash-key.ts';
import { anyOfSql, identifier, listSql, literal } from '../../base/sql.ts';
import type { ColumnCodec } from '../../cells/types/codec.ts';
import { codecOf } from '../../cells/types/column-types.ts';
import { zoneOf } from '../../cells/types/zone.ts';
import { rescueKey, typedColumns } from '../../table/tables.ts';
import type { Engine, SqlParameters } from '../session/engine.ts';
import { columnsNamed, joinIds, looksHashed, type SearchedTable, type SuppressionHmacs } from './people.ts';
import { foldedSql, usualSpellings } from './spelling.ts';

/** An id that is looked up in a column. Several may have the same `id`. */
export interface SoughtId {
  readonly id: string;
  /** The ids of the query that it stands for; none for an id of the suppression list. */
  readonly queryIds: readonly string[];
}

/** An id, and a cell that stands for it. */
export interface IdInCell {
  readonly id: string;
  readonly cell: string;
}

/** What a look-up finds in a column. */
export interface LookUp {
  /** TRUE for a row with a cell that holds one of the ids, else FALSE. */
  readonly conditionSql: string;
  /** The ids of the query that these cells stand for; none for a cell that nobody looked up. */
  queryIdsOf(cells: readonly string[]): string[];
}

/** The look-up of no ids, or in no column. Its condition needs no scan of the rows. */
export const NO_LOOK_UP: LookUp = { conditionSql: 'false', queryIdsOf: () => [] };

/**
 * A column of external or unified ids, as the export names it. Its cells are those of all table columns with its name,
 * and of `_rescued`, also if the table has no such column. A cell is read as the canonical text of its value: an id, or
 * its hash.
 */
export class IdColumn {
  /** SQL of the list of its cells in a row; a cell that is absent is NULL. */
  readonly cellListSql: string;
  readonly #isInTable: boolean;
  readonly #engine: Engine;
  /** Key of the cells that are hashed, if any are. */
  readonly #hashKey: HashKey | undefined;
  readonly #cellSqls: readonly string[];
  /** Of its types but `string`, whose values are the texts themselves. */
  readonly #typedCodecs: readonly ColumnCodec[];
  /** A relation (cell) of the different cells in all rows. */
  readonly #distinctCellsSql: string;

  constructor(table: SearchedTable, source: string, hashKey: HashKey | undefined) {
    const columns = columnsNamed(table.state, source);
    const zone = zoneOf(table.state.timezone);
    const tableColumns = typedColumns(columns);
    const types = new Set(tableColumns.map(({ type }) => type).filter((type) => type !== 'string'));
    this.#isInTable = tableColumns.length > 0;
    this.#engine = table.engine;
    this.#hashKey = hashKey;
    const rescueKeys = new Set([...columns.map(rescueKey), source, source.normalize('NFC'), source.normalize('NFD')]);
    this.#cellSqls = [
      ...tableColumns.map(({ type, name }) => codecOf(type, zone).textSql(identifier(name))),
      ...Array.from(rescueKeys, rescuedTextSql),
    ];
    this.cellListSql = listSql(this.#cellSqls);
    this.#typedCodecs = Array.from(types, (type) => codecOf(type, zone));
    this.#distinctCellsSql = `(SELECT DISTINCT unnest(${this.cellListSql}) AS cell FROM ${table.relation})`;
  }

  /** True if the table has the column, or `_rescued` a cell of it. */
  async exists(): Promise<boolean> {
    if (this.#isInTable) return true;
    const cells = await this.#engine.rows(`FROM ${this.#distinctCellsSql} WHERE cell IS NOT NULL LIMIT 1`);
    return cells.length > 0;
  }

  /** Looks for the cells that hold one of these ids. */
  async lookUp(soughtIds: readonly SoughtId[]): Promise<LookUp> {
    if (soughtIds.length === 0) return NO_LOOK_UP;
    const queryIdsById = joinIds(soughtIds.map(({ id, queryIds }) => [id, queryIds]));
    const idsInCells = await this.#cellsOf([...queryIdsById.keys()]);
    const queryIdsByCell = joinIds(idsInCells.map(({ id, cell }) => [cell, queryIdsById.get(id) ?? []]));
    const cellTable = `temp.main._dfinery_cells_${randomBytes(8).toString('hex')}`;
    const cells = [...queryIdsByCell.keys()];
    await this.#engine.run(`CREATE TEMP TABLE ${cellTable} AS SELECT unnest($cells) AS cell`, { cells });
    const isSoughtSql = (cellSql: string) => `coalesce(${cellSql} IN (SELECT cell FROM ${cellTable}), false)`;
    return {
      conditionSql: anyOfSql(this.#cellSqls.map(isSoughtSql)),
      queryIdsOf: (cells) => cells.flatMap((cell) => queryIdsByCell.get(cell) ?? []),
    };
  }

  /** The ids in its cells that are on the suppression list, by the id or by its hash. */
  async suppressedIds(suppressionHmacs: SuppressionHmacs | undefined): Promise<SoughtId[]> {
    if (suppressionHmacs === undefined || suppressionHmacs.hmacs.length === 0) return [];
    const { key, hmacs } = suppressionHmacs;
    const idSqls = this.#hashKey === undefined ? ['cell'] : ['cell', hmacSql('cell', 'hash_key')];
    const isSuppressedSql = (idSql: string) => `${hmacSql(idSql, 'list_key')} IN (SELECT unnest($hmacs))`;
    const sql = `SELECT cell FROM ${this.#distinctCellsSql} WHERE ${anyOfSql(idSqls.map(isSuppressedSql))}`;
    const pads = { ...key.hmacPads('list_key'), ...this.#hashKey?.hmacPads('hash_key') };
    const rows = await this.#engine.rows(sql, { hmacs, ...pads });
    return rows.map(({ cell }) => ({ id: String(cell), queryIds: [] }));
  }

  /**
   * What cells may hold for these ids:
   *
   * - the id, or its value in a type of the column
   * - with a key: the hash of these
   * - with a key, for an id that is a hash of other rows, of another place or of the list: the text with this hash
   */
  async #cellsOf(ids: readonly string[]): Promise<IdInCell[]> {
    const plainTexts = [...ids.map((id) => ({ id, cell: id })), ...(await this.#typedTexts(ids))];
    const hashKey = this.#hashKey;
    if (hashKey === undefined) return plainTexts;
    const hashes = plainTexts.map(({ id, cell }) => ({ id, cell: hashKey.hashOf(cell) }));
    return [...plainTexts, ...hashes, ...(await this.#cellsWithHash(ids.filter(looksHashed), hashKey))];
  }

  /** The canonical texts of ids in the types of the column, if they have a value there. */
  async #typedTexts(ids: readonly string[]): Promise<IdInCell[]> {
    if (this.#typedCodecs.length === 0) return [];
    const textSqls = this.#typedCodecs.map((codec) => canonicalSql(codec, 'id'));
    const sql = `
      SELECT id, cell
      FROM (SELECT id, unnest(${listSql(textSqls)}) AS cell FROM (SELECT unnest($ids) AS id))
      WHERE cell IS NOT NULL`;
    return this.#idsInCells(sql, { ids });
  }

  async #cellsWithHash(hashes: readonly string[], key: HashKey): Promise<IdInCell[]> {
    if (hashes.length === 0) return [];
    const sql = `
      SELECT ${hmacSql('cell', 'hash_key')} AS id, cell
      FROM ${this.#distinctCellsSql}
      WHERE id IN (SELECT unnest($hashes))`;
    return this.#idsInCells(sql, { hashes, ...key.hmacPads('hash_key') });
  }

  /** For these ids, cells with another spelling of the id, or with the hash of a usual spelling. */
  async similarIds(ids: readonly string[]): Promise<IdInCell[]> {
    if (ids.length === 0) return [];
    const hashKey = this.#hashKey;
    const spellings = ids.flatMap((id) => {
      const hashes = hashKey === undefined ? [] : usualSpellings(id).map((text) => hashKey.hashOf(text));
      return [id, ...hashes].map((spelling) => ({ id, spelling }));
    });
    const sql = `
      WITH
        spellings AS (SELECT unnest($ids) AS id, unnest($spellings) AS spelling),
        ids AS (SELECT DISTINCT id, ${foldedSql('spelling')} AS folded FROM spellings),
        cells AS (SELECT cell, ${foldedSql('cell')} AS folded FROM ${this.#distinctCellsSql})
      SELECT id, cell
      FROM ids
      JOIN cells USING (folded)
      WHERE folded <> ''`;
    const columns = { ids: spellings.map(({ id }) => id), spellings: spellings.map(({ spelling }) => spelling) };
    return this.#idsInCells(sql, columns);
  }

  async #idsInCells(sql: string, values: SqlParameters): Promise<IdInCell[]> {
    const rows = await this.#engine.rows(sql, values);
    return rows.map(({ id, cell }) => ({ id: String(id), cell: String(cell) }));
  }
}

function rescuedTextSql(key: string): string {
  const pointer = `/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`;
  return `json_extract_string(_rescued, ${literal(pointer)})`;
}

/** SQL of the canonical text of the value that a text has in a type; NULL if it has none. The list casts once. */
const canonicalSql = ({ checkedSql, textSql }: ColumnCodec, text: string): string =>
  `list_transform([${checkedSql(text)}], lambda v0: ${textSql('v0')})[1]`;

/**
 * HMAC-SHA-256 of a text in hex. The pads of the key are values of the statement, `hmacPads` with the name of the key: no
 * message of the engine can quote them.
 */
const hmacSql = (text: string, keyName: string): string =>
  `sha256(unhex($${keyName}_outer_pad) || unhex(sha256(unhex($${keyName}_inner_pad) || encode(${text}))))`;
