// The numbers that TypeScript shares with the functions of assembly/: AssemblyScript compiles this file too.

/** Flags of a cell: written in quotes; with doubled quotes inside; unquoted with a bare CR inside. */
export const QUOTED = 1;
export const DOUBLED = 2;
export const BARE_CR = 4;
/** The column of a cell is `cells[k] >> COLUMN_SHIFT`; its flags are in the bits below. */
export const COLUMN_SHIFT = 3;
export const FLAG_BITS = 7;
/** Number of entries in `cells` for each filled cell. */
export const STRIDE = 3;

/** Maximum number of columns of a header, which bounds the memory of every reader; no service has so many. */
export const MAX_COLUMNS = 20_000;

/**
 * Entries of `CsvMemory.info`: of the row that was read or edited the entries used in `cells`; of the row that was read
 * the number of its cells, the end of its text and its flags joined; the end of what `writeCells` wrote; the end of the
 * jobs.
 */
export const USED = 0;
export const WIDTH = 1;
export const CONTENT_END = 2;
export const FLAGS = 3;
export const OUT_END = 4;
export const JOBS_END = 5;

/** Actions on the cells of a column: they stay, each value is replaced by its hash, or the column is dropped. */
export const KEEP = 0;
export const HASH = 1;
export const DROP = 2;
/** Does the same as HASH, but keeps the text `null`, which is no value there. */
export const HASH_BUT_NULL = 3;

/**
 * Modes of a column: each filled cell is examined, or only counted, since its evidence can change no more. Higher modes
 * are those of src/cells/columns/columns.ts, and SIMD leaves their cells to it.
 */
export const EXAMINED = 0;
export const COUNTED = 1;
/**
 * The words of a column, and their number: filled cells, mode, known evidence, and of its first and its last time the
 * microsecond, and the second from 1970-01-01 00:00 of the wall clock, a double.
 */
export const FILLED = 0;
export const MODE = 1;
export const KNOWN = 2;
export const FIRST_MICRO = 3;
export const LAST_MICRO = 4;
export const FIRST_SECOND = 6;
export const LAST_SECOND = 8;
export const COLUMN_WORDS = 10;
/** Number of cached wall-clock hours, from 1970-01-01 00:00 on, each in the slot of its last bits. */
export const HOUR_SLOTS = 256;

/** How the cells of a column become JSON: not at all, as text, as they are. */
export const SKIP = 0;
export const TEXT = 1;
export const COPY = 2;
/** Datetimes without instants, booleans and lists whose items are copied; all cells fit. */
export const DATETIME = 3;
export const BOOLEAN = 4;
export const LIST = 5;

/*
 * The parts of `CsvMemory.bytes`, by the index at which each begins, which is its address for WebAssembly too: results
 * (`info`), the cells of a row, cached hours, what is known of columns; where columns are edited the actions and
 * positions of columns, tables of SHA-256 with the states of the key, inner and outer, and four blocks
 * (assembly/edit.ts says what else), jobs. Behind them lie, for a body, the edited rows and the rows as they came; for
 * RECORDs tables, rows and their lines (src/targets/records/record-memory.ts). Pages that nothing touches take no memory.
 */
export const CELLS_AT = 64;
export const HOURS_AT = CELLS_AT + 4 * STRIDE * MAX_COLUMNS;
export const COLUMNS_AT = HOURS_AT + 4 * HOUR_SLOTS;
export const ACTIONS_AT = COLUMNS_AT + 4 * COLUMN_WORDS * MAX_COLUMNS;
export const POSITIONS_AT = ACTIONS_AT + MAX_COLUMNS;
export const TABLES_AT = POSITIONS_AT + 4 * MAX_COLUMNS;
export const INNER_AT = TABLES_AT + 1_408;
export const OUTER_AT = TABLES_AT + 1_440;
export const BLOCKS_AT = TABLES_AT + 1_472;
export const JOBS_AT = TABLES_AT + 2_048;
/** Size of a block of SHA-256 (bytes). */
export const SHA_BLOCK_BYTES = 64;
/** Size of a job, a hash that is still to be written: where its value is, how long it is, where the hash belongs. */
export const JOB_BYTES = 12;
export const MAX_JOBS = 8_192;
export const DATA_AT = JOBS_AT + JOB_BYTES * MAX_JOBS;
