import { OPEN_BRACE } from '../../base/ascii.ts';

/** Size that the array of lines has at first, and to which it returns after a large row (bytes). */
const LINES_BYTES = 1 << 20;

/** The lines that are written next. */
export class LineBuffer {
  bytes = new Uint8Array(LINES_BYTES);
  /** Index of the next byte. */
  end = 0;

  /** Makes room for `more` bytes behind `end`. */
  reserve(more: number): void {
    if (this.end + more <= this.bytes.length) return;
    const larger = new Uint8Array(Math.max(this.end + more, 2 * this.bytes.length));
    larger.set(this.bytes.subarray(0, this.end));
    this.bytes = larger;
  }

  append(bytes: Uint8Array): void {
    this.bytes.set(bytes, this.end);
    this.end += bytes.length;
  }

  /** Makes an object of the members from `start` on. Each begins with a comma, of which the first becomes the brace. */
  openObject(start: number): void {
    this.bytes[start] = OPEN_BRACE;
    this.end = Math.max(this.end, start + 1);
  }

  /** Returns the lines, which the next ones replace. */
  take(): Uint8Array {
    const lines = this.bytes.subarray(0, this.end);
    if (this.bytes.length > 16 * LINES_BYTES) this.bytes = new Uint8Array(LINES_BYTES);
    this.end = 0;
    return lines;
  }
}
