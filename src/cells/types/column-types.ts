// This folder: the column types. `codec.ts` says what a type is: the forms of its cells, and their values in SQL and
// JSON. Related types share a file. This file is the table of all types. From it follow the forms of a cell, the type
// of a column, and what it widens to.

import { DOT, HYPHEN, isNull, NINE, OPEN_BRACKET, ZERO } from '../../base/ascii.ts';
import { systemError } from '../../base/errors.ts';
import { castSql } from '../../base/sql.ts';
import { BOOLEAN_CODEC, booleanForm } from './boolean.ts';
import { type CivilTime, DATE_LENGTH } from './civil-time.ts';
import type { ColumnCodec } from './codec.ts';
import { DATE_CODEC, instantCodec, WALL_TIME_CODEC } from './datetime.ts';
import { type CellForms, DATETIME_BEYOND, DATETIME_OFFSET, NULL_TEXT, STRING } from './forms.ts';
import { DOUBLE_LIST_CODEC, LONG_LIST_CODEC, listForms, STRING_LIST_CODEC } from './lists.ts';
import { DOUBLE_CODEC, LONG_CODEC, numberForm } from './numbers.ts';
import { STRING_CODEC } from './string.ts';
import { instantSql, isInYears, type Zone } from './zone.ts';

/**
 * The column types, a narrower one before every type that it can widen to. Behind each stand those, the nearest first.
 * A column has the first type that holds all its cells (`typeOf`). `string` holds every cell and is the last.
 */
export const WIDER_TYPES = {
  boolean: ['string'],
  long: ['double', 'string'],
  double: ['string'],
  date: ['datetime', 'string'],
  datetime: ['string'],
  'long[]': ['double[]', 'string[]', 'string'],
  'double[]': ['string'],
  'string[]': ['string'],
  string: [],
} as const satisfies Readonly<Record<string, readonly string[]>>;

export type ColumnType = keyof typeof WIDER_TYPES;

export const COLUMN_TYPES = Object.keys(WIDER_TYPES) as readonly ColumnType[];

export const isColumnType = (text: unknown): text is ColumnType =>
  typeof text === 'string' && Object.hasOwn(WIDER_TYPES, text);

/** A date or datetime begins with so many digits, then a dash or dot. */
const YEAR_DIGITS = 4;

/** The types; a datetime by a wall clock. */
const CODECS: Readonly<Record<ColumnType, ColumnCodec>> = {
  boolean: BOOLEAN_CODEC,
  long: LONG_CODEC,
  double: DOUBLE_CODEC,
  date: DATE_CODEC,
  datetime: WALL_TIME_CODEC,
  'long[]': LONG_LIST_CODEC,
  'double[]': DOUBLE_LIST_CODEC,
  'string[]': STRING_LIST_CODEC,
  string: STRING_CODEC,
};

/** What a type means. With the zone of a place its datetimes are instants; nothing else depends on a zone. */
export const codecOf = (type: ColumnType, zone: Zone | undefined): ColumnCodec =>
  type === 'datetime' && zone !== undefined ? instantCodec(zone) : CODECS[type];

/**
 * The forms of one cell: usually one, STRING if there is no other. The cell's bytes are valid UTF-8, without quotes,
 * and not empty. After a form of a date or datetime, `time` is the cell's.
 */
export function formsOf(
  bytes: Uint8Array,
  start: number,
  end: number,
  zone: Zone | undefined,
  time: CivilTime,
): CellForms {
  const c = bytes[start];
  if ((c >= ZERO && c <= NINE) || c === HYPHEN) {
    const separator = bytes[start + YEAR_DIGITS];
    if (end - start >= DATE_LENGTH && (separator === HYPHEN || separator === DOT)) {
      const form = time.read(bytes, start, end);
      if (form !== 0) return zone === undefined ? form : form | zoneForms(form, time, zone);
    }
    return numberForm(bytes, start, end) || STRING;
  }
  if (c === OPEN_BRACKET) return listForms(bytes, start, end) || STRING;
  return isNull(bytes, start, end) ? NULL_TEXT : booleanForm(bytes, start, end) || STRING;
}

/** The forms that the zone adds to a date or datetime: nothing, or DATETIME_BEYOND. */
function zoneForms(form: CellForms, time: CivilTime, zone: Zone): CellForms {
  const utc = form === DATETIME_OFFSET ? time.seconds - time.offset : zone.toUtc(time.seconds);
  return isInYears(utc) ? 0 : DATETIME_BEYOND;
}

/** True if all cells of these forms fit; the text `null` is a value or absent, and fits. */
export const fits = (codec: ColumnCodec, forms: CellForms): boolean => (forms & ~codec.forms & ~NULL_TEXT) === 0;

/** True if a column of this type holds all cells of these forms. */
const holds = (type: ColumnType, forms: CellForms, zone: Zone | undefined): boolean => fits(codecOf(type, zone), forms);

/** SQL that is TRUE if a text fits or is absent, else FALSE; never NULL. */
export const fitsSql = (codec: ColumnCodec, expr: string): string =>
  `(${expr} IS NULL OR ${expr} IN ('', 'null') OR ${codec.valueSql(expr)} IS NOT NULL)`;

/** True if `CAST` makes the values of cells of these forms: then `read_csv` itself reads them. */
export const canCast = ({ castForms }: ColumnCodec, forms: CellForms): boolean => (forms & ~castForms) === 0;

/** Cheaper SQL of the value of a text, NULL if that is NULL. Wrong unless all texts have these forms, which fit. */
export function uncheckedValueSql(codec: ColumnCodec, expr: string, forms: CellForms): string {
  const text = (forms & NULL_TEXT & ~codec.forms) === 0 ? expr : `nullif(${expr}, 'null')`;
  if (codec.uncheckedSql === undefined || canCast(codec, forms & ~NULL_TEXT)) return castSql(text, codec.duckdbType);
  return codec.uncheckedSql(text, forms);
}

/** The type of a column: the first of `COLUMN_TYPES` that holds all cells; undefined while all are absent. */
export function typeOf(forms: CellForms, zone: Zone | undefined): ColumnType | undefined {
  if ((forms & ~NULL_TEXT) === 0) return undefined;
  return COLUMN_TYPES.find((type) => holds(type, forms, zone));
}

/** The first type that holds all these cells among `from` and the types that it can widen to. */
export const widenedType = (from: ColumnType, forms: CellForms, zone: Zone | undefined): ColumnType =>
  [from, ...WIDER_TYPES[from]].find((type) => holds(type, forms, zone)) ?? 'string';

/** True if all values of a column of type `from` with these cells can become values of type `to`. */
export function canWiden(from: ColumnType, to: ColumnType, forms: CellForms, zone: Zone | undefined): boolean {
  return from === to || (canBecome(from, to) && holds(to, forms, zone));
}

const canBecome = (from: ColumnType, to: ColumnType): boolean => WIDER_TYPES[from].some((type) => type === to);

/** SQL that converts a value to a wider type, as `ALTER … SET DATA TYPE … USING` needs it. */
export function widenSql(expr: string, from: ColumnType, to: ColumnType, zone: Zone | undefined): string {
  if (from === to) return expr;
  if (!canBecome(from, to)) throw systemError(`A column of type ${from} cannot become ${to}.`);
  if (to === 'string') return codecOf(from, zone).textSql(expr);
  const value = castSql(expr, CODECS[to].duckdbType);
  return to === 'datetime' && zone !== undefined ? instantSql(value, zone) : value;
}
