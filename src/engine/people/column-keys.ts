import { configError } from '../../base/errors.ts';
import type { HashKey } from '../../base/hash-key.ts';
import { nfc } from '../../base/text.ts';
import { NOTHING_HASHED } from '../../extract/export-settings.ts';
import type { TableState } from '../../table/place-state.ts';
import { isHash } from './people.ts';

/** The keys under which the rows of a table have a column hashed. No row tells which one is its own. */
export class ColumnKeys {
  /** The key that was given, if rows have hashes under it. */
  readonly matchingKey: HashKey | undefined;
  readonly isPartlyHashed: boolean;
  readonly #source: string;
  /** Check values of the keys, oldest first; null for rows with plain values. */
  readonly #keyChecks: readonly (string | null)[];

  /** `source`: the column's name in the export, in any Unicode form. */
  constructor(source: string, { exportState }: TableState, givenKey: HashKey | undefined) {
    const hashings = exportState?.hashed ?? [NOTHING_HASHED];
    this.#source = source;
    this.#keyChecks = hashings.map(({ columns, key_check }) => (columns.includes(nfc(source)) ? key_check : null));
    this.matchingKey = givenKey !== undefined && this.#keyChecks.includes(givenKey.checkValue) ? givenKey : undefined;
    this.isPartlyHashed = this.matchingKey !== undefined && this.#keyChecks.includes(null);
  }

  /**
   * The check value of the key under which the text of a cell is a hash; undefined for another text. Of several keys it
   * is the given one, else the newest.
   */
  keyCheckOf(text: string): string | undefined {
    if (!isHash(text)) return undefined;
    return this.matchingKey?.checkValue ?? this.#keyChecks.findLast((keyCheck) => keyCheck !== null);
  }

  /**
   * Returns warnings of rows with hashes under other keys than the given one. Only its key connects a hash with a plain
   * id. Throws a configuration failure if `needsKey` and no rows are under the given key.
   */
  warningsOfOtherKeys({ needsKey, place }: { readonly needsKey: boolean; readonly place: string }): string[] {
    const { matchingKey } = this;
    if (this.#keyChecks.every((keyCheck) => keyCheck === null || keyCheck === matchingKey?.checkValue)) return [];
    if (needsKey && matchingKey === undefined) {
      throw configError(
        `${place} holds the column ${this.#source} hashed, but hash_key is missing or another one. Give the key ` +
          'with which it was loaded, in hash_key or DFINERY_HASH_KEY. Nothing was done.',
      );
    }
    // Equal hashes suffice where all rows have them.
    if (!needsKey && new Set(this.#keyChecks).size === 1) return [];
    return [
      `${place}: some rows have ${this.#source} hashed under another key. Rows of these people may stay, or come ` +
        'back with a sync. Run again with that key, or let profiles or a mapping name them, too.',
    ];
  }
}
