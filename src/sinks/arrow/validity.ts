const ALL = 0xff;

/** A growing bitmap of which rows have a value; least significant bit first, as DuckDB and Arrow both have it. */
export class Validity {
  #bits: Uint8Array;
  length = 0;
  nulls = 0;

  constructor(rows: number) {
    this.#bits = new Uint8Array((rows + 7) >> 3);
  }

  /** Appends rows [from, from + count) of a DuckDB mask; none: all have a value. */
  append(mask: Uint8Array | null, from: number, count: number): void {
    this.#reserve(this.length + count);
    if (mask === null) this.#fill(count);
    else if ((this.length & 7) === 0 && (from & 7) === 0) this.#copy(mask, from, count);
    else for (let row = from; row < from + count; row++) this.#push(isSet(mask, row));
  }

  /** The bitmap so far; the next one starts empty. */
  take(): { readonly nullBitmap: Uint8Array; readonly nullCount: number } {
    const nullBitmap = this.#bits.subarray(0, (this.length + 7) >> 3);
    const nullCount = this.nulls;
    this.#bits = new Uint8Array(this.#bits.length);
    this.length = 0;
    this.nulls = 0;
    return { nullBitmap, nullCount };
  }

  #push(value: boolean): void {
    const row = this.length++;
    if (value) this.#bits[row >> 3] |= 1 << (row & 7);
    else this.nulls++;
  }

  #fill(count: number): void {
    const end = this.length + count;
    while (this.length < end && (this.length & 7) !== 0) this.#push(true);
    const bytes = (end - this.length) >> 3;
    this.#bits.fill(ALL, this.length >> 3, (this.length >> 3) + bytes);
    this.length += bytes << 3;
    while (this.length < end) this.#push(true);
  }

  #copy(mask: Uint8Array, from: number, count: number): void {
    const bytes = count >> 3;
    const at = this.length >> 3;
    for (let i = 0; i < bytes; i++) {
      const byte = mask[(from >> 3) + i];
      this.#bits[at + i] = byte;
      if (byte !== ALL) this.nulls += zeros(byte);
    }
    this.length += bytes << 3;
    for (let row = from + (bytes << 3); row < from + count; row++) this.#push(isSet(mask, row));
  }

  #reserve(rows: number): void {
    if (rows <= this.#bits.length * 8) return;
    const larger = new Uint8Array(Math.max((rows + 7) >> 3, this.#bits.length * 2));
    larger.set(this.#bits);
    this.#bits = larger;
  }
}

export function isSet(mask: Uint8Array, row: number): boolean {
  return (mask[row >> 3] & (1 << (row & 7))) !== 0;
}

function zeros(byte: number): number {
  let count = 8;
  for (let left = byte; left !== 0; left &= left - 1) count--;
  return count;
}
