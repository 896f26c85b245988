/** A resizable buffer: Node 20 has them, the types of ES2023 do not. */
type Resizable = ArrayBuffer & { resize(bytes: number): void };
const ResizableBuffer: new (bytes: number, options: { readonly maxByteLength: number }) => ArrayBuffer = ArrayBuffer;

/**
 * Zeroed memory outside the heap for a large table that is needed for a while. `free` is explicit, since a plain buffer
 * that nobody refers to any more is freed by a collection of the old generation, which a thread that makes few objects
 * may not run for minutes.
 */
export class Scratch {
  readonly #buffer: Resizable;

  constructor(bytes: number) {
    this.#buffer = new ResizableBuffer(bytes, { maxByteLength: bytes }) as Resizable;
  }

  get buffer(): ArrayBuffer {
    return this.#buffer;
  }

  /** Gives the memory back to the system at once; views on it are empty from then on. */
  free(): void {
    this.#buffer.resize(0);
  }
}
