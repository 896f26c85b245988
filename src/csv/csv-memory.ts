import CSV_MODULE from './csv.wasm';
import { LISTED, OUT_END } from './layout.ts';

/** The part of the standard's interface that is used here; the types of Node 20 lack it. */
interface WasmMemory {
  readonly buffer: ArrayBuffer;
  grow(pages: number): number;
}
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object, imports: object) => { readonly exports: unknown };
  readonly Memory: new (size: { readonly initial: number }) => WasmMemory;
};

/**
 * The exports of assembly/index.ts, compiled to `csv.wasm` by `npm run wasm`. Their many parameters are numbers, since
 * WebAssembly passes no objects. Positions are addresses in the memory; `base` is the address of `CsvMemory.bytes`.
 */
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
    newWidth: number,
    out: number,
  ): number;
  prepareKey(base: number, isOuter: number): void;
  hashJobs(base: number): void;
}

/*
 * One memory, from byte 0 on: results (`info`), the cells of a row (`cells`), what is known of columns (`observed`),
 * and `bytes`, which begin at DATA_AT. In `bytes` lie, for a body: where columns are edited what `EditMemory` needs and
 * the edited rows, then the rows as they came; for RECORDs: rows, tables and lines
 * (src/sinks/records/record-memory.ts).
 */
const PAGE_BYTES = 65_536;
/** Number of entries in `info`: those of layout.ts, the last followed by two cells. */
const INFO_NUMBERS = LISTED + 3;
const CELLS_AT = 64;
/** Number of entries for cells: room for 10,000 filled cells a row. */
const CELL_NUMBERS = 30_000;
const OBSERVED_AT = CELLS_AT + CELL_NUMBERS * 4;
/** Address of `bytes`. */
const DATA_AT = 3 * PAGE_BYTES;
/** Number of bytes behind `bytes` that vector loads and stores may touch. */
const SLACK_BYTES = 64;
/** Maximum number of memories that are kept for further use: the garbage collection would free them late. */
const MAX_IDLE = 8;
/** Maximum size of such a memory; larger ones are left to the garbage collection. */
const MAX_IDLE_BYTES = 4 * 1024 * 1024;

const idle: CsvMemory[] = [];
/** The module, compiled once in a process. */
let compiled: object | undefined;

/**
 * Memory that TypeScript and the SIMD functions of assembly/csv.ts share. Every position is an index in `bytes`. `grow`
 * replaces all views, so that no view may be used across a call of it.
 */
export class CsvMemory {
  bytes = new Uint8Array(0);
  /** The cells of a row, as RowTokenizer lists them. */
  cells = new Int32Array(0);
  /** Results of the functions; layout.ts says which. */
  info = new Int32Array(0);
  /** The part that src/schema/plain-columns.ts uses; `observedAt` is its address. */
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

  /** Opens a memory of at least `size` bytes; undefined without SIMD: then TypeScript does all the work. */
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

  /** Addresses of `bytes`, `cells` and `observed`, for the SIMD functions. */
  readonly base = DATA_AT;
  readonly cellsAt = CELLS_AT;
  readonly observedAt = OBSERVED_AT;

  /** Makes `bytes` at least `size` long; the contents stay. */
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

  /** Reads the row at `at` into `cells` and `info`; returns a negative number if TypeScript must read it. */
  nextRow(at: number, end: number): number {
    return this.functions.nextRow(DATA_AT, at, end, CELLS_AT, CELL_NUMBERS);
  }

  /** Writes cells [k, used) to `out` up to `written`, while they are plain; returns the index of the first other. */
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

  /** Copies [start, end) to `out`; returns the index behind the copy. */
  copyBytes(start: number, end: number, out: number): number {
    return this.functions.copyBytes(DATA_AT + start, end - start, DATA_AT + out) - DATA_AT;
  }

  /** Writes [start, end), valid UTF-8, to `out` as a JSON string; returns the index behind it. */
  writeText(start: number, end: number, out: number): number {
    return this.functions.writeText(DATA_AT + start, end - start, DATA_AT + out) - DATA_AT;
  }

  /** The index behind what the last `writeCells` wrote. */
  get written(): number {
    return this.info[OUT_END] - DATA_AT;
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
