import { isUtf8 } from 'node:buffer';
import { LF } from '../../base/ascii.ts';
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
  /** [start, end) is there, in whole characters, with the sentinel behind. `append` may replace the array. */
  bytes: Buffer = Buffer.alloc(START_BYTES);
  start = 0;
  end = 0;
  /** True if the body lacked its last line end, and has it here. */
  isLineEndAdded = false;
  /** The begin of a character that the next chunk continues. */
  #openCharacter = EMPTY;
  /** Offsets at which U+FFFD stands for invalid bytes, in order; of rows that `takeRepairs` has not passed. */
  #repairs: number[] = [];
  /** Offset of byte 0 of the array in the body. */
  #origin = 0;

  /** Copies a chunk behind the remaining bytes, which it first moves to the front; earlier indices are void. */
  append(chunk: Uint8Array, isLast: boolean): void {
    if (this.start > 0) this.bytes.copyWithin(0, this.start, this.end);
    this.#origin += this.start;
    const from = this.end - this.start;
    const chunkStart = from + this.#openCharacter.length;
    this.#grow(chunkStart + chunk.length);
    this.bytes.set(this.#openCharacter, from);
    this.bytes.set(chunk, chunkStart);
    let end = chunkStart + chunk.length;
    if (!isLast) end -= openLength(this.bytes, from, end);
    this.#openCharacter = Buffer.from(this.bytes.subarray(end, chunkStart + chunk.length));
    if (!isUtf8(this.bytes.subarray(from, end))) {
      const text = this.#repaired(from, end);
      end = from + text.length;
      this.#grow(end);
      this.bytes.set(text, from);
    }
    this.isLineEndAdded = isLast && end > 0 && this.bytes[end - 1] !== LF;
    if (this.isLineEndAdded) this.bytes[end++] = LF;
    this.bytes[end] = SENTINEL;
    this.start = 0;
    this.end = end;
  }

  /** The offset of an index in the body, in which U+FFFD counts for what it replaces. */
  offsetOf(index: number): number {
    return this.#origin + index;
  }

  /** Takes the indices before `end` at which characters were replaced; each is taken once. */
  takeRepairs(end: number): readonly number[] {
    if (this.#repairs.length === 0) return NO_REPAIRS;
    const laterIndex = this.#repairs.findIndex((offset) => offset >= this.offsetOf(end));
    const taken = this.#repairs.splice(0, laterIndex < 0 ? this.#repairs.length : laterIndex);
    return taken.map((offset) => offset - this.#origin);
  }

  /** A copy of [start, end) with U+FFFD for each maximal invalid part, as WHATWG decodes; notes where these stand. */
  #repaired(start: number, end: number): Buffer {
    const { bytes } = this;
    const parts: Buffer[] = [];
    let to = this.offsetOf(start);
    for (let at = start; at < end; ) {
      // A U+FFFD of the body itself is no repair.
      const bodyReplacement = bytes.indexOf(REPLACEMENT, at);
      const stop = bodyReplacement < 0 || bodyReplacement >= end ? end : bodyReplacement;
      const part = Buffer.from(decoder.decode(bytes.subarray(at, stop)));
      for (let i = part.indexOf(REPLACEMENT); i >= 0; i = part.indexOf(REPLACEMENT, i + 1)) this.#repairs.push(to + i);
      parts.push(part, stop < end ? REPLACEMENT : EMPTY);
      to += part.length + REPLACEMENT.length;
      at = stop + REPLACEMENT.length;
    }
    return Buffer.concat(parts);
  }

  /** Makes room for [0, size) and the margin. */
  #grow(size: number): void {
    if (size + MARGIN <= this.bytes.length) return;
    const largerBytes = Buffer.alloc(Math.max(size + MARGIN, 2 * this.bytes.length));
    largerBytes.set(this.bytes);
    this.bytes = largerBytes;
  }
}

/** Number of bytes, 0 to 3, at the end of [start, end) that begin a character. It may go on in the next chunk. */
function openLength(bytes: Uint8Array, start: number, end: number): number {
  for (let back = 1; back <= 3 && end - back >= start; back++) {
    const c = bytes[end - back];
    if (c < 0x80) return 0;
    if (c >= 0xc0) return (c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4) > back ? back : 0;
  }
  return 0;
}
