import type { HashKey } from '../../base/hash-key.ts';
import { anyOfSql, identifier, listSql, literal } from '../../base/sql.ts';
import type { ColumnCodec } from '../../cells/types/codec.ts';
import { codecOf } from '../../cells/types/column-types.ts';
import { zoneOf } from '../../cells/types/zone.ts';
import type { TableState } from '../../table/place-state.ts';
import { rescueKey, type Table, type TypedColumn } from '../../table/tables.ts';
import type { Engine } from '../session/engine.ts';
import { ColumnKeys } from './column-keys.ts';
import { columnsNamed, isHash, type SuppressedPeople } from './people.ts';
import { foldedSql } from './spelling.ts';

/** The rows of a table of a place, and how it stores them. */
export interface TableRows {
  readonly engine: Engine;
  /** The place as messages name it. */
  readonly placeName: string;
  readonly name: Table['name'];
  /** All rows, with all columns. */
  readonly relation: string;
  readonly state: TableState;
}

type IdKind = 'external' | 'unified';

/** A text to look up, and the external id that it belongs to. */
interface TextOfId {
  readonly id: string;
  readonly text: string;
}

/** What a look-up finds in a column. */
export interface LookUp {
  /** TRUE for a row with a cell that holds one of the texts, else FALSE. */
  readonly conditionSql: string;
  /** Sentences about cells that could not be searched. */
  readonly warnings: readonly string[];
  /** The ids whose texts these are; none for a text that nobody looked up. */
  idsOf(cellTexts: readonly string[]): string[];
}

/**
 * A column of external or unified ids, as the export names it. Its cells are those of all table columns with its name,
 * and of `_rescued`; none if the table lacks it. The text of a cell is the canonical text of its value. Rows hold plain
 * values, hashes, or both.
 */
export class IdColumn {
  /** SQL of the text of each of its cells in a row, NULL if it is absent. */
  readonly cellSqls: readonly string[];
  /** SQL of the list of these texts. */
  readonly cellTextsSql: string;
  readonly keys: ColumnKeys;
  readonly #table: TableRows;
  readonly #kind: IdKind;
  readonly #codecs: readonly ColumnCodec[];
  /** A relation (text) of the different texts of its cells in all rows. */
  readonly #distinctTextsSql: string;
  /** Temporary table (id, text) of what cells may hold for the texts of the latest look-up. */
  readonly #lookUpTable: string;

  /** `source`: its name in the export; undefined for a column without cells. */
  constructor(table: TableRows, kind: IdKind, source: string | undefined, queryKey: HashKey | undefined) {
    const { name, relation, state } = table;
    const columns = columnsNamed(state, source);
    const zone = zoneOf(state.timezone);
    this.cellSqls = columns.flatMap((column) => [
      codecOf(column.type, zone).textSql(identifier(column.name)),
      rescuedTextSql(column),
    ]);
    this.cellTextsSql = listSql([...this.cellSqls, 'CAST(NULL AS VARCHAR)']);
    this.keys = new ColumnKeys(columns[0]?.source ?? '', state, queryKey);
    this.#table = table;
    this.#kind = kind;
    const types = new Set(columns.map(({ type }) => type).filter((type) => type !== 'string'));
    this.#codecs = Array.from(types, (type) => codecOf(type, zone));
    this.#distinctTextsSql = `(SELECT DISTINCT unnest(${this.cellTextsSql}) AS text FROM ${relation})`;
    this.#lookUpTable = `temp.main._dfinery_${name}_${kind}_ids`;
  }

  /**
   * Looks for the texts of ids, and for those of the suppression list: as they are, by value in the column's type, and
   * by hash. Throws a configuration failure for plain ids in a column whose hashes need another key.
   */
  async lookUp(textsOfIds: readonly TextOfId[], suppressedTexts: readonly string[] = []): Promise<LookUp> {
    if (this.cellSqls.length === 0) return { conditionSql: 'false', warnings: [], idsOf: () => [] };
    const { placeName } = this.#table;
    // An external id is plain, whatever it looks like.
    const isHashed = ({ text }: TextOfId) => this.#kind === 'unified' && isHash(text);
    const [hasHashedIds, hasPlainIds] = [textsOfIds.some(isHashed), !textsOfIds.every(isHashed)];
    if (hasPlainIds) this.keys.requireMatchingKey(placeName);
    const warnings = this.keys.warnings(placeName, { hasPlainIds, hasHashedIds });
    const texts = [...textsOfIds, ...suppressedTexts.map((text) => ({ id: null, text }))];
    // A condition without a look-up needs no scan of the rows.
    if (texts.length === 0) return { conditionSql: 'false', warnings, idsOf: () => [] };
    await this.#storeMatches(texts);
    const rows = await this.#table.engine.rows(`
      SELECT text, list(id) AS ids
      FROM ${this.#lookUpTable}
      WHERE id IS NOT NULL
      GROUP BY text`);
    const idsByText = new Map(rows.map(({ text, ids }) => [String(text), ids as readonly string[]]));
    const lookUpTextsSql = `(SELECT text FROM ${this.#lookUpTable})`;
    return {
      conditionSql: anyOfSql(this.cellSqls.map((cell) => `coalesce(${cell} IN ${lookUpTextsSql}, false)`)),
      warnings,
      idsOf: (cellTexts) => cellTexts.flatMap((text) => idsByText.get(text) ?? []),
    };
  }

  /** Fills the table of the look-up with what cells may hold for these texts. */
  async #storeMatches(texts: readonly { readonly id: string | null; readonly text: string }[]): Promise<void> {
    const { queryKey, matchingKey, hasPlainRows } = this.keys;
    const plainSqls = ['text', ...this.#codecs.map((codec) => canonicalSql(codec, 'text'))];
    const hashedSqls = matchingKey === undefined ? [] : plainSqls.map((plainSql) => hmacSql(plainSql));
    // A hash of other rows, or of another place, names the id of a plain cell that has the same hash.
    const cellKey = hasPlainRows && texts.some(({ text }) => isHash(text)) ? queryKey : undefined;
    const plainCellsSql = `
      UNION
      SELECT id, cells.text
      FROM ${this.#distinctTextsSql} AS cells
      JOIN matches ON matches.text = ${hmacSql('cells.text')}`;
    const sql = `
      CREATE OR REPLACE TEMP TABLE ${this.#lookUpTable} AS
      WITH
        texts AS (SELECT unnest(from_json($texts, '[{"id":"VARCHAR","text":"VARCHAR"}]'), recursive := true)),
        matches AS (SELECT id, unnest(${listSql([...plainSqls, ...hashedSqls])}) AS text FROM texts)
      SELECT DISTINCT id, text
      FROM matches
      WHERE text <> ''
      ${cellKey === undefined ? '' : plainCellsSql}`;
    const pads = (matchingKey ?? cellKey)?.hmacPads();
    await this.#table.engine.run(sql, { ...pads, texts: JSON.stringify(texts) });
  }

  /** The texts of cells that are on the suppression list, by the id or by its hash. */
  async suppressedTexts(suppressedPeople: SuppressedPeople | undefined): Promise<string[]> {
    if (suppressedPeople === undefined || suppressedPeople.hmacs.length === 0) return [];
    const { key, hmacs } = suppressedPeople;
    const { queryKey, hasPlainRows } = this.keys;
    const pads = hasPlainRows ? queryKey?.hmacPads() : undefined;
    const idSqls = pads === undefined ? ['text'] : ['text', hmacSql('text', 'query_')];
    const isListedSql = anyOfSql(idSqls.map((idSql) => `${hmacSql(idSql)} IN ${jsonTextsSql('$hmacs')}`));
    const rows = await this.#table.engine.rows(`SELECT text FROM ${this.#distinctTextsSql} WHERE ${isListedSql}`, {
      ...key.hmacPads(),
      ...(pads && { query_inner_pad: pads.inner_pad, query_outer_pad: pads.outer_pad }),
      hmacs: JSON.stringify(hmacs),
    });
    return rows.map(({ text }) => String(text));
  }

  /** The ids and the texts of cells that differ only in their spelling, as pairs. */
  async similarTexts(ids: readonly string[]): Promise<(readonly [id: string, text: string])[]> {
    if (ids.length === 0 || this.cellSqls.length === 0) return [];
    const { matchingKey } = this.keys;
    const foldedTextSql = foldedSql('text');
    const hashedSqls = matchingKey === undefined ? [] : [foldedSql(hmacSql(foldedTextSql))];
    const sql = `
      WITH
        ids AS (SELECT text AS id, unnest(${listSql([foldedTextSql, ...hashedSqls])}) AS folded FROM ${jsonTextsSql('$ids')}),
        cells AS (SELECT text, ${foldedTextSql} AS folded FROM ${this.#distinctTextsSql})
      SELECT id, text
      FROM ids
      JOIN cells USING (folded)
      WHERE folded <> ''`;
    const rows = await this.#table.engine.rows(sql, { ...matchingKey?.hmacPads(), ids: JSON.stringify(ids) });
    return rows.map(({ id, text }) => [String(id), String(text)]);
  }
}

/** SQL of a relation (text) of the texts of a JSON list. */
const jsonTextsSql = (jsonList: string): string => `(SELECT unnest(from_json(${jsonList}, '["VARCHAR"]')) AS text)`;

function rescuedTextSql(column: TypedColumn): string {
  const pointer = `/${rescueKey(column).replaceAll('~', '~0').replaceAll('/', '~1')}`;
  return `json_extract_string(_rescued, ${literal(pointer)})`;
}

/** SQL of the canonical text of the value that a text has in a type; NULL if it has none. The list casts once. */
const canonicalSql = ({ valueSql, textSql }: ColumnCodec, text: string): string =>
  `list_transform([${valueSql(text)}], lambda v0: ${textSql('v0')})[1]`;

/**
 * SQL of HMAC-SHA-256 in hex. Its pads are values of the statement, whose names begin with `prefix`: no message of the
 * engine can quote them.
 */
const hmacSql = (text: string, prefix = ''): string =>
  `sha256(unhex($${prefix}outer_pad) || unhex(sha256(unhex($${prefix}inner_pad) || encode(${text}))))`;
