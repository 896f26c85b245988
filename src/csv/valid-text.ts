import type { RowBuffer } from './row-buffer.ts';
import { openTail, repairUtf8 } from './utf8.ts';

/** Bad parts kept in mind at a time: more than this in one row is no text. */
const MOST_BAD = 1 << 20;

/** Keeps the bytes of a RowBuffer valid UTF-8 and remembers where it had to put U+FFFD, and so the original offsets. */
export class ValidText {
  readonly #rows: RowBuffer;
  /** Positions in the repaired text (all of it, from its first byte on) and the bytes added up to there. */
  #at: number[] = [];
  #grown: number[] = [];
  /** The first of them that `repairedIn` has not passed. */
  #next = 0;
  /** Position of the buffer's byte 0, and of the first byte not yet looked at. */
  #origin: number;
  #checked = 0;
  /** Bytes that repairs have added before the kept positions. */
  #added = 0;

  constructor(rows: RowBuffer) {
    this.#rows = rows;
    this.#origin = -rows.front;
  }

  /** True when some of the current text was repaired. */
  get isRepaired(): boolean {
    return this.#at.length > 0;
  }

  get isHopeless(): boolean {
    return this.#at.length > MOST_BAD;
  }

  /** Tells that the buffer is about to move `start` to its front. */
  moves(): void {
    this.#origin += this.#rows.start - this.#rows.front;
  }

  /** Checks what came since; returns where whole characters end. */
  check(last: boolean): number {
    const rows = this.#rows;
    const from = this.#checked - this.#origin;
    const end = last ? rows.end : rows.end - openTail(rows.bytes, from, rows.end);
    const repair = repairUtf8(rows.bytes, from, end);
    this.#checked = this.#origin + end;
    if (repair === undefined) return end;
    const before = this.#grown.at(-1) ?? 0;
    for (let i = 0; i < repair.at.length; i++) {
      this.#at.push(this.#origin + from + repair.at[i]);
      this.#grown.push(before + repair.grown[i]);
    }
    return this.#replace(from, end, repair.bytes);
  }

  /** The offset in the body as received of a position in the buffer. */
  offsetOf(index: number): number {
    const position = this.#origin + index;
    let grown = 0;
    for (let i = 0; i < this.#at.length && this.#at[i] < position; i++) grown = this.#grown[i];
    return position - grown - this.#added;
  }

  /** Calls `each` for the repaired places of [start, end) in the buffer; ranges must come in order. */
  repairedIn(start: number, end: number, each: (index: number) => void): void {
    const at = this.#at;
    while (this.#next < at.length && at[this.#next] - this.#origin < end) {
      const index = at[this.#next++] - this.#origin;
      if (index >= start) each(index);
    }
  }

  /** Forgets the places before `index`. */
  forget(index: number): void {
    const kept = this.#at.findIndex((at) => at - this.#origin >= index);
    const gone = kept < 0 ? this.#at.length : kept;
    if (gone === 0) return;
    const grown = this.#grown[gone - 1];
    this.#added += grown;
    this.#next = Math.max(0, this.#next - gone);
    this.#at = this.#at.slice(gone);
    this.#grown = this.#grown.slice(gone).map((g) => g - grown);
  }

  #replace(from: number, end: number, bytes: Uint8Array): number {
    const rows = this.#rows;
    const growth = bytes.length - (end - from);
    rows.reserve(growth);
    rows.bytes.copyWithin(end + growth, end, rows.end);
    rows.bytes.set(bytes, from);
    rows.end += growth;
    this.#checked += growth;
    return end + growth;
  }
}
