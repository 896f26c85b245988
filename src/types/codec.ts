import { isNull, writeNull } from './json-text.ts';
import { absentOr, withoutNullText } from './sql.ts';
import { type ColumnType, type Evidence, NULL_TEXT } from './type.ts';
import type { Zone } from './zone.ts';

/** A property of an Airbyte `json_schema`; every one of ours may be null. */
interface JsonSchema {
  readonly type: readonly [string, 'null'];
  readonly format?: 'date' | 'date-time' | 'time';
  readonly airbyte_type?: `time${'' | 'stamp'}_with${'' | 'out'}_timezone` | `big_${'integer' | 'number'}`;
  readonly items?: JsonSchema;
}

/** DuckDB's types that are no lists, named as DESCRIBE prints them, but for TIMESTAMPTZ; and what table formats call them. */
export const DUCKDB_SCALARS = {
  BOOLEAN: { delta: 'boolean', ducklake: 'boolean' },
  BIGINT: { delta: 'long', ducklake: 'int64' },
  DOUBLE: { delta: 'double', ducklake: 'float64' },
  DATE: { delta: 'date', ducklake: 'date' },
  TIMESTAMP: { delta: 'timestamp_ntz', ducklake: 'timestamp' },
  TIMESTAMPTZ: { delta: 'timestamp', ducklake: 'timestamptz' },
  VARCHAR: { delta: 'string', ducklake: 'varchar' },
} as const;

export type DuckDbScalar = keyof typeof DUCKDB_SCALARS;
export type DuckDbType = DuckDbScalar | `${DuckDbScalar}[]`;

/**
 * How the JSON of a cell that fits and is not `null` follows from its bytes: `text`, as a JSON string; `copy`, as they stand;
 * `list`, without white space between its items; `boolean` and `datetime`, as assembly/csv.ts writes them; `other`, only as
 * `writeJson` does.
 */
export type PlainJson = 'text' | 'copy' | 'list' | 'boolean' | 'datetime' | 'other';

/** SQL that turns a typed expression into one of another type. */
type Conversion = (expr: string, zone: Zone | undefined) => string;

/** The facts of a type that cannot be derived from others. */
interface Facts {
  readonly type: ColumnType;
  /** The evidence that its cells may have beside NULL_TEXT: it takes all cells of a bit, or none. */
  cells(asInstants: boolean): Evidence;
  /** False if a column is inferred to be of this type only while all its cells have one form. */
  readonly mixesForms: boolean;
  duckdb(asInstants: boolean): DuckDbType;
  /** `evidence`: that of all cells of the column. */
  plainJson(asInstants: boolean, evidence: Evidence): PlainJson;
  /** The canonical text of a typed expression. */
  sqlText(expr: string, zone?: Zone): string;
  /** The types other than string that a stored column may become, the nearest first, and how. No lambdas: `ALTER … USING` fails on them (DuckDB 1.5.6). */
  readonly widenings: Readonly<Partial<Record<Exclude<ColumnType, 'string'>, Conversion>>>;
  /**
   * A typed expression of a stored column that becomes string, without lambdas. It gives the text that a
   * direct widening would, whatever types the column had before: a double that is integral is written as a long, and so on (S21).
   */
  readonly widenedText: Conversion;
  /** True when the text that DuckDB casts a value to is that of the cell, so that it finds the cell again. */
  readonly keepsSpelling: boolean;
  /**
   * The least and the greatest value in `inspect`: none, in its JSON alone, or in its table too, where they say more than
   * examples.
   */
  readonly range: 'none' | 'json' | 'table';
  /** In `discover`. A configured catalog that has it asks for this type: no other type has the same. */
  jsonSchema(asInstants: boolean): JsonSchema;
}

/**
 * All that a column type is, to every engine. A cell is its text as UTF-8 bytes, quotes undone. It is absent when empty
 * and, but for strings, when it is the text `null`. SQL is DuckDB's; `expr` is a VARCHAR expression that is NULL for an
 * empty cell and is repeated, so give a column name. With a zone the datetimes are
 * instants, as `asInstants` says where the zone itself does not matter; else they are wall-clock times.
 */
export interface ColumnCodec extends Facts {
  /**
   * Writes the value of a cell that fits as JSON into `out` from byte `at` on, `null` when it is absent, and returns
   * where it ends. `out` must have room there for eight times the bytes of the cell and 40 more.
   */
  writeJson(bytes: Uint8Array, start: number, end: number, out: Uint8Array, at: number, zone?: Zone): number;
  /** The typed value; NULL when the cell is absent or does not fit. */
  sql(expr: string, zone?: Zone): string;
  /** The same, cheaper; an error or a wrong value unless every cell fits and `evidence` is that of all of them. */
  sqlClean(expr: string, evidence: Evidence, zone?: Zone): string;
  /** TRUE when the cell fits or is absent, else FALSE; never NULL. */
  sqlFits(expr: string, zone?: Zone): string;
  /** True when `read_csv` reads a column of this evidence straight into the type, to the same values. */
  native(evidence: Evidence, asInstants: boolean): boolean;
}

/** A type in which the text `null` is absent: what a cell with a value is. */
interface Definition extends Facts {
  /** As `writeJson`. */
  writeValue(bytes: Uint8Array, start: number, end: number, out: Uint8Array, at: number, zone?: Zone): number;
  sql(expr: string, zone?: Zone): string;
  /** As `sqlClean`, of cells that are not `null`. */
  sqlValue(expr: string, evidence: Evidence, zone?: Zone): string;
  /** Evidence of the cells that `read_csv` reads as we do. */
  nativeCells(asInstants: boolean): Evidence;
}

/** The codec of a type in which the text `null` is absent. */
export function codecOf({ writeValue, sqlValue, nativeCells, ...definition }: Definition): ColumnCodec {
  const { sql } = definition;
  return {
    ...definition,
    writeJson(b, start, end, out, at, zone) {
      if (start === end || isNull(b, start, end)) return writeNull(out, at);
      return writeValue(b, start, end, out, at, zone);
    },
    sqlClean(expr, evidence, zone) {
      return sqlValue((evidence & NULL_TEXT) === 0 ? expr : withoutNullText(expr), evidence, zone);
    },
    sqlFits: (expr, zone) => absentOr(expr, sql(expr, zone)),
    native: (evidence, asInstants) => (evidence & ~nativeCells(asInstants)) === 0,
  };
}
