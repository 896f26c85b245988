import { configError } from '../../base/errors.ts';
import { identifier, listSql, literal } from '../../base/sql.ts';
import { type HashKey, INNER_PAD, OUTER_PAD } from '../../cells/columns/hash-key.ts';
import { nfc } from '../../cells/csv/header.ts';
import type { ColumnCodec } from '../../cells/types/codec.ts';
import { codecOf } from '../../cells/types/types.ts';
import { zoneOf } from '../../cells/types/zone.ts';
import { hashedIn } from '../../extract/export-state.ts';
import type { TableState } from '../../table/place-state.ts';
import { isTyped, type Typed } from '../../table/tables.ts';
import { rescueKey } from '../rows/csv-sql.ts';
import { isHash } from './query.ts';

/**
 * A column of external or unified ids, as the export names it. Its cells are those of all table columns with its name,
 * and of `_rescued`. The text of a cell is the canonical text of its value. Rows hold plain values, hashes, or both.
 */
export class IdColumn {
  readonly source: string;
  /** SQL of the text of each of these cells, NULL if it is absent. */
  readonly cells: readonly string[];
  /** The key that was given, if rows have hashes under it. */
  readonly hashKey: HashKey | undefined;
  readonly #isKeyGiven: boolean;
  /** Check values of the keys under which rows have hashes, oldest first; null for rows with plain values. */
  readonly #keyChecks: readonly (string | null)[];
  readonly #codecs: readonly ColumnCodec[];

  /** The column of this name in the export, whose Unicode form may be another; undefined if the table lacks it. */
  static named(state: TableState, name: string | undefined, givenKey: HashKey | undefined): IdColumn | undefined {
    if (name === undefined) return undefined;
    const ofName = state.columns.filter(isTyped).filter(({ source }) => nfc(source) === nfc(name));
    return ofName.length === 0 ? undefined : new IdColumn(ofName, state, givenKey);
  }

  private constructor(columns: readonly Typed[], state: TableState, givenKey: HashKey | undefined) {
    const [{ source }] = columns;
    const hashed = hashedIn(state.exportState).map((hashing) =>
      hashing.columns.includes(source) ? hashing.key_check : null,
    );
    const zone = zoneOf(state.timezone);
    this.source = source;
    this.#keyChecks = hashed.length === 0 ? [null] : hashed;
    this.#isKeyGiven = givenKey !== undefined;
    this.hashKey = givenKey !== undefined && hashed.includes(givenKey.check) ? givenKey : undefined;
    this.cells = columns.flatMap((column) => [
      codecOf(column.type, zone).textSql(identifier(column.name)),
      rescuedTextSql(column),
    ]);
    const types = new Set(columns.map(({ type }) => type).filter((type) => type !== 'string'));
    this.#codecs = Array.from(types, (type) => codecOf(type, zone));
  }

  /** True if some rows have plain values, and some their hashes under the given key. */
  get isMixed(): boolean {
    return this.hashKey !== undefined && this.#keyChecks.includes(null);
  }

  /** SQL of the texts that a cell may hold for an id: a list with NULLs. With a `hashKey` it needs its `padsOf`. */
  storedTextsSql(id: string): string {
    const plain = [id, ...this.#codecs.map((codec) => canonicalSql(codec, id))];
    return listSql(this.hashKey === undefined ? plain : [...plain, ...plain.map(hmacSql)]);
  }

  /** The check value of the key under which a stored text is a hash; undefined for another text. */
  keyCheckOf(text: string): string | undefined {
    const newestCheck = this.#keyChecks.findLast((check) => check !== null) ?? undefined;
    return newestCheck === undefined || !isHash(text) ? undefined : (this.hashKey?.check ?? newestCheck);
  }

  /**
   * Warns of rows with hashes under other keys than the given one, or throws a configuration failure. A hash is found
   * in rows that hold the same hash; only its key connects it to a plain id.
   *
   *     rows with hashes under other keys     if `needsKey`  else
   *     beside rows under the given key       warns          warns
   *     of one key, without any other rows    throws         nothing
   *     of several keys, or beside plain ids  throws         warns
   */
  checkKey(needsKey: boolean, place: string): string[] {
    const { source, hashKey } = this;
    if (this.#keyChecks.every((check) => check === null || check === hashKey?.check)) return [];
    const othersHashed = `${place}: some rows have ${source} hashed under another key`;
    if (needsKey) {
      if (hashKey !== undefined) return [`${othersHashed}. Run again with that key for those.`];
      const why = this.#isKeyGiven ? 'hash_key is another one' : 'hash_key is missing';
      throw configError(
        `${place} holds the column ${source} hashed, but ${why}: give the one that it was loaded with, in hash_key or ` +
          'DFINERY_HASH_KEY. Nothing was done.',
      );
    }
    if (hashKey !== undefined) {
      return [`${othersHashed}, and its people may come back with a sync. Let profiles or a mapping name them, too.`];
    }
    if (new Set(this.#keyChecks).size === 1) return [];
    return [`${place}: only some rows have ${source} hashed. Without that hash_key, rows of these people may stay.`];
  }
}

/** SQL of the text that a column has in `_rescued`. */
function rescuedTextSql(column: Typed): string {
  const pointer = `/${rescueKey(column).replaceAll('~', '~0').replaceAll('/', '~1')}`;
  return `json_extract_string(_rescued, ${literal(pointer)})`;
}

/** SQL of the canonical text of the value that a text has in a type; NULL if it has none. The list casts once. */
const canonicalSql = ({ sql, textSql }: ColumnCodec, text: string): string =>
  `list_transform([${sql(text)}], lambda v0: ${textSql('v0')})[1]`;

/** SQL of HMAC-SHA-256 in hex. Its pads are values of the statement: no message of the engine can quote them. */
export const hmacSql = (text: string): string =>
  `sha256(unhex($outer_pad) || unhex(sha256(unhex($inner_pad) || encode(${text}))))`;

/** The pads of a key (hex): the values that `hmacSql` needs. None without a key. */
export function padsOf(key: HashKey | undefined): Record<string, string> {
  if (key === undefined) return {};
  const padOf = (pad: number) => Buffer.from(key.block.map((byte) => byte ^ pad)).toString('hex');
  return { inner_pad: padOf(INNER_PAD), outer_pad: padOf(OUTER_PAD) };
}
