import { DOUBLE, LIST_DOUBLE, LIST_LONG, LIST_LONG_WIDE, LIST_STRING, LONG, LONG_WIDE, STRING } from './evidence.ts';

/**
 * The closed set of column types, a narrower one before every type that it can widen to: a column has the first that
 * holds all its cells (`typeOf`). `string` holds every cell and is the last.
 */
export const COLUMN_TYPES = [
  'boolean',
  'long',
  'double',
  'date',
  'datetime',
  'long[]',
  'double[]',
  'string[]',
  'string',
] as const;

export type ColumnType = (typeof COLUMN_TYPES)[number];

export function isColumnType(text: unknown): text is ColumnType {
  return typeof text === 'string' && (COLUMN_TYPES as readonly string[]).includes(text);
}

/** The classes of cells that a column has, as a set of bits. Sets join by union, so that no order matters. */
export type Evidence = number;

/** For the bit of each element, the bit of a list with such an element. A list with any other number is text. */
export const LIST_OF: ReadonlyMap<number, number> = new Map([
  [LONG, LIST_LONG],
  [LONG_WIDE, LIST_LONG_WIDE],
  [DOUBLE, LIST_DOUBLE],
  [STRING, LIST_STRING],
]);
