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

/**
 * Entries of `CsvMemory.info`: of the row that was read or edited the entries used in `cells`; of the row that was read
 * the number of its cells, the end of its text and its flags joined; the end of what `writeCells` wrote; the end of the
 * jobs, an index in `CsvMemory.bytes`; the number of cells that `observeCells` left to TypeScript, which follow it.
 */
export const USED = 0;
export const WIDTH = 1;
export const CONTENT_END = 2;
export const FLAGS = 3;
export const OUT_END = 4;
export const JOBS_END = 5;
export const LISTED = 6;

/** Actions on the cells of a column: they stay, each value is replaced by its hash, or the column is dropped. */
export const KEEP = 0;
export const HASH = 1;
export const DROP = 2;
/** Does the same as HASH, but keeps the text `null`, which is no value there. */
export const HASH_BUT_NULL = 3;

/**
 * Indices in `CsvMemory.bytes` of what is in front of the rows if columns are edited: tables of SHA-256, with the
 * states of the key, inner and outer, and four blocks (assembly/edit.ts says what else); jobs; actions and positions of
 * columns; edited rows.
 */
export const INNER_AT = 1_408;
export const OUTER_AT = 1_440;
export const BLOCKS_AT = 1_472;
export const JOBS_AT = 4_096;
export const ACTIONS_AT = 102_400;
export const POSITIONS_AT = 122_880;
export const EDITED_AT = 203_264;
/** Size of a block of SHA-256. */
export const BLOCK_BYTES = 64;
/** Size of a job, a hash that is still to be written: address and length of the value, address of the hash. */
export const JOB_BYTES = 12;

/**
 * Which cells of a column are examined: all, or none. With a higher number `observeCells` leaves them to TypeScript.
 */
export const OPEN = 0;
export const CLOSED = 1;
/**
 * The words of a column that is examined, and their number as a power of two: filled cells, mode, known evidence; first
 * and last time, in microseconds of 64 bits.
 */
export const FILLED = 0;
export const MODE = 1;
export const KNOWN = 2;
export const FIRST = 4;
export const COLUMN_WORDS_SHIFT = 3;
/**
 * Number of cached wall-clock hours. Each is in the slot of its last bits: hours from 1970-01-01 00:00 on, offset (s).
 */
export const HOUR_SLOTS = 256;

/** How the cells of a column become JSON: not at all, as text, as they are. */
export const SKIP = 0;
export const TEXT = 1;
export const COPY = 2;
/** Datetimes without instants, booleans and lists whose items are copied; all cells fit. */
export const DATETIME = 3;
export const BOOLEAN = 4;
export const LIST = 5;
