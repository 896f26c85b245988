import type { ColumnType, Evidence } from '../types/type.ts';

/** Where a column belongs, from its name alone. */
export const COLUMN_GROUPS = ['unified_id', 'system', 'standard', 'standard_item', 'custom_item', 'custom'] as const;
export type ColumnGroup = (typeof COLUMN_GROUPS)[number];

/** The first cell that showed something new of its column. */
export interface FirstSeen {
  /** The bits it added. */
  readonly evidence: Evidence;
  /** Its row; the header is row 1. */
  readonly row: number;
  /** Digits as 9, letters as a, at most 32 characters: all that may be logged of a cell. */
  readonly shape: string;
}

/** What one export showed of one column, over every one of its cells. */
export interface ColumnScan {
  /** The name as the export wrote it. */
  readonly source: string;
  readonly group: ColumnGroup;
  /** True where hashes took the place of the values (S47): then it is a string column, whatever its name. */
  readonly hashed?: true;
  /**
   * Bits of `src/types/type.ts`. Once STRING is among them, others may be missing; a declared string column has
   * STRING alone, as soon as a cell is there.
   */
  readonly evidence: Evidence;
  /**
   * The declared type of a system or standard column, else the type that the evidence gives; absent while every cell is
   * absent.
   */
  readonly type?: ColumnType;
  /** Cells that are not empty (the text `null` counts). */
  readonly filled: number;
  /** Declared (system, standard) columns only: cells that do not fit the declared type. */
  readonly misfits: number;
  /**
   * Datetime columns: first and last time written, as ISO text without a zone (`2026-01-02T03:04:00.000`, six digits where
   * there are micros), in the zone's wall clock, times that it skips included; the end-day proof and the SQL of zones use them.
   */
  readonly first?: string;
  readonly last?: string;
  /** In the order of rows; for the log line that says what widened a column. */
  readonly seen?: readonly FirstSeen[];
}
