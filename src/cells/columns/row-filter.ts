/** Tells which rows of an export are left out while it is written to the disk. */
export interface RowFilter {
  /** Names of the columns that `drops` wants to see. */
  readonly columns: readonly string[];
  /** True for a cell (UTF-8, decoded, not empty, before columns are hashed) whose row is left out. */
  drops(column: string, bytes: Uint8Array, start: number, end: number): boolean;
}

/** The people who stay forgotten. */
export interface Suppression extends RowFilter {
  /** Number of people on the list. */
  readonly length: number;
}
