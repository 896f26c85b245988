// This folder: the column types. `forms.ts` lists the ways in which a cell is written, and comes first. `codec.ts` says
// what a type is: the forms of its cells, and their values in SQL and JSON. Related types share a file; `wall-time.ts`
// and `zone.ts` read times. This file is the table of all types. From it follow the forms of a cell, the type of a
// column, and what it widens to. `duckdb-types.ts` names the types of DuckDB.

import { HYPHEN, isNullText, NINE, OPEN_BRACKET, ZERO } from '../../base/ascii.ts';
import { systemError } from '../../base/errors.ts';
import { castSql } from '../../base/sql.ts';
import { BOOLEAN_CODEC, booleanForm } from './boolean.ts';
import type { ColumnCodec } from './codec.ts';
import { DATE_CODEC, instantCodec, WALL_TIME_CODEC } from './datetime.ts';
import { type CellForms, DATETIME_BEYOND, DATETIME_OFFSET, NULL_TEXT, STRING } from './forms.ts';
import { DOUBLE_LIST_CODEC, LONG_LIST_CODEC, listForms, STRING_LIST_CODEC } from './lists.ts';
import { DOUBLE_CODEC, LONG_CODEC, numberForm } from './numbers.ts';
import { STRING_CODEC } from './string.ts';
import { WallTime } from './wall-time.ts';
import { isInYearRange, toInstantSql, type Zone } from './zone.ts';

/**
 * The column types, a narrower one before every type that it can widen to. `widerTypes` are those, the nearest first.
 * A column has the first type that all its cells fit (`narrowestType`). Every cell fits `string`, the last.
 */
export const TYPES = {
  boolean: { codec: BOOLEAN_CODEC, widerTypes: ['string'] },
  long: { codec: LONG_CODEC, widerTypes: ['double', 'string'] },
  double: { codec: DOUBLE_CODEC, widerTypes: ['string'] },
  date: { codec: DATE_CODEC, widerTypes: ['datetime', 'string'] },
  // By a wall clock; with a zone it has `instantCodec`.
  datetime: { codec: WALL_TIME_CODEC, widerTypes: ['string'] },
  // A list without a value is `long[]`, and can become `string[]`. A `double[]` has a number, which is no string.
  'long[]': { codec: LONG_LIST_CODEC, widerTypes: ['double[]', 'string[]', 'string'] },
  'double[]': { codec: DOUBLE_LIST_CODEC, widerTypes: ['string'] },
  'string[]': { codec: STRING_LIST_CODEC, widerTypes: ['string'] },
  string: { codec: STRING_CODEC, widerTypes: [] },
} as const satisfies Readonly<Record<string, { readonly codec: ColumnCodec; readonly widerTypes: readonly string[] }>>;

export type ColumnType = keyof typeof TYPES;

export const COLUMN_TYPES = Object.keys(TYPES) as readonly ColumnType[];

export const isColumnType = (text: unknown): text is ColumnType =>
  typeof text === 'string' && Object.hasOwn(TYPES, text);

/** What a type means. With the zone of a place its datetimes are instants; nothing else depends on a zone. */
export const codecOf = (type: ColumnType, zone: Zone | undefined): ColumnCodec =>
  type === 'datetime' && zone !== undefined ? instantCodec(zone) : TYPES[type].codec;

/** Tells in which forms cells are written, one cell after the other. */
export class CellClassifier {
  /** The time of the cell that was classified last, if it is a date or datetime. */
  readonly time = new WallTime();

  /**
   * The forms of one cell: usually one, STRING if there is no other. The cell's bytes are valid UTF-8, without quotes,
   * and not empty.
   */
  formsOf(bytes: Uint8Array, start: number, end: number, zone: Zone | undefined): CellForms {
    const c = bytes[start];
    if ((c >= ZERO && c <= NINE) || c === HYPHEN) {
      const form = this.time.read(bytes, start, end);
      if (form === 0) return numberForm(bytes, start, end) || STRING;
      return zone === undefined ? form : form | zoneForms(form, this.time, zone);
    }
    if (c === OPEN_BRACKET) return listForms(bytes, start, end) || STRING;
    return isNullText(bytes, start, end) ? NULL_TEXT : booleanForm(bytes, start, end) || STRING;
  }
}

/** The forms that the zone adds to a date or datetime: nothing, or DATETIME_BEYOND. */
function zoneForms(form: CellForms, time: WallTime, zone: Zone): CellForms {
  const utc = form === DATETIME_OFFSET ? time.seconds - time.offset : zone.toUtc(time.seconds);
  return isInYearRange(utc) ? 0 : DATETIME_BEYOND;
}

/** True if all cells of these forms fit; the text `null` is a value or absent, and fits. */
export const fits = (codec: ColumnCodec, forms: CellForms): boolean => (forms & ~codec.forms & ~NULL_TEXT) === 0;

/** SQL that is TRUE if a text fits or is absent, else FALSE; never NULL. */
export const fitsSql = (codec: ColumnCodec, expr: string): string =>
  `(${expr} IS NULL OR ${expr} IN ('', 'null') OR ${codec.checkedSql(expr)} IS NOT NULL)`;

/** The type of a column: the first of `COLUMN_TYPES` that all cells fit; undefined while all are absent. */
export function narrowestType(forms: CellForms, zone: Zone | undefined): ColumnType | undefined {
  if ((forms & ~NULL_TEXT) === 0) return undefined;
  return COLUMN_TYPES.find((type) => fits(codecOf(type, zone), forms));
}

/** The first type that all these cells fit, of `from` and the types that it can widen to. */
export const widenedType = (from: ColumnType, forms: CellForms, zone: Zone | undefined): ColumnType =>
  [from, ...TYPES[from].widerTypes].find((type) => fits(codecOf(type, zone), forms)) ?? 'string';

/** True if all values of a column of type `from` with these cells can become values of type `to`. */
export function canWiden(from: ColumnType, to: ColumnType, forms: CellForms, zone: Zone | undefined): boolean {
  return from === to || (widensTo(from, to) && fits(codecOf(to, zone), forms));
}

const widensTo = (from: ColumnType, to: ColumnType): boolean => TYPES[from].widerTypes.some((type) => type === to);

/** SQL that converts a value to a wider type, as `ALTER … SET DATA TYPE … USING` needs it. */
export function widenSql(expr: string, from: ColumnType, to: ColumnType, zone: Zone | undefined): string {
  if (from === to) return expr;
  if (!widensTo(from, to)) throw systemError(`A column of type ${from} cannot become ${to}.`);
  if (to === 'string') return codecOf(from, zone).textSql(expr);
  const value = castSql(expr, TYPES[to].codec.duckdbType);
  return to === 'datetime' && zone !== undefined ? toInstantSql(value, zone) : value;
}
