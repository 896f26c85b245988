import { createHash } from 'node:crypto';
import { COLON, NINE, NUMBER_SIGN, ZERO } from '../../base/ascii.ts';
import { COLUMN_SHIFT, DOUBLED, STRIDE } from '../../csv/layout.ts';
import { type RowTokenizer, Unquoter } from '../../csv/tokenizer.ts';
import { DETAIL_LOG_ID, type HeaderColumn, LOG_ID } from '../../schema/groups.ts';

/** Maximum number of digits of an item position, which must fit into 64 bits. */
const POSITION_DIGITS = 18;
const encoder = new TextEncoder();

/** The ids of one row as plain text, without quotes and escapes. One object serves all rows. */
export class RowKey {
  /** The base of `_key` is [start, end) of `bytes`: the detail log id, or without one `hash:` and a digest. */
  bytes = new Uint8Array(0);
  start = 0;
  end = 0;
  /** The id of the event: the log id, or the base of `_key` for a row without one. */
  logBytes = new Uint8Array(0);
  logStart = 0;
  logEnd = 0;
  hasLogId = false;
  /** Digits of the item position in `bytes`, without leading zeros; an empty range if there is none. */
  positionStart = 0;
  positionEnd = 0;
  readonly #id: number;
  readonly #log: number;
  readonly #idText = new Unquoter();
  readonly #logText = new Unquoter();
  readonly #digest: RowDigest;

  constructor(header: readonly HeaderColumn[]) {
    const sources = header.map((column) => column.source);
    this.#id = sources.indexOf(DETAIL_LOG_ID);
    this.#log = sources.indexOf(LOG_ID);
    this.#digest = new RowDigest(sources);
  }

  read(b: Uint8Array<ArrayBuffer>, tokenizer: RowTokenizer): void {
    const { cells, used } = tokenizer;
    let id = -1;
    let log = -1;
    for (let k = 0; k < used; k += STRIDE) {
      const column = cells[k] >> COLUMN_SHIFT;
      if (column === this.#id) id = k;
      else if (column === this.#log) log = k;
    }
    if (id >= 0) this.#readId(b, cells, id);
    else this.#readDigest(b, tokenizer);
    this.hasLogId = log >= 0;
    if (log >= 0) this.#readLog(b, cells, log);
    else this.#ownEvent();
    this.#readPosition(id >= 0);
  }

  #readId(b: Uint8Array<ArrayBuffer>, cells: Int32Array, k: number): void {
    const isDoubled = (cells[k] & DOUBLED) !== 0;
    const length = isDoubled ? this.#idText.unquote(b, cells[k + 1], cells[k + 2]) : 0;
    this.bytes = isDoubled ? this.#idText.text : b;
    this.start = isDoubled ? 0 : cells[k + 1];
    this.end = isDoubled ? length : cells[k + 2];
  }

  #readDigest(b: Uint8Array, tokenizer: RowTokenizer): void {
    this.bytes = encoder.encode(`hash:${this.#digest.of(b, tokenizer)}`);
    this.start = 0;
    this.end = this.bytes.length;
  }

  #readLog(b: Uint8Array<ArrayBuffer>, cells: Int32Array, k: number): void {
    const isDoubled = (cells[k] & DOUBLED) !== 0;
    const length = isDoubled ? this.#logText.unquote(b, cells[k + 1], cells[k + 2]) : 0;
    this.logBytes = isDoubled ? this.#logText.text : b;
    this.logStart = isDoubled ? 0 : cells[k + 1];
    this.logEnd = isDoubled ? length : cells[k + 2];
  }

  #ownEvent(): void {
    this.logBytes = this.bytes;
    this.logStart = this.start;
    this.logEnd = this.end;
  }

  /** The digits of `<log id>:<digits>`. */
  #readPosition(hasId: boolean): void {
    this.positionStart = this.end;
    this.positionEnd = this.end;
    let i = this.start + this.logEnd - this.logStart + 1;
    if (!hasId || !this.hasLogId || i >= this.end || this.bytes[i - 1] !== COLON || !this.#startsWithLog()) return;
    for (let k = i; k < this.end; k++) if (this.bytes[k] < ZERO || this.bytes[k] > NINE) return;
    while (i < this.end - 1 && this.bytes[i] === ZERO) i++;
    if (this.end - i <= POSITION_DIGITS) this.positionStart = i;
  }

  #startsWithLog(): boolean {
    const { bytes, logBytes, start, logStart } = this;
    for (let i = this.logEnd - logStart - 1; i >= 0; i--) if (bytes[start + i] !== logBytes[logStart + i]) return false;
    return true;
  }

  get text(): string {
    return Buffer.from(this.bytes.buffer, this.bytes.byteOffset + this.start, this.end - this.start).toString();
  }

  /** True when the base ends in `#` and digits, as the key of a repeated row does. */
  get isNumbered(): boolean {
    let i = this.end;
    while (i > this.start && this.bytes[i - 1] >= ZERO && this.bytes[i - 1] <= NINE) i--;
    return i < this.end && i > this.start && this.bytes[i - 1] === NUMBER_SIGN;
  }

  /** The item position as a number, or -1; beyond 2^53 it is rounded. */
  get position(): number {
    if (this.positionStart === this.positionEnd) return -1;
    let n = 0;
    for (let i = this.positionStart; i < this.positionEnd; i++) n = n * 10 + this.bytes[i] - ZERO;
    return n;
  }
}

/** SHA-256 over the non-empty cells of a row, in the byte order of their names: `<bytes>:<name><bytes>:<text>` each. */
class RowDigest {
  readonly #names: readonly Uint8Array[];
  readonly #order: readonly number[];
  readonly #cellOf: Int32Array;
  readonly #unquoter = new Unquoter();

  constructor(sources: readonly string[]) {
    this.#names = sources.map((source) => encoder.encode(source));
    this.#order = sources.map((_, i) => i).sort((a, b) => Buffer.compare(this.#names[a], this.#names[b]));
    this.#cellOf = new Int32Array(sources.length);
  }

  of(b: Uint8Array, tokenizer: RowTokenizer): string {
    const { cells, used } = tokenizer;
    this.#cellOf.fill(-1);
    for (let k = 0; k < used; k += STRIDE) this.#cellOf[cells[k] >> COLUMN_SHIFT] = k;
    const hash = createHash('sha256');
    for (const column of this.#order) {
      const k = this.#cellOf[column];
      if (k < 0) continue;
      const name = this.#names[column];
      const text = this.#textOf(b, cells, k);
      hash.update(`${name.length}:`).update(name).update(`${text.length}:`).update(text);
    }
    return hash.digest('hex');
  }

  #textOf(b: Uint8Array, cells: Int32Array, k: number): Uint8Array {
    if ((cells[k] & DOUBLED) === 0) return b.subarray(cells[k + 1], cells[k + 2]);
    return this.#unquoter.unquoted(b, cells[k + 1], cells[k + 2]);
  }
}
