import { configError, systemError } from '../../base/errors.ts';
import { identifier, listSql, literal } from '../../base/sql.ts';
import { nfc } from '../../cells/columns/groups.ts';
import type { HashKey } from '../../cells/columns/hash-key.ts';
import type { ColumnCodec } from '../../cells/types/codec.ts';
import { codecOf } from '../../cells/types/types.ts';
import { type Zone, zoneOf } from '../../cells/types/zone.ts';
import type { HashedColumns } from '../../extract/column-hashing.ts';
import { hashedIn } from '../../extract/export-state.ts';
import type { TableState } from '../../table/place-state.ts';
import { isTyped, type Table, type Typed } from '../../table/tables.ts';
import { rescueKey } from '../rows/csv-sql.ts';
import type { Engine } from '../session/engine.ts';
import { hmacSql, type Pads, padsOf } from './hmac-sql.ts';
import { isHash, type PeopleQuery } from './query.ts';

/** The rows of one table of a place. */
export interface SearchedTable {
  readonly engine: Engine;
  readonly name: Table['name'];
  /** Rows with all columns; undefined if there are none. */
  readonly relation: string | undefined;
  readonly state: TableState;
  readonly place: string;
}

/** The columns of a table for a name of the export, whose Unicode form may be another. */
export const columnsNamed = (state: TableState, name: string): Typed[] =>
  state.columns.filter(isTyped).filter(({ source }) => nfc(source) === nfc(name));

/**
 * A column of external or unified ids, as the export names it. Its cells are those of all table columns with its name,
 * and of `_rescued`. The text of a cell is the canonical text of its value. The keys of an id are its text, and its
 * canonical text in the types of the column. If the column is hashed, the hashes of these are keys too.
 */
export class IdColumn {
  readonly source: string;
  /** SQL of the text of each of these cells, NULL if it is absent. */
  readonly cellTexts: readonly string[];
  /** The keys of an id, as SQL on `text`. */
  readonly keysOfId: readonly string[];
  /** The values of `hmacSql` for the key that the column is hashed under; undefined unless that key was given. */
  readonly pads: Pads | undefined;
  /** True if some rows have the values and some their hashes. */
  readonly isMixed: boolean;
  /** True if the column is hashed, but not under the key that was given. */
  readonly lacksKey: boolean;
  readonly #place: string;
  readonly #key: HashKey | undefined;
  readonly #hashings: readonly HashedColumns[];

  constructor({ state, place }: SearchedTable, { hashKey }: PeopleQuery, name: string) {
    const columns = columnsNamed(state, name);
    if (columns.length === 0) throw systemError(`${place} has no column ${name}.`);
    this.source = columns[0].source;
    this.#place = place;
    this.#key = hashKey;
    const [hashed, zone] = [hashedIn(state.exportState), zoneOf(state.timezone)];
    this.#hashings = hashed.filter(({ columns: names }) => names.includes(this.source));
    const hasKey = this.#hashings.some(({ key_check }) => key_check === hashKey?.check);
    this.lacksKey = this.#hashings.length > 0 && !hasKey;
    this.pads = hasKey ? hashKey && padsOf(hashKey) : undefined;
    this.isMixed = this.#hashings.length > 0 && this.#hashings.length < hashed.length;
    this.cellTexts = columns.flatMap((column) => textsOf(column, zone));
    const types = new Set(columns.map(({ type }) => type).filter((type) => type !== 'string'));
    const plain = ['text', ...Array.from(types, (type) => canonicalSql(codecOf(type, zone)))];
    this.keysOfId = this.pads === undefined ? plain : [...plain, ...plain.map(hmacSql)];
  }

  /** A relation (text) of all cells of the column in these rows. */
  cellsInSql(rows: string): string {
    return `(SELECT unnest(${listSql(this.cellTexts)}) AS text FROM ${rows})`;
  }

  /** The check value of the key under which a stored text is a hash; undefined for another text. */
  hashKeyOf(text: string): string | undefined {
    if (this.#hashings.length === 0 || !isHash(text)) return undefined;
    return (this.lacksKey ? this.#hashings.at(-1)?.key_check : this.#key?.check) ?? undefined;
  }

  /** True if some rows are hashed under the key that was given, and some under another. */
  get hasOtherKey(): boolean {
    return !this.lacksKey && this.#hashings.some(({ key_check }) => key_check !== this.#key?.check);
  }

  /** Throws a configuration failure if the column is hashed under keys that were not given. */
  requireKey(): void {
    if (!this.lacksKey) return;
    const why = this.#key === undefined ? 'hash_key is missing' : 'hash_key is another one';
    throw configError(
      `${this.#place} holds the column ${this.source} hashed, but ${why}: give the one that it was loaded with, in ` +
        'hash_key or DFINERY_HASH_KEY. Nothing was done.',
    );
  }

  /** Warnings about hashes that cannot be looked for. */
  otherKeyWarnings(): string[] {
    if (!this.hasOtherKey) return [];
    return [
      `${this.#place}: some rows have ${this.source} hashed under another key. Run again with that key for those.`,
    ];
  }
}

function textsOf(column: Typed, zone: Zone | undefined): string[] {
  const pointer = `/${rescueKey(column).replaceAll('~', '~0').replaceAll('/', '~1')}`;
  const rescued = `json_extract_string(_rescued, ${literal(pointer)})`;
  return [codecOf(column.type, zone).textSql(identifier(column.name)), rescued];
}

/** SQL of the canonical text of the value that `text` has in a type; NULL if it has none. The list casts once. */
const canonicalSql = ({ sql, textSql }: ColumnCodec): string =>
  `list_transform([${sql('text')}], lambda v0: ${textSql('v0')})[1]`;
