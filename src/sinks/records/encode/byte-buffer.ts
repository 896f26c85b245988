/** Bytes being written: `at` is where the next one goes. A plain Uint8Array, so that loops over it stay fast. */
export class ByteBuffer {
  bytes: Uint8Array<ArrayBuffer>;
  at = 0;

  constructor(buffer: ArrayBuffer) {
    this.bytes = new Uint8Array(buffer);
  }

  /** Makes room for `more` bytes behind `at`; may replace `bytes`. */
  reserve(more: number): void {
    const needed = this.at + more;
    if (needed <= this.bytes.length) return;
    const larger = new Uint8Array(Math.max(needed, this.bytes.length * 2));
    larger.set(this.bytes.subarray(0, this.at));
    this.bytes = larger;
  }
}
