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
  readonly #head: number;
  readonly #headEnd: number;

  /** Puts the tables at `at`; they take `tableBytes`. `modes`: per column, of cell-plan.ts; `head`: what each line begins with. */
  constructor(memory: CsvMemory, at: number, plan: RecordPlan, modes: Uint8Array, head: Uint8Array) {
    this.#memory = memory;
    this.#offsets = at;
    this.#labels = at + plan.labelOffsets.byteLength;
    this.#modes = this.#labels + plan.labels.length;
    this.#head = this.#modes + modes.length;
    this.#headEnd = this.#head + head.length;
    memory.bytes.set(head, this.#head);
    const { labelOffsets } = plan;
    memory.bytes.set(new Uint8Array(labelOffsets.buffer, labelOffsets.byteOffset, labelOffsets.byteLength), at);
    memory.bytes.set(plan.labels, this.#labels);
    memory.bytes.set(modes, this.#modes);
  }

  static tableBytes({ labelOffsets, labels, kinds }: RecordPlan, head: Uint8Array): number {
    const bytes = labelOffsets.byteLength + labels.length + kinds.length + head.length + SLACK_BYTES;
    // Stryker disable next-line ArithmeticOperator: more room than the tables need changes no line
    return Math.ceil(bytes / WORD_BYTES) * WORD_BYTES;
  }

  /** True when the cells are listed in its memory. */
  lists(cells: Int32Array): boolean {
    // Stryker disable next-line ConditionalExpression,EqualityOperator: TypeScript writes the same text
    return cells === this.#memory.cells;
  }

  /** Writes cells [k, used) to `at` while they are plain; returns the first that is not. `written` is behind them. */
  write(k: number, used: number, at: number): number {
    return this.#memory.writeCells(k, used, this.#modes, this.#labels, this.#offsets, at);
  }

  writeHead(at: number): number {
    return this.#memory.copyBytes(this.#head, this.#headEnd, at);
  }

  /** Writes [start, end) of its memory as a JSON string. */
  writeText(start: number, end: number, at: number): number {
    return this.#memory.writeText(start, end, at);
  }

  /** True when the bytes are its memory's. */
  holds(bytes: Uint8Array): boolean {
    return bytes === this.#memory.bytes;
  }

  get written(): number {
    return this.#memory.written;
  }
}
