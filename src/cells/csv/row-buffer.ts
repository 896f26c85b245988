import { isUtf8 } from 'node:buffer';
import { LF } from '../../base/ascii.ts';
import { ByteBuffer } from '../../base/byte-buffer.ts';
import { SENTINEL } from './row.ts';

/** Bytes kept free behind the data: the sentinel, and the one behind it, which `CsvRow` may read. */
const SENTINEL_ROOM = 2;
const NO_REPLACEMENTS: readonly number[] = [];

/** U+FFFD, which replaces one to three bytes. */
const REPLACEMENT = Buffer.from('\ufffd');
const EMPTY = Buffer.alloc(0);
const LINE_END = Uint8Array.of(LF);
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/**
 * Collects bytes until they are whole rows: chunks of any size become one contiguous run of valid UTF-8. [start, end)
 * of `bytes` is there, in whole characters, with the sentinel behind. `push` may replace the array.
 */
export class RowBuffer extends ByteBuffer {
  start = 0;
  /** True if the body lacked its last line end, and has it here. */
  isLineEndAdded = false;
  /** The first bytes of a character that the next chunk continues. */
  #partialCharacter = EMPTY;
  /** Offsets at which U+FFFD stands for invalid bytes, in order; of rows that `takeReplacementIndices` has not passed. */
  #replacementOffsets: number[] = [];
  /** Offset of byte 0 of the array in the body. */
  #origin = 0;

  /** Copies a chunk behind the remaining bytes, which it first moves to the front; earlier indices are void. */
  push(chunk: Uint8Array): void {
    this.#moveToFront();
    const chunkStart = this.end;
    this.#add(this.#partialCharacter);
    this.#add(chunk);
    const wholeEnd = this.end - partialLength(this.bytes, chunkStart, this.end);
    this.#partialCharacter = Buffer.from(this.bytes.subarray(wholeEnd, this.end));
    this.end = wholeEnd;
    this.#replaceInvalid(chunkStart);
    this.bytes[this.end] = SENTINEL;
  }

  /** Ends the body, with the line end that it lacks. Earlier indices are void. */
  finish(): void {
    this.#moveToFront();
    const { end } = this;
    this.#add(this.#partialCharacter);
    this.#replaceInvalid(end);
    this.isLineEndAdded = this.end > 0 && this.bytes[this.end - 1] !== LF;
    if (this.isLineEndAdded) this.#add(LINE_END);
    this.bytes[this.end] = SENTINEL;
  }

  /** The offset of an index in the body, in which U+FFFD counts for what it replaces. */
  offsetOf(index: number): number {
    return this.#origin + index;
  }

  /** Takes the indices before `end` at which characters were replaced; each is taken once. */
  takeReplacementIndices(end: number): readonly number[] {
    if (this.#replacementOffsets.length === 0) return NO_REPLACEMENTS;
    const laterIndex = this.#replacementOffsets.findIndex((offset) => offset >= this.offsetOf(end));
    const taken = this.#replacementOffsets.splice(0, laterIndex < 0 ? this.#replacementOffsets.length : laterIndex);
    return taken.map((offset) => offset - this.#origin);
  }

  #moveToFront(): void {
    if (this.start > 0) this.bytes.copyWithin(0, this.start, this.end);
    this.#origin += this.start;
    this.end -= this.start;
    this.start = 0;
  }

  /** Adds bytes, with room for the sentinel behind them. */
  #add(bytes: Uint8Array): void {
    this.reserve(bytes.length + SENTINEL_ROOM);
    this.append(bytes);
  }

  /** Replaces the bytes from `start` on that are no UTF-8. */
  #replaceInvalid(start: number): void {
    if (isUtf8(this.bytes.subarray(start, this.end))) return;
    const text = this.#withReplacements(start, this.end);
    this.end = start;
    this.#add(text);
  }

  /** A copy of [start, end) with U+FFFD for each maximal invalid part, as WHATWG decodes; notes where these stand. */
  #withReplacements(start: number, end: number): Buffer {
    const { bytes } = this;
    const parts: Buffer[] = [];
    let partOffset = this.offsetOf(start);
    for (let partStart = start; partStart < end; ) {
      // A U+FFFD of the body itself replaces nothing.
      const bodyReplacement = bytes.indexOf(REPLACEMENT, partStart);
      const partEnd = bodyReplacement < 0 || bodyReplacement >= end ? end : bodyReplacement;
      const part = Buffer.from(decoder.decode(bytes.subarray(partStart, partEnd)));
      for (let i = part.indexOf(REPLACEMENT); i >= 0; i = part.indexOf(REPLACEMENT, i + 1))
        this.#replacementOffsets.push(partOffset + i);
      parts.push(part, partEnd < end ? REPLACEMENT : EMPTY);
      partOffset += part.length + REPLACEMENT.length;
      partStart = partEnd + REPLACEMENT.length;
    }
    return Buffer.concat(parts);
  }
}

/** Number of bytes, 0 to 3, at the end of [start, end) that begin a character. It may go on in the next chunk. */
function partialLength(bytes: Uint8Array, start: number, end: number): number {
  for (let back = 1; back <= 3 && end - back >= start; back++) {
    const c = bytes[end - back];
    if (c < 0x80) return 0;
    if (c >= 0xc0) return (c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4) > back ? back : 0;
  }
  return 0;
}
