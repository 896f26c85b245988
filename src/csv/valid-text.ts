import { isUtf8 } from 'node:buffer';
import type { RowBuffer } from './row-buffer.ts';

/** Maximum number of replacements that are remembered at a time; a row with more of them is not text. */
const MAX_BAD = 1 << 20;

/** Keeps the bytes of a RowBuffer valid UTF-8. It remembers where it had to put U+FFFD, and so the original offsets. */
export class ValidText {
  readonly #rows: RowBuffer;
  /** Positions in the repaired text (counted from its first byte), and the number of bytes added up to there. */
  #positions: number[] = [];
  #grown: number[] = [];
  /** Index of the first of them that `repairedIn` has not passed. */
  #next = 0;
  /** Position of the buffer's byte 0, and index of the first byte that was not checked yet. */
  #origin: number;
  #checked = 0;
  /** Number of bytes that repairs have added before the remembered positions. */
  #added = 0;

  constructor(rows: RowBuffer) {
    this.#rows = rows;
    this.#origin = -rows.front;
  }

  /** True if some of the current text was repaired. */
  get isRepaired(): boolean {
    return this.#positions.length > 0;
  }

  get isInvalid(): boolean {
    return this.#positions.length > MAX_BAD;
  }

  /** Announces that the buffer is about to move `start` to its front. */
  moves(): void {
    this.#origin += this.#rows.start - this.#rows.front;
  }

  /** Checks the bytes that came since; returns the index behind the last whole character. */
  check(last: boolean): number {
    const rows = this.#rows;
    const from = this.#checked - this.#origin;
    const end = last ? rows.end : rows.end - openTail(rows.memory.bytes, from, rows.end);
    const repair = repairUtf8(rows.memory.bytes, from, end);
    this.#checked = this.#origin + end;
    if (repair === undefined) return end;
    const before = this.#grown.at(-1) ?? 0;
    for (let i = 0; i < repair.offsets.length; i++) {
      this.#positions.push(this.#origin + from + repair.offsets[i]);
      this.#grown.push(before + repair.grown[i]);
    }
    return this.#replace(from, end, repair.bytes);
  }

  /** The offset in the body as received of a position in the buffer. */
  offsetOf(index: number): number {
    const position = this.#origin + index;
    let grown = 0;
    for (let i = 0; i < this.#positions.length && this.#positions[i] < position; i++) grown = this.#grown[i];
    return position - grown - this.#added;
  }

  /** Calls `each` for the repaired positions of [start, end) in the buffer; ranges must come in order. */
  repairedIn(start: number, end: number, each: (index: number) => void): void {
    const positions = this.#positions;
    while (this.#next < positions.length && positions[this.#next] - this.#origin < end) {
      const index = positions[this.#next++] - this.#origin;
      if (index >= start) each(index);
    }
  }

  /** Forgets the positions before `index`. */
  removeBefore(index: number): void {
    const kept = this.#positions.findIndex((position) => position - this.#origin >= index);
    const removed = kept < 0 ? this.#positions.length : kept;
    if (removed === 0) return;
    const grown = this.#grown[removed - 1];
    this.#added += grown;
    this.#next = Math.max(0, this.#next - removed);
    this.#positions = this.#positions.slice(removed);
    this.#grown = this.#grown.slice(removed).map((later) => later - grown);
  }

  #replace(from: number, end: number, bytes: Uint8Array): number {
    const rows = this.#rows;
    const growth = bytes.length - (end - from);
    rows.reserve(growth);
    rows.memory.bytes.copyWithin(end + growth, end, rows.end);
    rows.memory.bytes.set(bytes, from);
    rows.end += growth;
    this.#checked += growth;
    return end + growth;
  }
}

/** U+FFFD takes three bytes; the bytes that it replaces are one to three. */
const REPLACEMENT = [0xef, 0xbf, 0xbd];

/** The replacements in a repaired run of bytes. */
interface Repair {
  readonly bytes: Uint8Array;
  /** Offsets of the replacement characters in `bytes`, rising. */
  readonly offsets: Int32Array;
  /** For each of them the number of bytes that the repair has added, up to and including it. */
  readonly grown: Int32Array;
}

/**
 * The number of bytes at the end of [start, end) that begin a character which may continue in the next chunk: 0 to 3.
 */
function openTail(bytes: Uint8Array, start: number, end: number): number {
  for (let back = 1; back <= 3 && end - back >= start; back++) {
    const c = bytes[end - back];
    if (c < 0x80) return 0;
    if (c >= 0xc0) return lengthOf(c) > back ? back : 0;
  }
  return 0;
}

/** Undefined if the bytes are valid UTF-8; else a copy with U+FFFD for each maximal invalid part, as WHATWG decodes. */
function repairUtf8(bytes: Uint8Array, start: number, end: number): Repair | undefined {
  if (isUtf8(bytes.subarray(start, end))) return undefined;
  const out = new Uint8Array((end - start) * 3);
  const offsets: number[] = [];
  const grown: number[] = [];
  let to = 0;
  for (let i = start; i < end; ) {
    const good = characterLength(bytes, i, end);
    if (good > 0) {
      for (const stop = i + good; i < stop; i++) out[to++] = bytes[i];
      continue;
    }
    offsets.push(to);
    out.set(REPLACEMENT, to);
    to += 3;
    grown.push((grown.at(-1) ?? 0) + 3 + good);
    i -= good;
  }
  return { bytes: out.subarray(0, to), offsets: Int32Array.from(offsets), grown: Int32Array.from(grown) };
}

function lengthOf(lead: number): number {
  if (lead < 0xc2 || lead > 0xf4) return 1;
  return lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

/** Length of the character at `i`, or the negated length of the invalid part there. */
function characterLength(bytes: Uint8Array, i: number, end: number): number {
  const lead = bytes[i];
  if (lead < 0x80) return 1;
  const length = lengthOf(lead);
  if (length === 1) return -1;
  for (let k = 1; k < length; k++) {
    const [least, most] = k === 1 ? secondRange(lead) : [0x80, 0xbf];
    if (i + k >= end || bytes[i + k] < least || bytes[i + k] > most) return -k;
  }
  return length;
}

/** The range of the second byte that excludes overlong forms, surrogates and everything beyond U+10FFFF. */
function secondRange(lead: number): readonly [number, number] {
  if (lead === 0xe0) return [0xa0, 0xbf];
  if (lead === 0xed) return [0x80, 0x9f];
  if (lead === 0xf0) return [0x90, 0xbf];
  return lead === 0xf4 ? [0x80, 0x8f] : [0x80, 0xbf];
}
