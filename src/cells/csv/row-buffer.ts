import { isUtf8 } from 'node:buffer';

/** Bytes kept free behind the data: for the tokenizer's sentinel and one line end. */
const MARGIN = 8;
const START_BYTES = 1 << 20;
const NO_REPAIRS: readonly number[] = [];

/** U+FFFD takes three bytes; the bytes that it replaces are one to three. */
const REPLACEMENT = [0xef, 0xbf, 0xbd];

/** Collects bytes until they are whole rows: chunks of any size become one contiguous run of valid UTF-8. */
export class RowBuffer {
  /** The bytes of [start, end) are there; `append` and `check` may replace the array. */
  bytes: Buffer = Buffer.alloc(START_BYTES);
  start = 0;
  end = 0;
  /** Indices at which U+FFFD stands for invalid bytes, in order; of rows that `takeRepairs` has not passed. */
  #repairs: number[] = [];
  /** Position of byte 0 of the array in the text. */
  #origin = 0;
  /** Index of the first byte that was not checked yet. */
  #checked = 0;

  get length(): number {
    return this.end - this.start;
  }

  /** Copies a chunk behind the remaining bytes, which it first moves to the front; earlier indices are void. */
  append(chunk: Uint8Array): void {
    const { start } = this;
    if (start > 0) {
      this.bytes.copyWithin(0, start, this.end);
      this.#origin += start;
      this.#checked -= start;
      this.#repairs = this.#repairs.map((index) => index - start);
      this.end -= start;
      this.start = 0;
    }
    this.#grow(this.end + chunk.length + MARGIN);
    this.bytes.set(chunk, this.end);
    this.end += chunk.length;
  }

  /** Makes the bytes that came since the last call valid; returns the index behind the last whole character. */
  check(last: boolean): number {
    const { bytes } = this;
    const from = this.#checked;
    let end = last ? this.end : this.end - openTail(bytes, from, this.end);
    if (!isUtf8(bytes.subarray(from, end))) end = this.#replace(from, end, this.#repaired(bytes, from, end));
    this.#checked = end;
    return end;
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

  /** A copy with U+FFFD for each maximal invalid part, as WHATWG decodes. */
  #repaired(bytes: Uint8Array, start: number, end: number): Uint8Array {
    const out = new Uint8Array((end - start) * REPLACEMENT.length);
    let to = 0;
    for (let i = start; i < end; ) {
      const good = characterLength(bytes, i, end);
      if (good > 0) {
        for (const stop = i + good; i < stop; i++) out[to++] = bytes[i];
        continue;
      }
      this.#repairs.push(start + to);
      out.set(REPLACEMENT, to);
      to += REPLACEMENT.length;
      i -= good;
    }
    return out.subarray(0, to);
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
