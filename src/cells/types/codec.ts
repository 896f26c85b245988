import type { DuckDbScalar, DuckDbType } from './duckdb-types.ts';
import type { CellForms } from './forms.ts';

/** A property of an Airbyte `json_schema`; every property of this program may be null. */
interface JsonSchema {
  readonly type: readonly [string, 'null'];
  readonly format?: 'date' | 'date-time';
  readonly airbyte_type?: 'timestamp_with_timezone' | 'timestamp_without_timezone';
  readonly items?: JsonSchema;
}

/**
 * What a type means in every engine. A cell is its text as UTF-8 bytes, without quotes. SQL is DuckDB's. `expr` is
 * repeated, so that it should be a column name. A cell is read in one of four ways, the cheapest first:
 *
 *     `CAST`                         all cells fit, and have forms for which there is no `uncheckedSql`
 *     `uncheckedSql`                 all cells fit
 *     `checkedSql`                   some cells may not fit: these are rescued
 *     `writeJson`                    for a record, without DuckDB
 */
export interface ColumnCodec {
  /** The forms of the cells that fit. The text `null` is a value if it is among them; else it is absent, and fits. */
  readonly forms: CellForms;
  readonly duckdbType: DuckDbType;
  /** The schema of the type in `discover`, and only of this one: in a configured catalog it means this type. */
  readonly jsonSchema: JsonSchema;
  /** SQL of the value of a text; NULL if that is NULL, empty, absent or does not fit. */
  checkedSql(expr: string): string;
  /** Cheaper SQL of the value of a text, where all texts have these forms, which fit; undefined if `CAST` gives it. */
  uncheckedSql?(expr: string, forms: CellForms): string | undefined;
  /**
   * SQL of the canonical text of a value, without lambdas: `ALTER … USING` fails on them (DuckDB 1.5.6). It is the same
   * whatever narrower type the value had before: that of an integral double is the text of a long.
   */
  textSql(expr: string): string;
  /**
   * Writes the value of a cell that has one and fits as JSON into `out` at byte `at`. Returns the index behind it.
   * There `out` must have `jsonRoom` for the cell.
   */
  writeJson(bytes: Uint8Array, start: number, end: number, out: Uint8Array, at: number): number;
}

export interface ScalarCodec extends ColumnCodec {
  readonly duckdbType: DuckDbScalar;
}

/** Room (bytes) for the JSON of a cell of so many bytes. One byte may become six, as `\u0001`; any time takes 29. */
export const jsonRoom = (cellBytes: number): number => 6 * cellBytes + 40;

/** Writes bytes as they are; the `writeJson` of a type whose cells are JSON. */
export function copyBytes(bytes: Uint8Array, start: number, end: number, out: Uint8Array, at: number): number {
  let to = at;
  for (let i = start; i < end; i++) out[to++] = bytes[i];
  return to;
}
