/** Tells which rows of an export are left out while it is written to the disk. */
export interface RowFilter {
  /** Names of the columns that `drops` wants to see. */
  readonly columns: readonly string[];
  /** True for a cell (UTF-8, decoded, not empty, before columns are hashed) whose row is left out. */
  drops(column: string, bytes: Uint8Array, start: number, end: number): boolean;
}

/** How much of a suppression list a place was purged with: its first `length` entries, and a hash over them. */
export interface SuppressionVersion {
  /** SHA-256 (hex). */
  readonly head: string;
  readonly length: number;
}

/** The people who stay forgotten. */
export interface Suppression extends RowFilter {
  /** The whole list. */
  readonly version: SuppressionVersion;
  /** True if the first entries of the list are those of `version`. */
  extends(version: SuppressionVersion): boolean;
}
