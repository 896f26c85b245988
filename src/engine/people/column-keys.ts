import { configError } from '../../base/errors.ts';
import type { HashKey } from '../../base/hash-key.ts';
import { nfc } from '../../base/text.ts';
import { NOTHING_HASHED } from '../../extract/export-settings.ts';
import { type KeyCheck, looksHashed, PLAIN, type SearchedTable } from './people.ts';

/**
 * The keys under which the rows of a column are hashed; no row tells which one is its own. Not every id finds all rows:
 *
 * | the id is                              | it finds rows that are                 |
 * | -------------------------------------- | -------------------------------------- |
 * | plain, or hashed under the query's key | plain, or hashed under the query's key |
 * | hashed under another key               | hashed under this other key            |
 */
export class ColumnKeys {
  /** The key of the query if rows have hashes under it, else undefined. */
  readonly matchingKey: HashKey | undefined;
  /** The key of the query if rows have plain values, whose hashes others may have; else undefined. */
  readonly keyForPlainRows: HashKey | undefined;
  readonly #queryKeyCheck: KeyCheck;
  /** Oldest first. */
  readonly #rowKeyChecks: readonly KeyCheck[];
  /** The place and the column, as messages name them. */
  readonly #placeName: string;
  readonly #source: string;

  constructor({ placeName, state }: SearchedTable, source: string, hashKey: HashKey | undefined) {
    const { exportState, receipts } = state;
    const hashedColumns = exportState?.hashed ?? [NOTHING_HASHED];
    // Rows of earlier settings are gone once every day was replaced.
    const daysWithRows = [...receipts.values()].filter(({ pruned }) => pruned !== true);
    const hasNewestSettingsAlone = daysWithRows.every(({ filters }) => filters === exportState?.filters);
    this.#rowKeyChecks = (hasNewestSettingsAlone ? hashedColumns.slice(-1) : hashedColumns).map((hashed) =>
      hashed.columns.includes(nfc(source)) ? (hashed.key_check ?? PLAIN) : PLAIN,
    );
    this.#queryKeyCheck = hashKey?.keyCheck ?? PLAIN;
    this.keyForPlainRows = this.#rowKeyChecks.includes(PLAIN) ? hashKey : undefined;
    this.matchingKey = hashKey !== undefined && this.#rowKeyChecks.includes(hashKey.keyCheck) ? hashKey : undefined;
    this.#placeName = placeName;
    this.#source = source;
  }

  /**
   * The check value of the key under which the text of a cell is a hash. Of several keys it is that of the query, else
   * the newest.
   */
  keyCheckOf(text: string): KeyCheck {
    if (!looksHashed(text)) return PLAIN;
    return this.matchingKey?.keyCheck ?? this.#rowKeyChecks.findLast((keyCheck) => keyCheck !== PLAIN) ?? PLAIN;
  }

  /**
   * Throws a configuration failure for columns in which plain ids are looked up, if rows have hashes, but none under the
   * key of the query: no plain id finds these. If one table has it, others may have a newer one.
   */
  static refuseOtherKeys(columns: readonly ColumnKeys[]): void {
    const hashed = columns.find((keys) => keys.#rowKeyChecks.some((keyCheck) => keyCheck !== PLAIN));
    if (hashed === undefined || columns.some(({ matchingKey }) => matchingKey !== undefined)) return;
    throw configError(
      `${hashed.#placeName} holds the column ${hashed.#source} hashed, but hash_key is missing or another one. Give the key ` +
        'with which it was loaded, in hash_key or DFINERY_HASH_KEY. Nothing was done.',
    );
  }

  /** Warns of rows that one of the sought ids misses. `idKeyChecks`: those of these ids. */
  missedRowsWarnings(idKeyChecks: readonly KeyCheck[]): string[] {
    // A hash under the key of the query and a plain text find each other.
    const asPlain = (keyCheck: KeyCheck) => (keyCheck === this.#queryKeyCheck ? PLAIN : keyCheck);
    const missedKeyChecks = this.#rowKeyChecks.filter((rowKeyCheck) =>
      idKeyChecks.some((idKeyCheck) => asPlain(idKeyCheck) !== asPlain(rowKeyCheck)),
    );
    return missedKeyChecks.map((keyCheck) => {
      const [form, remedy] = keyCheck === PLAIN ? MISSED_PLAIN : MISSED_HASHED;
      return (
        `${this.#placeName}: some rows have ${this.#source} ${form}. Rows of these people may stay, or come ` +
        `back with a sync. ${remedy}.`
      );
    });
  }
}

/** How such rows are named, and what finds them. */
const MISSED_PLAIN = [
  'plain, and only its hash is known',
  'Give the hash_key of that hash, or let profiles or a mapping name them',
] as const;
const MISSED_HASHED = ['hashed under another key', 'Purge with that key first (--purge-only)'] as const;
