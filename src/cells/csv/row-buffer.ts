import { isUtf8 } from 'node:buffer';
import { SENTINEL } from './row.ts';

/** Bytes kept free behind the data: for the sentinel and one line end. */
const MARGIN = 8;
const START_BYTES = 1 << 20;
const NO_REPAIRS: readonly number[] = [];

/** U+FFFD, which replaces one to three bytes. */
const REPLACEMENT = Buffer.from('\ufffd');
const EMPTY = Buffer.alloc(0);
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** Collects bytes until they are whole rows: chunks of any size become one contiguous run of valid UTF-8. */
export class RowBuffer {
  /** The bytes of [start, end) are there; `append` and `makeValid` may replace the array. */
  bytes: Buffer = Buffer.alloc(START_BYTES);
  start = 0;
  end = 0;
  /** Indices at which U+FFFD stands for invalid bytes, in order; of rows that `takeRepairs` has not passed. */
  #repairs: number[] = [];
  /** Position of byte 0 of the array in the text. */
  #origin = 0;
  /** Index behind the bytes that are valid. While rows are read, the sentinel stands there. */
  #validEnd = 0;
  /** The byte of the body there. */
  #byteUnderSentinel = 0;

  get length(): number {
    return this.end - this.start;
  }

  /** Copies a chunk behind the remaining bytes, which it first moves to the front; earlier indices are void. */
  append(chunk: Uint8Array): void {
    const { start } = this;
    if (start > 0) {
      this.bytes.copyWithin(0, start, this.end);
      this.#origin += start;
      this.#validEnd -= start;
      this.#repairs = this.#repairs.map((index) => index - start);
      this.end -= start;
      this.start = 0;
    }
    this.#grow(this.end + chunk.length + MARGIN);
    this.bytes.set(chunk, this.end);
    this.end += chunk.length;
  }

  /**
   * Makes the bytes that came since the last call valid. Returns the index behind the last whole character, where the
   * sentinel stands until `release`.
   */
  makeValid(isLast: boolean): number {
    const { bytes } = this;
    const from = this.#validEnd;
    let end = isLast ? this.end : this.end - openTail(bytes, from, this.end);
    if (!isUtf8(bytes.subarray(from, end))) end = this.#replace(from, end, this.#repaired(bytes, from, end));
    this.#validEnd = end;
    this.#byteUnderSentinel = this.bytes[end];
    this.bytes[end] = SENTINEL;
    return end;
  }

  /** Takes the sentinel away, before the next chunk comes. */
  release(): void {
    this.bytes[this.#validEnd] = this.#byteUnderSentinel;
  }

  /** The offset of an index in the body, in which U+FFFD counts for what it replaces. */
  offsetOf(index: number): number {
    return this.#origin + index;
  }

  /** Takes the repaired indices before `end`; each is taken once. */
  takeRepairs(end: number): readonly number[] {
    if (this.#repairs.length === 0) return NO_REPAIRS;
    const later = this.#repairs.findIndex((index) => index >= end);
    return this.#repairs.splice(0, later < 0 ? this.#repairs.length : later);
  }

  /** A copy of [start, end) with U+FFFD for each maximal invalid part, as WHATWG decodes; notes where these stand. */
  #repaired(bytes: Buffer, start: number, end: number): Buffer {
    const parts: Buffer[] = [];
    let to = start;
    for (let at = start; at < end; ) {
      // A U+FFFD of the body itself is no repair.
      const genuine = bytes.indexOf(REPLACEMENT, at);
      const stop = genuine < 0 || genuine >= end ? end : genuine;
      const part = Buffer.from(decoder.decode(bytes.subarray(at, stop)));
      for (let i = part.indexOf(REPLACEMENT); i >= 0; i = part.indexOf(REPLACEMENT, i + 1)) this.#repairs.push(to + i);
      parts.push(part, stop < end ? REPLACEMENT : EMPTY);
      to += part.length + REPLACEMENT.length;
      at = stop + REPLACEMENT.length;
    }
    return Buffer.concat(parts);
  }

  #replace(from: number, end: number, text: Uint8Array): number {
    const growth = text.length - (end - from);
    this.#grow(this.end + growth + MARGIN);
    this.bytes.copyWithin(end + growth, end, this.end);
    this.bytes.set(text, from);
    this.end += growth;
    return end + growth;
  }

  #grow(size: number): void {
    if (size <= this.bytes.length) return;
    const larger = Buffer.alloc(Math.max(size, 2 * this.bytes.length));
    larger.set(this.bytes.subarray(0, this.end));
    this.bytes = larger;
  }
}

/** Number of bytes, 0 to 3, at the end of [start, end) that begin a character. It may go on in the next chunk. */
function openTail(bytes: Uint8Array, start: number, end: number): number {
  for (let back = 1; back <= 3 && end - back >= start; back++) {
    const c = bytes[end - back];
    if (c < 0x80) return 0;
    if (c >= 0xc0) return (c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4) > back ? back : 0;
  }
  return 0;
}
