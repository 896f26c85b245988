import { COLUMN_SHIFT, DOUBLED, type RowTokenizer, STRIDE, Unquoter } from '../csv/tokenizer.ts';
import { UNIFIED_ID } from './groups.ts';

/** True for a `df_unified_id` (text in UTF-8, quotes undone, not empty) whose rows are to be left out. */
export type DropRow = (bytes: Uint8Array, start: number, end: number) => boolean;

/** Finds and counts the rows of people on the suppression list. */
export class SuppressedRows {
  /** Rows found. */
  rows = 0;
  readonly #dropRow: DropRow | undefined;
  readonly #unquoter = new Unquoter();
  #column = -1;

  constructor(dropRow: DropRow | undefined) {
    this.#dropRow = dropRow;
  }

  open(header: readonly string[]): void {
    this.#column = header.indexOf(UNIFIED_ID);
  }

  /** True when the tokenizer's last row belongs to such a person; it is counted. */
  has(b: Uint8Array, tokenizer: RowTokenizer): boolean {
    if (this.#dropRow === undefined || this.#column < 0) return false;
    const { cells, used } = tokenizer;
    let k = 0;
    while (k < used && cells[k] >> COLUMN_SHIFT < this.#column) k += STRIDE;
    if (k >= used || cells[k] >> COLUMN_SHIFT !== this.#column) return false;
    const isDropped = this.#asks(this.#dropRow, b, cells[k], cells[k + 1], cells[k + 2]);
    if (isDropped) this.rows++;
    return isDropped;
  }

  #asks(dropRow: DropRow, b: Uint8Array, head: number, start: number, end: number): boolean {
    if ((head & DOUBLED) === 0) return dropRow(b, start, end);
    return dropRow(this.#unquoter.text, 0, this.#unquoter.unquote(b, start, end));
  }
}
