import { TYPES } from '../../../types/index.ts';
import type { ColumnMemory } from './column-memory.ts';
import { ColumnStore } from './column-store.ts';
import { DICTIONARY_SHAPE, type PackedBatch, rowBytes, type Shape, shapeOf, TEXT_SHAPE } from './packed.ts';
import type { StreamColumn } from './task.ts';

/** A record batch ends at so many rows or bytes, whichever comes first. */
const BATCH_ROWS = 65_536;
export const BATCH_BYTES = 16 * 1024 * 1024;
const FIRST_ROWS = 256;
/** Memory of batches comes in multiples of this: most batches then fit into that of an earlier one. */
const STEP_BYTES = 1 << 19;

/** The columns of a stream: `_key`, those of the export, `_rescued`. */
export function streamShapes(columns: readonly StreamColumn[], zoned: boolean): Shape[] {
  const own = columns.map(({ type, isDictionary }) =>
    isDictionary ? DICTIONARY_SHAPE : shapeOf(TYPES[type].arrow(zoned)),
  );
  return [TEXT_SHAPE, ...own, TEXT_SHAPE];
}

/** Bytes that every row takes, whatever its cells. */
export const fixedBytes = (shapes: readonly Shape[]): number => shapes.reduce((sum, shape) => sum + rowBytes(shape), 0);

/** The record batch that is being built. */
export class BatchBuilder {
  readonly memory: ColumnMemory;
  readonly keys: ColumnStore;
  /** Of the export. */
  readonly columns: readonly ColumnStore[];
  readonly rescued: ColumnStore;
  /** About the bytes of texts and list elements; the writers of columns add to it. */
  bytes = 0;
  #rows = 0;
  #capacity = 0;
  readonly #all: readonly ColumnStore[];
  readonly #rowBytes: number;

  /** Takes the whole memory: what an earlier batch had there is gone. */
  constructor(columns: readonly StreamColumn[], zoned: boolean, memory: ColumnMemory) {
    const shapes = streamShapes(columns, zoned);
    memory.clear();
    this.memory = memory;
    this.#all = shapes.map((shape) => new ColumnStore(shape, memory));
    this.#rowBytes = fixedBytes(shapes);
    this.keys = this.#all[0];
    this.columns = this.#all.slice(1, -1);
    this.rescued = this.#all[this.#all.length - 1];
  }

  get rows(): number {
    return this.#rows;
  }

  /** True when no further row belongs into this batch. */
  get isFull(): boolean {
    return this.#rows >= BATCH_ROWS || this.bytes + this.#rows * this.#rowBytes >= BATCH_BYTES;
  }

  /** Makes room for one more row and returns it. */
  addRow(): number {
    if (this.#rows === this.#capacity) {
      this.#capacity = Math.min(BATCH_ROWS, Math.max(FIRST_ROWS, this.#capacity * 2));
      for (const column of this.#all) column.reserve(this.#capacity);
    }
    return this.#rows++;
  }

  /** The batch so far, in memory that is not needed any more if there is enough of it; the next one starts empty. */
  take(spare?: ArrayBuffer): PackedBatch {
    const rows = this.#rows;
    const nodes: number[] = [];
    const bytes = this.#all.reduce((at, column) => column.measure(rows, nodes, at), 0);
    const isSpare = spare !== undefined && spare.byteLength >= bytes;
    const buffer = isSpare ? spare : new ArrayBuffer(Math.ceil(bytes / STEP_BYTES) * STEP_BYTES);
    const out = new Uint8Array(buffer, 0, bytes);
    if (isSpare) out.fill(0);
    this.#all.reduce((at, column) => column.pack(rows, out, at), 0);
    this.#rows = 0;
    this.bytes = 0;
    return { rows, buffer, bytes, nodes: Float64Array.from(nodes) };
  }
}
