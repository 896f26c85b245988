import { isNull } from '../../base/ascii.ts';
import { type CellForms, NULL_TEXT } from './forms.ts';
import { writeNull } from './json-text.ts';
import type { Zone } from './zone.ts';

/**
 * The column types, a narrower one before every type that it can widen to. A column has the first that holds all its
 * cells (`typeOf`). `string` holds every cell and is the last.
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

/** A property of an Airbyte `json_schema`; every property of this program may be null. */
interface JsonSchema {
  readonly type: readonly [string, 'null'];
  readonly format?: 'date' | 'date-time';
  readonly airbyte_type?: 'timestamp_with_timezone' | 'timestamp_without_timezone';
  readonly items?: JsonSchema;
}

/** The name of a scalar type in Delta, and its type in Arrow as Arrow writes schemas in JSON. */
interface ScalarNames {
  readonly delta: string;
  readonly arrow: { readonly name: string; readonly [parameter: string]: string | number | boolean };
}

/** DuckDB's scalar types, named as DESCRIBE prints them (but for TIMESTAMPTZ), each with its names elsewhere. */
export const DUCKDB_SCALARS = {
  BOOLEAN: { delta: 'boolean', arrow: { name: 'bool' } },
  BIGINT: { delta: 'long', arrow: { name: 'int', bitWidth: 64, isSigned: true } },
  DOUBLE: { delta: 'double', arrow: { name: 'floatingpoint', precision: 'DOUBLE' } },
  DATE: { delta: 'date', arrow: { name: 'date', unit: 'DAY' } },
  TIMESTAMP: { delta: 'timestamp_ntz', arrow: { name: 'timestamp', unit: 'MICROSECOND' } },
  TIMESTAMPTZ: {
    delta: 'timestamp',
    arrow: { name: 'timestamp', unit: 'MICROSECOND', timezone: 'UTC' },
  },
  VARCHAR: { delta: 'string', arrow: { name: 'utf8' } },
} as const satisfies Readonly<Record<string, ScalarNames>>;

export type DuckDbScalar = keyof typeof DUCKDB_SCALARS;
export type DuckDbType = DuckDbScalar | `${DuckDbScalar}[]`;

/** SQL that turns a typed expression into one of another type. */
type Conversion = (expr: string, zone: Zone | undefined) => string;

/**
 * The behaviour of a column type in every engine. A cell is its text as UTF-8 bytes, without quotes. It is absent if it
 * is empty and, except for strings, if it is the text `null`. SQL is DuckDB's. `expr` is a VARCHAR expression that is
 * NULL for an empty cell. It is repeated, so that it should be a column name. With a zone datetimes are instants, else
 * wall-clock times. Where the zone itself does not matter, `asInstants` says which.
 */
export interface ColumnCodec {
  readonly type: ColumnType;
  /** The forms that its cells may have beside NULL_TEXT; all cells of such a form fit. */
  acceptedForms(asInstants: boolean): CellForms;
  duckdb(asInstants: boolean): DuckDbType;
  /** True if the text of a cell that fits, and is not `null`, is its JSON. */
  readonly isJson: boolean;
  /**
   * Writes the value of a cell that fits as JSON into `out` at byte `at`, `null` if it is absent. Returns the index
   * behind it. `out` must have room there for eight times the bytes of the cell and 40 more.
   */
  writeJson(bytes: Uint8Array, start: number, end: number, out: Uint8Array, at: number, zone?: Zone): number;
  /** SQL of the typed value; NULL if the cell is absent or does not fit. */
  sql(expr: string, zone?: Zone): string;
  /** Cheaper SQL of the typed value; wrong unless every cell fits and `forms` is that of all cells. */
  sqlClean(expr: string, forms: CellForms, zone?: Zone): string;
  /** SQL that is TRUE if the cell fits or is absent, else FALSE; never NULL. */
  sqlFits(expr: string, zone?: Zone): string;
  /** True if `read_csv` itself reads a column of these forms into the type, with the same values. */
  native(forms: CellForms, asInstants: boolean): boolean;
  /** SQL of the canonical text of a typed expression. */
  sqlText(expr: string, zone?: Zone): string;
  /**
   * The types other than string that a stored column may become, the nearest first, each with its SQL. The SQL has no
   * lambdas: `ALTER … USING` fails on them (DuckDB 1.5.6).
   */
  readonly widenings: Readonly<Partial<Record<Exclude<ColumnType, 'string'>, Conversion>>>;
  /**
   * SQL that converts a typed expression of a stored column to string, without lambdas. Whatever types the column had
   * before, it gives the text that a direct widening would: that of an integral double is the text of a long.
   */
  readonly widenedText: Conversion;
  /** The schema of the type in `discover`, and only of this one: in a configured catalog it means this type. */
  jsonSchema(asInstants: boolean): JsonSchema;
}

/** A type in which the text `null` is absent: what `codecOf` makes the four members of, for cells with a value. */
interface NullableType extends Omit<ColumnCodec, 'writeJson' | 'sqlClean' | 'sqlFits' | 'native'> {
  /** `writeJson` of a cell with a value. */
  writeValue: ColumnCodec['writeJson'];
  /** `sqlClean` of cells that are not `null`. */
  sqlValue: ColumnCodec['sqlClean'];
  /** The forms of cells that `read_csv` reads as this type does. */
  nativeForms(asInstants: boolean): CellForms;
}

/** The codec of a type in which the text `null` is absent. */
export function codecOf({ writeValue, sqlValue, nativeForms, ...type }: NullableType): ColumnCodec {
  return {
    ...type,
    writeJson(bytes, start, end, out, at, zone) {
      if (start === end || isNull(bytes, start, end)) return writeNull(out, at);
      return writeValue(bytes, start, end, out, at, zone);
    },
    sqlClean(expr, forms, zone) {
      return sqlValue((forms & NULL_TEXT) === 0 ? expr : `nullif(${expr}, 'null')`, forms, zone);
    },
    sqlFits: (expr, zone) => `(${expr} IS NULL OR ${expr} IN ('', 'null') OR ${type.sql(expr, zone)} IS NOT NULL)`,
    native: (forms, asInstants) => (forms & ~nativeForms(asInstants)) === 0,
  };
}
