import type { CsvMemory } from '../../../csv/wasm/csv-memory.ts';
import type { RecordPlan } from './record-plan.ts';

/** What a vector load may read behind a table. */
const SLACK_BYTES = 16;
const WORD_BYTES = 4;

/** One stream's tables in a CsvMemory: SIMD writes the runs of plain cells of its rows. */
export class PlainCells {
  readonly #memory: CsvMemory;
  readonly #modes: number;
  readonly #offsets: number;
  readonly #labels: number;

  /** Puts the tables at `at`; they take `tableBytes(plan)`. `modes`: per column, of cell-plan.ts. */
  constructor(memory: CsvMemory, at: number, plan: RecordPlan, modes: Uint8Array) {
    this.#memory = memory;
    this.#offsets = at;
    this.#labels = at + plan.labelOffsets.byteLength;
    this.#modes = this.#labels + plan.labels.length;
    const { labelOffsets } = plan;
    memory.bytes.set(new Uint8Array(labelOffsets.buffer, labelOffsets.byteOffset, labelOffsets.byteLength), at);
    memory.bytes.set(plan.labels, this.#labels);
    memory.bytes.set(modes, this.#modes);
  }

  static tableBytes({ labelOffsets, labels, kinds }: RecordPlan): number {
    const bytes = labelOffsets.byteLength + labels.length + kinds.length + SLACK_BYTES;
    return Math.ceil(bytes / WORD_BYTES) * WORD_BYTES;
  }

  /** True when the cells and the place to write to are in its memory. */
  serves(cells: Int32Array, to: Uint8Array): boolean {
    return cells === this.#memory.cells && to === this.#memory.bytes;
  }

  /** Writes cells [k, used) to `at` while they are plain; returns the first that is not. `written` is behind them. */
  write(k: number, used: number, at: number): number {
    return this.#memory.writeCells(k, used, this.#modes, this.#labels, this.#offsets, at);
  }

  get written(): number {
    return this.#memory.written;
  }
}
