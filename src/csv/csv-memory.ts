import CSV_MODULE from './csv.wasm';
import { BLOCK_BYTES, BLOCKS_AT, INNER_AT, JOB_BYTES, LISTED, OUT_END, OUTER_AT } from './layout.ts';

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
    actions: number,
    positions: number,
    newWidth: number,
    out: number,
    jobs: number,
    info: number,
  ): number;
  prepareKey(tables: number, isOuter: number): void;
  hashJobs(base: number, jobs: number, end: number): void;
}

/*
 * One memory, from byte 0 on: results (`info`), the cells of a row (`cells`), what is known of columns (`observed`), and
 * `bytes`, which begin at DATA_AT. In `bytes` lie, for a body: where columns are edited the tables of `EditMemory` and
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

/*
 * The parts of `CsvMemory.bytes` in front of the rows, if columns are edited, by their index: tables of SHA-256
 * (assembly/edit.ts says what is where), jobs, actions and positions of columns, then the edited rows.
 */
const INFO_AT = 2_048;
const JOBS_AT = 4_096;
const ACTIONS_AT = 102_400;
const POSITIONS_AT = 122_880;
/** Index of the first edited row. */
export const EDITED_AT = 203_264;

export const MAX_JOBS: number = (ACTIONS_AT - JOBS_AT) / JOB_BYTES;
const INNER_PAD = 0x36;
const OUTER_PAD = 0x5c;
const ROUNDS = 64;
const STATE_WORDS = 8;

/** The functions of assembly/edit.ts on the memory that holds the rows. Every position is an index in its `bytes`. */
export class EditMemory {
  readonly #memory: CsvMemory;
  #jobs = JOBS_AT;
  #columns = 0;

  /** `key`: the key of the hashes as a block of SHA-256, made as HMAC does; undefined if nothing is hashed. */
  constructor(memory: CsvMemory, key: Uint8Array | undefined) {
    this.#memory = memory;
    if (key !== undefined) this.#prepare(key);
  }

  /** Number of hashes that are still to be written. */
  get jobs(): number {
    return (this.#jobs - JOBS_AT) / JOB_BYTES;
  }

  /** Sets the action for each column, and its position among the columns that stay. */
  setColumns(actions: Uint8Array, positions: Int32Array): void {
    this.#columns = actions.length;
    this.#memory.bytes.set(actions, ACTIONS_AT);
    const { buffer, byteOffset } = this.#memory.bytes;
    new Int32Array(buffer, byteOffset + POSITIONS_AT, this.#columns).set(positions);
  }

  /**
   * Writes the row [start, contentEnd) to `out`; returns the index behind it, without a line end. `used` is then the
   * number of entries of the cells that stay. Returns a negative number for a row that TypeScript must edit. The hashes
   * are only there after `hash`.
   */
  editRow(used: number, start: number, contentEnd: number, width: number, newWidth: number, out: number): number {
    const { base, cellsAt, functions } = this.#memory;
    const end = functions.editRow(
      base,
      cellsAt,
      used,
      start,
      contentEnd,
      width,
      base + ACTIONS_AT,
      base + POSITIONS_AT,
      newWidth,
      base + out,
      base + this.#jobs,
      base + INFO_AT,
    );
    if (end >= 0) this.#jobs = this.#number(INFO_AT + 4) - base;
    return end;
  }

  /** True for the list of cells that `editRow` works on; a row of very many cells has another list. */
  ownsCells(cells: Int32Array): boolean {
    return cells === this.#memory.cells;
  }

  /** Number of entries of the cells that stay, after `editRow`. */
  get used(): number {
    return this.#number(INFO_AT);
  }

  /** Writes all hashes that are still missing. */
  hash(): void {
    const { base, functions } = this.#memory;
    if (this.#jobs > JOBS_AT) functions.hashJobs(base, base + JOBS_AT, base + this.#jobs);
    this.#jobs = JOBS_AT;
  }

  /** Erases the key. */
  release(): void {
    this.#memory.bytes.fill(0, 0, JOBS_AT);
  }

  #number(at: number): number {
    const { bytes } = this.#memory;
    return bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24);
  }

  #prepare(key: Uint8Array): void {
    const { bytes, base, functions } = this.#memory;
    const words = (at: number, count: number) => new Int32Array(bytes.buffer, bytes.byteOffset + at, count);
    const primes = firstPrimes(ROUNDS);
    words(0, ROUNDS).set(primes.map((prime) => fraction(Math.cbrt(prime))));
    const initial = primes.slice(0, STATE_WORDS).map((prime) => fraction(Math.sqrt(prime)));
    for (const [isOuter, pad] of [INNER_PAD, OUTER_PAD].entries()) {
      words(isOuter === 0 ? INNER_AT : OUTER_AT, STATE_WORDS).set(initial);
      for (let i = 0; i < BLOCK_BYTES; i++) bytes[BLOCKS_AT + i] = key[i] ^ pad;
      functions.prepareKey(base, isOuter);
    }
  }
}

/** The first 32 bits of the fraction of a number; the constants of SHA-256 are such bits of roots of primes. */
const fraction = (value: number): number => ((value % 1) * 2 ** 32) | 0;

function firstPrimes(count: number): number[] {
  const primes: number[] = [];
  for (let n = 2; primes.length < count; n++) if (primes.every((prime) => n % prime !== 0)) primes.push(n);
  return primes;
}
