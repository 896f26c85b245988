import { configError } from '../../base/errors.ts';
import type { HashKey } from '../../base/hash-key.ts';
import { nfc } from '../../base/text.ts';
import { NOTHING_HASHED } from '../../extract/export-settings.ts';
import { looksHashed, type SearchedTable } from './people.ts';

/** What is known of the ids that are looked up in a column. */
interface SoughtIds {
  readonly hasPlainIds: boolean;
  readonly hasHashedIds: boolean;
  /** Check values of the keys of those hashes that rows of the place have. */
  readonly keyChecksOfIds: ReadonlySet<string | undefined>;
}

/** The keys under which the rows of a column are hashed; no row tells which one is its own. */
export class ColumnKeys {
  /** The key of the query if rows have hashes under it, else undefined. */
  readonly matchingKey: HashKey | undefined;
  /** The key of the query if rows have plain values, whose hashes others may have; else undefined. */
  readonly keyOfPlainRows: HashKey | undefined;
  readonly #hasPlainRows: boolean;
  /** Check values of the keys of all hashes, oldest first. */
  readonly #keyChecks: readonly string[];
  /** The place and the column, as messages name them. */
  readonly #placeName: string;
  readonly #source: string;

  /** `source`: the column's name in the export, as the table has it. */
  constructor({ placeName, state }: SearchedTable, source: string, hashKey: HashKey | undefined) {
    const { exportState, receipts } = state;
    const hashings = exportState?.hashed ?? [NOTHING_HASHED];
    // Rows of earlier settings are gone once every day was replaced.
    const daysWithRows = [...receipts.values()].filter(({ pruned }) => pruned !== true);
    const hasNewestSettingsAlone = daysWithRows.every(({ filters }) => filters === exportState?.filters);
    const keyChecks = (hasNewestSettingsAlone ? hashings.slice(-1) : hashings).map(({ columns, key_check }) =>
      columns.includes(nfc(source)) ? key_check : null,
    );
    this.#keyChecks = keyChecks.filter((keyCheck) => keyCheck !== null);
    this.#hasPlainRows = keyChecks.includes(null);
    this.keyOfPlainRows = this.#hasPlainRows ? hashKey : undefined;
    this.matchingKey = hashKey !== undefined && this.#keyChecks.includes(hashKey.keyCheck) ? hashKey : undefined;
    this.#placeName = placeName;
    this.#source = source;
  }

  /**
   * The check value of the key under which the text of a cell is a hash; undefined for another text. Of several keys it
   * is that of the query, else the newest.
   */
  keyCheckOf(text: string): string | undefined {
    return looksHashed(text) ? (this.matchingKey?.keyCheck ?? this.#keyChecks.at(-1)) : undefined;
  }

  /**
   * Throws a configuration failure for columns in which plain ids are looked up, if rows have hashes, but none under the
   * key of the query: no plain id finds these. If one table has it, others may have a newer one.
   */
  static refuseOtherKeys(columns: readonly ColumnKeys[]): void {
    const hashed = columns.find((keys) => keys.#keyChecks.length > 0);
    if (hashed === undefined || columns.some(({ matchingKey }) => matchingKey !== undefined)) return;
    throw configError(
      `${hashed.#placeName} holds the column ${hashed.#source} hashed, but hash_key is missing or another one. Give the key ` +
        'with which it was loaded, in hash_key or DFINERY_HASH_KEY. Nothing was done.',
    );
  }

  /** Warns of rows that a look-up of such ids misses, since their key is not that of the query. */
  missedRowsWarnings({ hasPlainIds, hasHashedIds, keyChecksOfIds }: SoughtIds): string[] {
    const warning = (how: string) =>
      `${this.#placeName}: some rows have ${this.#source} ${how}. Rows of these people may stay, or come ` +
      'back with a sync. Purge with that key first (--purge-only), or let profiles or a mapping name them, too.';
    if (hasHashedIds && this.#hasPlainRows && this.keyOfPlainRows === undefined)
      return [warning('plain, and only its hash is known')];
    // Under one key the hashes of an id are equal, whatever key that is.
    const hasOneKey = !this.#hasPlainRows && new Set([...this.#keyChecks, ...keyChecksOfIds]).size === 1;
    if (!hasPlainIds && hasOneKey) return [];
    const hasOtherKeys = this.#keyChecks.some((keyCheck) => keyCheck !== this.matchingKey?.keyCheck);
    return hasOtherKeys ? [warning('hashed under another key')] : [];
  }
}
