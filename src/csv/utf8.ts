import { isUtf8 } from 'node:buffer';

/** U+FFFD takes three bytes; what it stands for takes one to three. */
const REPLACEMENT = [0xef, 0xbf, 0xbd];

/** Where text was replaced in a repaired run of bytes. */
export interface Repair {
  readonly bytes: Uint8Array;
  /** Offsets of the replacement characters in `bytes`, rising. */
  readonly at: Int32Array;
  /** For each of them the bytes that the repair has added up to and including it. */
  readonly grown: Int32Array;
}

/** How many bytes at the end of [start, end) begin a character that may go on in the next chunk: 0 to 3. */
export function openTail(b: Uint8Array, start: number, end: number): number {
  for (let back = 1; back <= 3 && end - back >= start; back++) {
    const c = b[end - back];
    if (c < 0x80) return 0;
    if (c >= 0xc0) return lengthOf(c) > back ? back : 0;
  }
  return 0;
}

/** Undefined when the bytes are valid UTF-8; else a copy with U+FFFD for each maximal bad part, as WHATWG decodes. */
export function repairUtf8(b: Uint8Array, start: number, end: number): Repair | undefined {
  if (isUtf8(b.subarray(start, end))) return undefined;
  const out = new Uint8Array((end - start) * 3);
  const at: number[] = [];
  const grown: number[] = [];
  let to = 0;
  for (let i = start; i < end; ) {
    const good = characterLength(b, i, end);
    if (good > 0) {
      for (const stop = i + good; i < stop; i++) out[to++] = b[i];
      continue;
    }
    at.push(to);
    out.set(REPLACEMENT, to);
    to += 3;
    grown.push((grown.at(-1) ?? 0) + 3 + good);
    i -= good;
  }
  return { bytes: out.subarray(0, to), at: Int32Array.from(at), grown: Int32Array.from(grown) };
}

function lengthOf(lead: number): number {
  if (lead < 0xc2 || lead > 0xf4) return 1;
  return lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

/** Bytes of the character at `i`, or minus the bytes of the bad part there. */
function characterLength(b: Uint8Array, i: number, end: number): number {
  const lead = b[i];
  if (lead < 0x80) return 1;
  const length = lengthOf(lead);
  if (length === 1) return -1;
  for (let k = 1; k < length; k++) {
    const [least, most] = k === 1 ? secondRange(lead) : [0x80, 0xbf];
    if (i + k >= end || b[i + k] < least || b[i + k] > most) return -k;
  }
  return length;
}

/** The second byte keeps out overlong forms, surrogates and what lies beyond U+10FFFF. */
function secondRange(lead: number): readonly [number, number] {
  if (lead === 0xe0) return [0xa0, 0xbf];
  if (lead === 0xed) return [0x80, 0x9f];
  if (lead === 0xf0) return [0x90, 0xbf];
  return lead === 0xf4 ? [0x80, 0x8f] : [0x80, 0xbf];
}
