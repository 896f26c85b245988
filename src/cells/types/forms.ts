// A form is how the text of a cell is written: as an integer, as a date, as a list of strings. A type names the forms
// that fit it (`ColumnCodec.forms`), so the forms of cells decide the type of a column. DATETIME_BEYOND only marks one.
//
// Every place stores the bits with its columns: a new one is added at the end, none is renumbered. Bits 2 and 11 are
// free; bits 13 to 15 are `listOf` bits 3 to 5.

/** The forms of a cell, or of all cells of a column, as a set of bits. Sets join by union, so that no order matters. */
export type CellForms = number;

/** The text `null`. */
export const NULL_TEXT = 1 << 0;
/** `TRUE`, `FALSE`, `true` or `false`. */
export const BOOL = 1 << 1;
/** An integer that a double holds exactly. */
export const LONG = 1 << 3;
/** A 64-bit integer that a double would round. */
export const LONG_WIDE = 1 << 4;
/** A number with a dot whose digits are those of the shortest text of its double. */
export const DOUBLE = 1 << 5;
/** `yyyy-MM-dd`. */
export const DATE = 1 << 6;
/** `yyyy.M.d H:mm`. */
export const DATETIME_DOT = 1 << 7;
/** `yyyy-MM-dd HH:mm:ss`, a space or `T` between, up to six digits of fraction. */
export const DATETIME_DASH = 1 << 8;
/** DATETIME_DASH with a UTC offset: `Z`, `±HH:MM` or `±HHMM`. */
export const DATETIME_OFFSET = 1 << 9;
/** Added to a date or datetime: in the configured zone its instant leaves the years 1 to 9999. */
export const DATETIME_BEYOND = 1 << 10;
/** `[]` and `[null]`: a list of any type. */
export const LIST_EMPTY = 1 << 12;
/** The form of a list of numbers of these forms. */
export const listOf = (numberForms: CellForms): CellForms => numberForms << 10;
/** A list of strings. */
export const LIST_STRING = 1 << 16;
/** Any other text. */
export const STRING = 1 << 17;
