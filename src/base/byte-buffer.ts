/** Size of the array at first, and again after one that grew far beyond it was taken (bytes). */
const START_BYTES = 1 << 20;

/** Bytes that are gathered one after the other, and taken together. */
export class ByteBuffer {
  bytes: Buffer = Buffer.alloc(START_BYTES);
  /** Index of the next byte. */
  end = 0;

  /** Makes room for `more` bytes behind `end`. */
  reserve(more: number): void {
    if (this.end + more <= this.bytes.length) return;
    const larger = Buffer.alloc(Math.max(this.end + more, 2 * this.bytes.length));
    larger.set(this.bytes.subarray(0, this.end));
    this.bytes = larger;
  }

  append(bytes: Uint8Array): void {
    this.reserve(bytes.length);
    this.bytes.set(bytes, this.end);
    this.end += bytes.length;
  }

  /** Adds a byte, for which there must be room. */
  appendByte(byte: number): void {
    this.bytes[this.end++] = byte;
  }

  /** Returns what was gathered; it holds until the next byte comes. */
  take(): Uint8Array {
    const taken = this.bytes.subarray(0, this.end);
    if (this.bytes.length > 16 * START_BYTES) this.bytes = Buffer.alloc(START_BYTES);
    this.end = 0;
    return taken;
  }
}
