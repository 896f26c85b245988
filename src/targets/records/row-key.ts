import { createHash } from 'node:crypto';
import { COLON, NINE, NUMBER_SIGN, ZERO } from '../../base/ascii.ts';
import { DETAIL_LOG_ID, type HeaderColumn, LOG_ID } from '../../cells/columns/groups.ts';
import { COLUMN_SHIFT, STRIDE } from '../../cells/csv/layout.ts';
import { CellText, type RowTokenizer } from '../../cells/csv/tokenizer.ts';

/** Maximum number of digits of an item position, which must fit into 64 bits. */
const POSITION_DIGITS = 18;
const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** The ids of one row. One object serves all rows. */
export class RowKey {
  /** The base of `_key`: the detail log id, or without one `hash:` and a digest. */
  readonly id: CellText = new CellText();
  /** The id of the event: the log id, or the base of `_key` for a row without one. */
  event: CellText = this.id;
  /** Digits of the item position in the bytes of `id`, without leading zeros; an empty range if there is none. */
  positionStart = 0;
  positionEnd = 0;
  readonly #idColumn: number;
  readonly #logColumn: number;
  readonly #log = new CellText();
  readonly #digest: RowDigest;

  constructor(header: readonly HeaderColumn[]) {
    const sources = header.map((column) => column.source);
    this.#idColumn = sources.indexOf(DETAIL_LOG_ID);
    this.#logColumn = sources.indexOf(LOG_ID);
    this.#digest = new RowDigest(sources);
  }

  read(b: Uint8Array, { cells, used }: RowTokenizer): void {
    let id = -1;
    let log = -1;
    for (let k = 0; k < used; k += STRIDE) {
      const column = cells[k] >> COLUMN_SHIFT;
      if (column === this.#idColumn) id = k;
      else if (column === this.#logColumn) log = k;
    }
    if (id >= 0) this.id.read(b, cells, id);
    else this.id.set(encoder.encode(`hash:${this.#digest.of(b, cells, used)}`));
    if (log >= 0) this.#log.read(b, cells, log);
    this.event = log >= 0 ? this.#log : this.id;
    this.#readPosition(id >= 0);
  }

  get hasLogId(): boolean {
    return this.event !== this.id;
  }

  /** The digits of `<log id>:<digits>`. */
  #readPosition(hasId: boolean): void {
    const { bytes, start, end } = this.id;
    this.positionStart = end;
    this.positionEnd = end;
    let i = start + this.event.end - this.event.start + 1;
    if (!hasId || !this.hasLogId || i >= end || bytes[i - 1] !== COLON || !this.#startsWithLog()) return;
    for (let k = i; k < end; k++) if (bytes[k] < ZERO || bytes[k] > NINE) return;
    while (i < end - 1 && bytes[i] === ZERO) i++;
    if (end - i <= POSITION_DIGITS) this.positionStart = i;
  }

  #startsWithLog(): boolean {
    const { id, event } = this;
    for (let i = event.end - event.start - 1; i >= 0; i--) {
      if (id.bytes[id.start + i] !== event.bytes[event.start + i]) return false;
    }
    return true;
  }

  get text(): string {
    return decoder.decode(this.id.text);
  }

  /** True when the base ends in `#` and digits, as the key of a repeated row does. */
  get isNumbered(): boolean {
    const { bytes, start, end } = this.id;
    let i = end;
    while (i > start && bytes[i - 1] >= ZERO && bytes[i - 1] <= NINE) i--;
    return i < end && i > start && bytes[i - 1] === NUMBER_SIGN;
  }

  /** The item position as a number, or -1; beyond 2^53 it is rounded. */
  get position(): number {
    if (this.positionStart === this.positionEnd) return -1;
    let n = 0;
    for (let i = this.positionStart; i < this.positionEnd; i++) n = n * 10 + this.id.bytes[i] - ZERO;
    return n;
  }
}

/** SHA-256 over the non-empty cells of a row, in the byte order of their names: `<bytes>:<name><bytes>:<text>` each. */
class RowDigest {
  readonly #names: readonly Uint8Array[];
  readonly #order: readonly number[];
  readonly #cellOf: Int32Array;
  readonly #text = new CellText();

  constructor(sources: readonly string[]) {
    this.#names = sources.map((source) => encoder.encode(source));
    this.#order = sources.map((_, i) => i).sort((a, b) => Buffer.compare(this.#names[a], this.#names[b]));
    this.#cellOf = new Int32Array(sources.length);
  }

  of(b: Uint8Array, cells: Int32Array, used: number): string {
    this.#cellOf.fill(-1);
    for (let k = 0; k < used; k += STRIDE) this.#cellOf[cells[k] >> COLUMN_SHIFT] = k;
    const hash = createHash('sha256');
    for (const column of this.#order) {
      const k = this.#cellOf[column];
      if (k < 0) continue;
      this.#text.read(b, cells, k);
      const [name, { text }] = [this.#names[column], this.#text];
      hash.update(`${name.length}:`).update(name).update(`${text.length}:`).update(text);
    }
    return hash.digest('hex');
  }
}
