import { configFailure } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import type { HashedColumns } from '../../extract/hashed-columns.ts';
import { UNIFIED_ID } from '../../schema/groups.ts';
import type { HashKey } from '../../schema/hash-key.ts';

const HASH = /^[0-9a-f]{64}$/;

/** The values of a column in a place: unchanged, hashed (S47), or both if the configuration was changed. */
export class StoredValues {
  readonly #place: string;
  readonly #key: HashKey | undefined;
  readonly #logger: Logger;
  #hashed: readonly HashedColumns[] = [];

  constructor(place: string, key: HashKey | undefined, logger: Logger) {
    this.#place = place;
    this.#key = key;
    this.#logger = logger;
  }

  /**
   * Takes in what the place remembers. Throws a configuration failure where it holds hashes of `column` and the key for
   * them is not given; warns of rows whose hashes are of a further key.
   */
  learn(hashed: readonly HashedColumns[], column: string): void {
    this.#hashed = hashed;
    this.#checkColumn(column);
    const ids = this.#formsOf(UNIFIED_ID);
    // Where every row holds the id in one form, what is found is what is looked for.
    if (column !== UNIFIED_ID && ids.length > 0 && hashed.length > 1 && !ids.some(this.#isOurs)) {
      this.#warn(
        `df_unified_id is hashed in some of its rows: without that key in DFINERY_HASH_KEY, rows of these people that lack ${column} may stay.`,
      );
    }
  }

  /** The texts that stand for these values of a column. */
  textsOf(column: string, values: readonly string[]): string[] {
    const key = this.#formsOf(column).some(this.#isOurs) ? this.#key : undefined;
    return key === undefined ? [...values] : [...new Set(values.flatMap((value) => [value, key.hashOf(value)]))];
  }

  /** Of values of a column those that are among the texts found, in either form. */
  among(column: string, values: readonly string[], found: readonly string[]): string[] {
    const texts = new Set(found);
    return [...new Set(values)].filter((value) => this.textsOf(column, [value]).some((text) => texts.has(text)));
  }

  /** Of `df_unified_id`s those that are hashes. */
  isHash(id: string): boolean {
    return this.#formsOf(UNIFIED_ID).length > 0 && HASH.test(id);
  }

  /** Check value of the key that the hashes of `df_unified_id` are under. */
  get idKeyCheck(): string | undefined {
    const ids = this.#formsOf(UNIFIED_ID);
    return (ids.find(this.#isOurs) ?? ids.at(-1))?.key_check ?? undefined;
  }

  #checkColumn(column: string): void {
    const forms = this.#formsOf(column);
    if (forms.length === 0) return;
    const wanted = `${this.#place} holds the column ${column} hashed`;
    if (this.#key === undefined) {
      throw configFailure(
        `${wanted}: give the hash_key that it was loaded with, in DFINERY_HASH_KEY or the file that DFINERY_HASH_KEY_FILE names. Nothing was done.`,
      );
    }
    if (!forms.some(this.#isOurs)) {
      throw configFailure(
        `${wanted} under another key than DFINERY_HASH_KEY gives: give the one that it was loaded with. Nothing was done.`,
      );
    }
    if (forms.every(this.#isOurs)) return;
    this.#warn(`${column} is hashed under another key in some of its rows: run again with that key to reach those.`);
  }

  #formsOf(column: string): readonly HashedColumns[] {
    return this.#hashed.filter(({ columns }) => columns.includes(column));
  }

  readonly #isOurs = (form: HashedColumns): boolean => form.key_check === this.#key?.check;

  #warn(what: string): void {
    this.#logger.warn('purge.hashed', `${this.#place}: ${what}`);
  }
}
