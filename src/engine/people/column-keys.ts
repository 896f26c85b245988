import { configError } from '../../base/errors.ts';
import type { HashKey } from '../../base/hash-key.ts';
import { nfc } from '../../base/text.ts';
import { NOTHING_HASHED } from '../../extract/export-settings.ts';
import type { TableState } from '../../table/place-state.ts';
import { looksHashed } from './people.ts';

/** The keys under which the rows of a table have a column hashed. No row tells which one is its own. */
export class ColumnKeys {
  /** The key of the query if rows have hashes under it, else undefined. */
  readonly matchingKey: HashKey | undefined;
  /** The key of the query if rows have plain values, whose hashes others may have; else undefined. */
  readonly keyOfPlainRows: HashKey | undefined;
  readonly #hasPlainRows: boolean;
  readonly #source: string;
  /** Check values of the keys of all hashes, oldest first. */
  readonly #keyChecks: readonly string[];

  /** `source`: the column's name in the export, in any Unicode form. */
  constructor(source: string, { exportState, receipts }: TableState, hashKey: HashKey | undefined) {
    const hashings = exportState?.hashed ?? [NOTHING_HASHED];
    // Rows of earlier settings are gone once every day was replaced.
    const daysWithRows = [...receipts.values()].filter(({ pruned }) => pruned !== true);
    const hasNewestSettingsAlone = daysWithRows.every(({ filters }) => filters === exportState?.filters);
    const keyChecks = (hasNewestSettingsAlone ? hashings.slice(-1) : hashings).map(({ columns, key_check }) =>
      columns.includes(nfc(source)) ? key_check : null,
    );
    this.#source = source;
    this.#keyChecks = keyChecks.filter((keyCheck) => keyCheck !== null);
    this.#hasPlainRows = keyChecks.includes(null);
    this.keyOfPlainRows = this.#hasPlainRows ? hashKey : undefined;
    this.matchingKey = hashKey !== undefined && this.#keyChecks.includes(hashKey.keyCheck) ? hashKey : undefined;
  }

  /**
   * The check value of the key under which the text of a cell is a hash; undefined for another text. Of several keys it
   * is that of the query, else the newest.
   */
  keyCheckOf(text: string): string | undefined {
    return looksHashed(text) ? (this.matchingKey?.keyCheck ?? this.#keyChecks.at(-1)) : undefined;
  }

  /**
   * Warns of rows that a search for such ids misses, since their key is not that of the query. The first row counts:
   *
   *   ids                     rows of the column                    result
   *   some plain              some hashed, none under this key      a configuration failure
   *   some known by a hash    some plain, no key is given           a warning: plain, and only its hash is known
   *   any                     all hashed under one key              nothing: hashes of one id are equal
   *   any                     some hashed under another key         a warning: hashed under another key
   */
  missedRowsWarnings(placeName: string, ids: readonly { readonly isHashed: boolean }[]): string[] {
    if (ids.some(({ isHashed }) => !isHashed) && this.#keyChecks.length > 0 && this.matchingKey === undefined) {
      throw configError(
        `${placeName} holds the column ${this.#source} hashed, but hash_key is missing or another one. Give the key ` +
          'with which it was loaded, in hash_key or DFINERY_HASH_KEY. Nothing was done.',
      );
    }
    const warning = (how: string) =>
      `${placeName}: some rows have ${this.#source} ${how}. Rows of these people may stay, or come ` +
      'back with a sync. Run again with that key, or let profiles or a mapping name them, too.';
    if (ids.some(({ isHashed }) => isHashed) && this.#hasPlainRows && this.keyOfPlainRows === undefined)
      return [warning('plain, and only its hash is known')];
    if (!this.#hasPlainRows && new Set(this.#keyChecks).size === 1) return [];
    const hasOtherKeys = this.#keyChecks.some((keyCheck) => keyCheck !== this.matchingKey?.keyCheck);
    return hasOtherKeys ? [warning('hashed under another key')] : [];
  }
}
