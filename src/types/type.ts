/**
 * The closed set of column types, a narrower one before every type that it can widen to: a column has the first that holds
 * all its cells (`typeOf`). `string` holds every cell and is the last.
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

/**
 * What the cells of a column were seen to be: a set of bits, one per class of cell. Sets join by union, so the order in
 * which cells, windows or runs are seen can never change the type that follows from them (`typeOf`).
 */
export type Evidence = number;
