import type { ColumnType, Evidence } from './type.ts';
import type { Zone } from './zone.ts';

/** A property of an Airbyte `json_schema`; every one of ours may be null. */
interface JsonSchema {
  readonly type: readonly [string, 'null'];
  readonly format?: 'date' | 'date-time';
  readonly airbyte_type?: 'timestamp_without_timezone' | 'timestamp_with_timezone';
  readonly items?: JsonSchema;
}

/** An Arrow type in words, for the sink that builds the real one. */
export type ArrowType =
  | { readonly kind: 'bool' | 'int64' | 'float64' | 'date32' | 'utf8' }
  | { readonly kind: 'timestamp'; readonly unit: 'microsecond'; readonly timezone: 'UTC' | null }
  | { readonly kind: 'list'; readonly item: ArrowType };

/**
 * All that a column type is, to every engine. A cell is its text as UTF-8 bytes, quotes undone. It is absent when empty
 * and, but for strings, when it is the text `null`. SQL is DuckDB's; `expr` is a VARCHAR expression that is NULL for an
 * empty cell and is repeated, so give a column name. `sql`, `sqlClean` and `sqlFits` may hold lambdas and belong in a
 * SELECT; `ALTER … USING` takes `sqlText` and `sqlWiden` alone (DuckDB 1.5.6 fails on lambdas there). A zone makes the
 * datetimes instants.
 */
export interface TypeFace {
  readonly type: ColumnType;
  /** True when the cell fits (or is absent). */
  accepts(bytes: Uint8Array, start: number, end: number, zone?: Zone): boolean;
  /**
   * Writes the value of a cell that fits as JSON into `out` from byte `at` on, `null` when it is absent, and returns
   * where it ends. `out` must have room for `jsonBound(end - start)` bytes there.
   */
  writeJson(bytes: Uint8Array, start: number, end: number, out: Uint8Array, at: number, zone?: Zone): number;
  /** DuckDB's name of the type. */
  duckdb(zoned: boolean): string;
  /** The typed value; NULL when the cell is absent or does not fit. */
  sql(expr: string, zone?: Zone): string;
  /** The same, cheaper; an error or a wrong value unless every cell fits and `evidence` is that of all of them. */
  sqlClean(expr: string, evidence: Evidence, zone?: Zone): string;
  /** TRUE when the cell fits or is absent, else FALSE; never NULL. */
  sqlFits(expr: string, zone?: Zone): string;
  /** True when `read_csv` reads a column of this evidence straight into the type, to the same values. */
  native(evidence: Evidence, zoned: boolean): boolean;
  /** The canonical text of a typed expression, as a column that widens to string gets it. */
  sqlText(expr: string, zone?: Zone): string;
  jsonSchema(zoned: boolean): JsonSchema;
  arrow(zoned: boolean): ArrowType;
}

/** The most bytes that `writeJson` writes for a cell of so many bytes. */
export function jsonBound(length: number): number {
  return length * 8 + 40;
}
