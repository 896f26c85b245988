// This folder: SIMD functions for CSV, compiled from assembly/ to WebAssembly.

import { CSV_MODULE } from './csv-module.ts';

/** The part of the standard's interface that is used here: the types of Node 20 do not have it. */
interface WasmMemory {
  readonly buffer: ArrayBuffer;
  grow(pages: number): number;
}
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object, imports: object) => { readonly exports: unknown };
  readonly Memory: new (size: { readonly initial: number }) => WasmMemory;
};

/** What assembly/index.ts exports; positions are those of the memory, `base` is where `CsvMemory.bytes` begins. */
export interface CsvFunctions {
  nextRow(base: number, at: number, end: number, cells: number, capacity: number): number;
  writeCells(
    base: number,
    cells: number,
    k: number,
    used: number,
    modes: number,
    labels: number,
    offsets: number,
    out: number,
  ): number;
  copyBytes(from: number, length: number, out: number): number;
  writeText(from: number, length: number, out: number): number;
  observeCells(base: number, cells: number, k: number, used: number, columns: number, hours: number): number;
  editRow(
    base: number,
    cells: number,
    used: number,
    start: number,
    contentEnd: number,
    width: number,
    actions: number,
    places: number,
    newWidth: number,
    out: number,
    jobs: number,
    info: number,
  ): number;
  prepareKey(tables: number, isOuter: number): void;
  hashJobs(base: number, tables: number, jobs: number, end: number, cache: number, bits: number, scores: number): void;
}

const PAGE_BYTES = 65_536;
/**
 * Numbers in `info`: what `assembly/csv.ts` calls USED, WIDTH, CONTENT_END, FLAGS and OUT_END, then what
 * `assembly/observe.ts` calls LISTED, and two cells.
 */
const INFO_NUMBERS = 8;
const CELLS_AT = 64;
/** Room for 10,000 filled cells a row. */
const CELL_NUMBERS = 30_000;
const OBSERVED_AT = CELLS_AT + CELL_NUMBERS * 4;
/** Where `bytes` begins. */
const DATA_AT = 3 * PAGE_BYTES;
/** What vector loads and stores may touch behind `bytes`. */
const SLACK_BYTES = 64;
/** Memories that are done with and wait to be used again: a collection would free them late. */
const MAX_IDLE = 8;
/** Larger ones are left to the collection. */
const MAX_IDLE_BYTES = 4 * 1024 * 1024;

const idle: CsvMemory[] = [];
/** Compiled once in a process. */
let compiled: object | undefined;

/**
 * Memory that TypeScript and the SIMD functions of assembly/csv.ts work on together. Every position is one in `bytes`.
 * `grow` replaces all views: no view may be used across a call of it.
 */
export class CsvMemory {
  bytes = new Uint8Array(0);
  /** The cells of a row, as RowTokenizer lists them. */
  cells = new Int32Array(0);
  /** Results: used, width, contentEnd and flags of the last row; where `writeCells` ended; cells that `observeCells` lists. */
  info = new Int32Array(0);
  /** Room for what src/schema/plain-columns.ts keeps there; `observedAt` is where it begins. */
  observed = new Int32Array(0);
  #isIdle = false;
  readonly #memory: WasmMemory;
  /** The SIMD functions, on this memory. */
  readonly functions: CsvFunctions;

  private constructor(pages: number) {
    compiled ??= new WebAssembly.Module(Buffer.from(CSV_MODULE, 'base64'));
    this.#memory = new WebAssembly.Memory({ initial: pages });
    const { exports } = new WebAssembly.Instance(compiled, { env: { memory: this.#memory } });
    this.functions = exports as CsvFunctions;
    this.#renew();
  }

  /** At least `size` bytes; undefined where the processor or the system has no such memory: then TypeScript does it all. */
  static open(size: number): CsvMemory | undefined {
    const memory = idle.pop();
    if (memory !== undefined) {
      memory.#isIdle = false;
      memory.grow(size);
      return memory;
    }
    try {
      return new CsvMemory(pagesOf(size));
    } catch {
      return undefined;
    }
  }

  /** Where `bytes` and `cells` begin, for those functions. */
  readonly base = DATA_AT;
  readonly cellsAt = CELLS_AT;
  readonly observedAt = OBSERVED_AT;

  /** Makes `bytes` at least `size` long; what it holds stays. */
  grow(size: number): void {
    const missing = pagesOf(size) - this.#memory.buffer.byteLength / PAGE_BYTES;
    if (missing <= 0) return;
    this.#memory.grow(missing);
    this.#renew();
  }

  /** Keeps the memory for the next `open`; the caller must not use it any more. A second call does nothing. */
  release(): void {
    if (this.#isIdle || idle.length === MAX_IDLE || this.bytes.length > MAX_IDLE_BYTES) return;
    this.#isIdle = true;
    idle.push(this);
  }

  /** Reads the row at `at` into `cells` and `info`; negative when TypeScript must read it. */
  nextRow(at: number, end: number): number {
    return this.functions.nextRow(DATA_AT, at, end, CELLS_AT, CELL_NUMBERS);
  }

  /** Writes cells [k, used) to `out` while they are plain and returns the first that is not; `written` is behind them. */
  writeCells(k: number, used: number, modes: number, labels: number, offsets: number, out: number): number {
    return this.functions.writeCells(
      DATA_AT,
      CELLS_AT,
      k,
      used,
      DATA_AT + modes,
      DATA_AT + labels,
      DATA_AT + offsets,
      DATA_AT + out,
    );
  }

  /** Copies [start, end) to `out` and returns where it ends. */
  copyBytes(start: number, end: number, out: number): number {
    return this.functions.copyBytes(DATA_AT + start, end - start, DATA_AT + out) - DATA_AT;
  }

  /** Writes [start, end), valid UTF-8, to `out` as a JSON string and returns where it ends. */
  writeText(start: number, end: number, out: number): number {
    return this.functions.writeText(DATA_AT + start, end - start, DATA_AT + out) - DATA_AT;
  }

  /** Where the last `writeCells` ended. */
  get written(): number {
    return this.info[4] - DATA_AT;
  }

  #renew(): void {
    const { buffer } = this.#memory;
    this.bytes = new Uint8Array(buffer, DATA_AT, buffer.byteLength - DATA_AT - SLACK_BYTES);
    this.cells = new Int32Array(buffer, CELLS_AT, CELL_NUMBERS);
    this.info = new Int32Array(buffer, 0, INFO_NUMBERS);
    this.observed = new Int32Array(buffer, OBSERVED_AT, (DATA_AT - OBSERVED_AT) / 4);
  }
}

const pagesOf = (size: number): number => Math.ceil((DATA_AT + size + SLACK_BYTES) / PAGE_BYTES);
