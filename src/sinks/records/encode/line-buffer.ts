/** Memory in which lines are made before they are collected: [from, to) of `bytes`. */
export interface Staging {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly from: number;
  readonly to: number;
}

/**
 * Lines being written: the next byte goes to `at` of `bytes`, both as `reserve` leaves them. Lines are made in the staging
 * memory, where there is one, and collected in a buffer that can be sent to another thread.
 */
export class LineBuffer {
  bytes: Uint8Array<ArrayBuffer>;
  at = 0;
  readonly #staging: Staging | undefined;
  #lines: Uint8Array<ArrayBuffer>;
  /** Bytes collected in `#lines`. */
  #length = 0;

  constructor(buffer: ArrayBuffer, staging: Staging | undefined) {
    this.#lines = new Uint8Array(buffer);
    this.bytes = this.#lines;
    this.#staging = staging;
  }

  /** Makes room for `more` bytes behind `at`; may replace `bytes` and `at`. */
  reserve(more: number): void {
    const staging = this.#staging;
    const isStaged = this.bytes === staging?.bytes;
    if (isStaged && this.at + more <= staging.to) return;
    this.#collect();
    if (staging !== undefined && more <= staging.to - staging.from) {
      this.bytes = staging.bytes;
      this.at = staging.from;
      return;
    }
    this.#grow(this.#length + more);
    this.bytes = this.#lines;
    this.at = this.#length;
  }

  /** All lines, from byte 0 of `buffer` on. */
  finish(): { readonly buffer: ArrayBuffer; readonly length: number } {
    this.#collect();
    return { buffer: this.#lines.buffer, length: this.#length };
  }

  #collect(): void {
    const staging = this.#staging;
    if (this.bytes !== staging?.bytes) {
      this.#length = this.at;
      return;
    }
    const length = this.at - staging.from;
    this.#grow(this.#length + length);
    this.#lines.set(staging.bytes.subarray(staging.from, this.at), this.#length);
    this.#length += length;
    this.at = staging.from;
  }

  #grow(needed: number): void {
    // Stryker disable next-line EqualityOperator: a larger buffer holds the same lines
    if (needed <= this.#lines.length) return;
    const larger = new Uint8Array(Math.max(needed, this.#lines.length * 2));
    larger.set(this.#lines.subarray(0, this.#length));
    this.#lines = larger;
  }
}
