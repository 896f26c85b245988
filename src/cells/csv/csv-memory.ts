import CSV_MODULE from './csv.wasm';
import {
  CELLS_AT,
  COLUMN_WORDS,
  COLUMNS_AT,
  DATA_AT,
  HOUR_SLOTS,
  HOURS_AT,
  JOBS_END,
  MAX_COLUMNS,
  STRIDE,
} from './layout.ts';

/** The part of the standard's interface that is used here; the types of Node 20 lack it. */
interface WasmMemory {
  readonly buffer: ArrayBuffer;
  grow(pages: number): void;
}
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object, imports: object) => { readonly exports: unknown };
  readonly Memory: new (size: { readonly initial: number }) => WasmMemory;
};

/**
 * The exports of assembly/index.ts, compiled to `csv.wasm` by `npm run wasm`, which say what they do. Their parameters
 * are numbers, since WebAssembly passes no objects; all positions are indices of `CsvMemory.bytes`. A result from 2 GiB
 * on is negative, as one is that leaves the work to TypeScript.
 */
interface CsvFunctions {
  nextRow(at: number, end: number): number;
  writeCells(k: number, used: number, modes: number, labels: number, offsets: number, out: number): number;
  copyBytes(from: number, length: number, out: number): number;
  writeText(from: number, length: number, out: number): number;
  observeCells(k: number, used: number, hasZone: boolean): number;
  editRow(used: number, start: number, contentEnd: number, width: number, newWidth: number, out: number): number;
  prepareKey(isOuter: boolean): void;
  hashJobs(): void;
}

/** The functions of a machine without SIMD: each leaves all of its work to TypeScript. */
const NO_FUNCTIONS: CsvFunctions = {
  nextRow: () => -1,
  writeCells: (k) => k,
  copyBytes: () => -1,
  writeText: () => -1,
  observeCells: (k) => k,
  editRow: () => -1,
  prepareKey() {},
  hashJobs() {},
};

const PAGE_BYTES = 65_536;
/** Maximum size of a memory in pages: 4 GiB. */
const MAX_PAGES = 65_536;
/** Number of bytes behind `bytes` that vector loads and stores may touch. */
const SLACK_BYTES = 64;
/**
 * Maximum size of a memory that is kept for further use, and of all such memories together. Others are left to the
 * garbage collection, which frees them late. The lines of a block of short cells, whose names are longer, take 8 MB.
 */
const MAX_KEPT_BYTES = 16 * 1024 * 1024;
const MAX_IDLE_BYTES = 40 * 1024 * 1024;

const idle: CsvMemory[] = [];
/** The module, compiled once in a process. */
let compiled: object | undefined;

/** The memory of a machine without SIMD. */
class HeapMemory implements WasmMemory {
  buffer: ArrayBuffer;

  constructor(pages: number) {
    this.buffer = new ArrayBuffer(pages * PAGE_BYTES);
  }

  grow(pages: number): void {
    const larger = new Uint8Array(this.buffer.byteLength + pages * PAGE_BYTES);
    larger.set(new Uint8Array(this.buffer));
    this.buffer = larger.buffer;
  }
}

/**
 * The memory in which rows are read, examined, edited and written: TypeScript shares it with the SIMD functions of
 * assembly/. layout.ts says what lies where. `grow` replaces all views, so that no view may be used across a call of
 * it.
 */
export class CsvMemory {
  bytes = new Uint8Array(0);
  /** The cells of a row, as RowTokenizer lists them. */
  cells = new Int32Array(0);
  /** Results of the functions; layout.ts says which. */
  info = new Int32Array(0);
  /** The wall-clock hours that are cached. */
  hours = new Int32Array(0);
  /** The words of columns, and the same memory as doubles. */
  columns = new Int32Array(0);
  columnDoubles = new Float64Array(0);
  #isIdle = false;
  readonly #memory: WasmMemory;
  readonly functions: CsvFunctions;

  private constructor(memory: WasmMemory, functions: CsvFunctions) {
    this.#memory = memory;
    this.functions = functions;
    this.#renew();
  }

  /** Opens a memory with at least `size` bytes from DATA_AT on. */
  static open(size: number): CsvMemory {
    const memory = idle.pop();
    if (memory !== undefined) {
      memory.#isIdle = false;
      memory.grow(DATA_AT + size);
      return memory;
    }
    try {
      return CsvMemory.#withSimd(size);
    } catch {
      return CsvMemory.withoutSimd(size);
    }
  }

  /** Opens one on the heap, for which TypeScript does all the work. */
  static withoutSimd(size: number): CsvMemory {
    return new CsvMemory(new HeapMemory(pagesOf(DATA_AT + size)), NO_FUNCTIONS);
  }

  static #withSimd(size: number): CsvMemory {
    compiled ??= new WebAssembly.Module(Buffer.from(CSV_MODULE, 'base64'));
    const memory = new WebAssembly.Memory({ initial: pagesOf(DATA_AT + size) });
    const { exports } = new WebAssembly.Instance(compiled, { env: { memory } });
    return new CsvMemory(memory, exports as CsvFunctions);
  }

  /**
   * Makes `bytes` at least `size` long, and then twice as long as before where there can be so much; the contents stay.
   */
  grow(size: number): void {
    if (size <= this.bytes.length) return;
    const pages = this.#memory.buffer.byteLength / PAGE_BYTES;
    this.#memory.grow(Math.max(pagesOf(size), Math.min(2 * pages, MAX_PAGES)) - pages);
    this.#renew();
  }

  /** Keeps the memory for the next `open`; the caller must not use it any more. A second call does nothing. */
  release(): void {
    if (this.#isIdle || this.functions === NO_FUNCTIONS || this.bytes.length > MAX_KEPT_BYTES) return;
    if (idle.reduce((sum, { bytes }) => sum + bytes.length, this.bytes.length) > MAX_IDLE_BYTES) return;
    this.#isIdle = true;
    idle.push(this);
  }

  #renew(): void {
    const { buffer } = this.#memory;
    this.bytes = new Uint8Array(buffer, 0, buffer.byteLength - SLACK_BYTES);
    this.cells = new Int32Array(buffer, CELLS_AT, STRIDE * MAX_COLUMNS);
    this.info = new Int32Array(buffer, 0, JOBS_END + 1);
    this.hours = new Int32Array(buffer, HOURS_AT, HOUR_SLOTS);
    this.columns = new Int32Array(buffer, COLUMNS_AT, COLUMN_WORDS * MAX_COLUMNS);
    this.columnDoubles = new Float64Array(buffer, COLUMNS_AT, (COLUMN_WORDS * MAX_COLUMNS) / 2);
  }
}

const pagesOf = (size: number): number => Math.ceil((size + SLACK_BYTES) / PAGE_BYTES);
