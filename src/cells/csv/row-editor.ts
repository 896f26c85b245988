import { COMMA, isNull, LF, QUOTE } from '../../base/ascii.ts';
import type { CsvMemory } from './csv-memory.ts';
import { setKey } from './hmac-key.ts';
import {
  ACTIONS_AT,
  BARE_CR,
  COLUMN_SHIFT,
  DATA_AT,
  DROP,
  FLAG_BITS,
  HASH,
  HASH_BUT_NULL,
  JOB_BYTES,
  JOBS_AT,
  JOBS_END,
  KEEP,
  MAX_JOBS,
  POSITIONS_AT,
  QUOTED,
  STRIDE,
  TABLES_AT,
  USED,
} from './layout.ts';
import type { RowOutput } from './row-writer.ts';
import { CellText, type RowTokenizer } from './tokenizer.ts';

/** Hashes values; a hash is 64 ASCII characters, none of them special in CSV. */
export interface ValueHash {
  hashOf(value: Uint8Array): string;
  /** The key as a block of HMAC-SHA-256, by which `hashOf` hashes. */
  readonly block: Uint8Array;
}

const HASH_BYTES = 64;
/** End of the edited rows, behind which the rows lie that are read. */
export const EDITED_END: number = DATA_AT + (1 << 20);
/** Number of bytes that SIMD may write behind a row. */
const MARGIN = 32;

/**
 * Writes rows without dropped columns and with hashes for the values of hashed columns, with LF ends, in front of the
 * rows that are read. `edit` also removes the dropped cells from the tokenizer's list and gives the others their new
 * columns. A listed cell still lies where it was read, and so has its plain value even if it is hashed: a caller must
 * not keep anything of it.
 */
export class RowEditor implements RowOutput {
  readonly #memory: CsvMemory;
  readonly #hash: ValueHash | undefined;
  readonly #text = new CellText();
  #actions: Uint8Array = new Uint8Array(0);
  /** For each column the number of columns before it that are not dropped. */
  #positions = new Int32Array(0);
  #width = 0;
  #hashes = 0;
  #parts: Uint8Array[] = [];
  #source: Uint8Array = new Uint8Array(0);
  /** The array into which rows are written: that of the source rows, or for a long row one of its own. */
  #out = this.#source;
  /** The index behind the rows that are kept, and behind the last edited row. */
  #end = DATA_AT;
  #to = DATA_AT;
  /** Index of the next bytes of the source row to copy. */
  #from = 0;

  /** Makes an editor of rows in this memory. */
  constructor(memory: CsvMemory, hash: ValueHash | undefined) {
    this.#memory = memory;
    this.#hash = hash;
    memory.info[JOBS_END] = JOBS_AT;
    if (hash !== undefined) setKey(memory, hash.block);
  }

  /** Sets the action for each column, before the first row: a header, whose names are not hashed. */
  open(actions: Uint8Array): void {
    this.#actions = actions;
    this.#positions = new Int32Array(actions.length);
    this.#width = 0;
    for (let i = 0; i < actions.length; i++) {
      this.#positions[i] = this.#width;
      if (actions[i] !== DROP) this.#width++;
    }
    this.#hashes = actions.filter((action) => action === HASH || action === HASH_BUT_NULL).length;
    this.#memory.bytes.set(actions, ACTIONS_AT);
    this.#memory.bytes.set(new Uint8Array(this.#positions.buffer), POSITIONS_AT);
  }

  /** Starts over; `bytes` holds the rows. */
  begin(bytes: Uint8Array): void {
    this.#parts = [];
    this.#source = bytes;
    this.#out = bytes;
    this.#end = DATA_AT;
  }

  /** Writes the edited row that the tokenizer read at `start`. */
  edit(start: number, tokenizer: RowTokenizer, isHeader = false): void {
    const { used, contentEnd, width } = tokenizer;
    const isShort = this.#reserve(contentEnd - start + this.#hashes * HASH_BYTES + used + width + MARGIN);
    const { functions, info } = this.#memory;
    const end = isShort && !isHeader ? functions.editRow(used, start, contentEnd, width, this.#width, this.#end) : -1;
    if (end < 0) this.#edit(start, tokenizer, isHeader);
    else {
      this.#to = end;
      tokenizer.used = info[USED];
    }
    this.#endRow();
  }

  /** Keeps the row that was edited last; returns its written length. */
  keep(): number {
    const length = this.#to - this.#end;
    this.#end = this.#to;
    if (this.#out !== this.#source) this.#flush();
    return length;
  }

  /** Returns everything written since `begin`, valid until the next `begin`. */
  finish(): Uint8Array[] {
    this.#memory.functions.hashJobs();
    if (this.#end > DATA_AT) this.#parts.push(this.#out.subarray(DATA_AT, this.#end));
    return this.#parts;
  }

  /** Erases the key, and what was hashed by it. */
  release(): void {
    this.#memory.bytes.fill(0, TABLES_AT, JOBS_AT);
  }

  /** Makes room for a row; false if the row is longer than the memory for edited rows. */
  #reserve(needed: number): boolean {
    if (this.#end + needed <= EDITED_END) {
      const jobs = (this.#memory.info[JOBS_END] - JOBS_AT) / JOB_BYTES;
      if (jobs + this.#hashes > MAX_JOBS) this.#memory.functions.hashJobs();
      return this.#hashes <= MAX_JOBS;
    }
    this.#flush();
    if (DATA_AT + needed <= EDITED_END) return this.#reserve(needed);
    this.#out = new Uint8Array(DATA_AT + needed);
    return false;
  }

  #flush(): void {
    this.#memory.functions.hashJobs();
    if (this.#end > DATA_AT) this.#parts.push(this.#out.slice(DATA_AT, this.#end));
    this.#out = this.#source;
    this.#end = DATA_AT;
    this.#to = DATA_AT;
  }

  #edit(start: number, tokenizer: RowTokenizer, isHeader: boolean): void {
    const { cells, used, contentEnd, width } = tokenizer;
    this.#from = start;
    this.#to = this.#end;
    let kept = 0;
    // `column` and `position`: the column of the last cell that is written, in the source row and in the written row.
    // It is the number of commas before the cell. `ended`: the end in the source of the last cell, written or dropped.
    let [column, position, ended] = [0, 0, start];
    for (let k = 0; k < used; k += STRIDE) {
      const next = cells[k] >> COLUMN_SHIFT;
      const action = this.#actions[next];
      const rawEnd = tokenizer.rawEnd(k);
      if (action === DROP) {
        this.#copyTo(ended);
        this.#from = rawEnd;
        ended = rawEnd;
        continue;
      }
      const nextPosition = this.#positions[next];
      if (nextPosition - position !== next - column) {
        this.#copyTo(ended);
        this.#commas(nextPosition - position);
        this.#from = tokenizer.rawStart(k);
      }
      this.#cell(tokenizer, k, isHeader ? KEEP : action);
      cells[kept] = (nextPosition << COLUMN_SHIFT) | (cells[k] & FLAG_BITS);
      cells[kept + 1] = cells[k + 1];
      cells[kept + 2] = cells[k + 2];
      kept += STRIDE;
      [column, position, ended] = [next, nextPosition, rawEnd];
    }
    const isWhole = this.#width - position === width - column;
    this.#copyTo(isWhole ? contentEnd : ended);
    if (!isWhole) this.#commas(this.#width - 1 - position);
    tokenizer.used = kept;
  }

  /** Writes cell `k` if it may not be copied as it is. */
  #cell(tokenizer: RowTokenizer, k: number, action: number): void {
    const { cells } = tokenizer;
    const [head, start, end] = [cells[k], cells[k + 1], cells[k + 2]];
    if (action === HASH || (action === HASH_BUT_NULL && !isNull(this.#source, start, end))) {
      if (this.#hash === undefined) throw new TypeError('a hash without a key');
      this.#text.read(this.#source, cells, k);
      this.#copyTo(tokenizer.rawStart(k));
      this.#write(this.#hash.hashOf(this.#text.text));
      this.#from = tokenizer.rawEnd(k);
    } else if ((head & BARE_CR) !== 0 && (head & QUOTED) === 0) {
      // A CR alone ends a row for many readers, so that its cell gets quotes.
      this.#copyTo(start);
      this.#out[this.#to++] = QUOTE;
      this.#copyTo(end);
      this.#out[this.#to++] = QUOTE;
    }
  }

  #write(text: string): void {
    for (let i = 0; i < text.length; i++) this.#out[this.#to++] = text.charCodeAt(i);
  }

  #endRow(): void {
    if (this.#width === 1 && this.#to === this.#end) {
      // A row of one empty cell must not become a blank line.
      this.#write('""');
    }
    this.#out[this.#to++] = LF;
  }

  #commas(count: number): void {
    for (let i = 0; i < count; i++) this.#out[this.#to++] = COMMA;
  }

  /** Copies the source from the end of the last copy up to `end`. */
  #copyTo(end: number): void {
    if (end > this.#from) {
      this.#out.set(this.#source.subarray(this.#from, end), this.#to);
      this.#to += end - this.#from;
    }
    this.#from = end;
  }
}
