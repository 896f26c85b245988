// This folder: the column types, related ones in one file: the forms of a cell, and its value as JSON and in SQL.

import { DOT, HYPHEN, isNull, NINE, OPEN_BRACKET, ZERO } from '../../base/ascii.ts';
import { systemError } from '../../base/errors.ts';
import { BOOLEAN_CODEC, booleanForm } from './boolean.ts';
import { CivilTime, DATE_LENGTH } from './civil-time.ts';
import { COLUMN_TYPES, type ColumnCodec, type ColumnType } from './codec.ts';
import { DATE_CODEC, DATETIME_CODEC } from './datetime.ts';
import { type CellForms, DATETIME_BEYOND, DATETIME_OFFSET, NULL_TEXT, STRING } from './forms.ts';
import { DOUBLE_LIST_CODEC, LONG_LIST_CODEC, listForms, STRING_LIST_CODEC } from './lists.ts';
import { DOUBLE_CODEC, LONG_CODEC, numberForm } from './numbers.ts';
import { STRING_CODEC } from './string.ts';
import { isInstant, type Zone } from './zone.ts';

/** A date or datetime begins with so many digits, then a dash or dot. */
const YEAR_DIGITS = 4;

export const TYPES: Readonly<Record<ColumnType, ColumnCodec>> = {
  boolean: BOOLEAN_CODEC,
  long: LONG_CODEC,
  double: DOUBLE_CODEC,
  date: DATE_CODEC,
  datetime: DATETIME_CODEC,
  'long[]': LONG_LIST_CODEC,
  'double[]': DOUBLE_LIST_CODEC,
  'string[]': STRING_LIST_CODEC,
  string: STRING_CODEC,
};

/**
 * The forms of one cell: usually one, STRING if there is no other. The cell's bytes are valid UTF-8, without quotes, and
 * not empty. After a form of a date or datetime, `time` is the cell's.
 */
export function formsOf(
  bytes: Uint8Array,
  start: number,
  end: number,
  zone: Zone | undefined,
  time: CivilTime = new CivilTime(),
): CellForms {
  const c = bytes[start];
  if ((c >= ZERO && c <= NINE) || c === HYPHEN) {
    const after = bytes[start + YEAR_DIGITS];
    if (end - start >= DATE_LENGTH && (after === HYPHEN || after === DOT)) {
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
  return isInstant(utc) ? 0 : DATETIME_BEYOND;
}

/** The types that `from` can widen to, the nearest first. */
export function widenings(from: ColumnType): ColumnType[] {
  const types = Object.keys(TYPES[from].widenings) as ColumnType[];
  return from === 'string' ? types : [...types, 'string'];
}

/** SQL that converts a typed expression to a wider type, as `ALTER … SET DATA TYPE … USING` needs it. */
export function widenSql(expr: string, from: ColumnType, to: ColumnType, zone?: Zone): string {
  if (from === to) return expr;
  const convert = to === 'string' ? TYPES[from].widenedText : TYPES[from].widenings[to];
  if (convert === undefined) throw systemError(`A column of type ${from} cannot become ${to}.`);
  return convert(expr, zone);
}

/** The forms of the cells that fit into `type`. The text `null` is absent and fits. */
export function acceptedBy(type: ColumnType, asInstants: boolean): CellForms {
  return TYPES[type].acceptedForms(asInstants) | NULL_TEXT;
}

/** True if all values of a column of type `from` with these cells can become values of type `to`. */
export function canWiden(from: ColumnType, to: ColumnType, forms: CellForms, asInstants: boolean): boolean {
  return from === to || (widenings(from).includes(to) && fitsWholly(to, forms, asInstants));
}

/** True when every cell behind `forms` fits into `type`. */
export function fitsWholly(type: ColumnType, forms: CellForms, asInstants: boolean): boolean {
  return (forms & ~acceptedBy(type, asInstants)) === 0;
}

/** True when the cell [start, end) of `bytes` fits into `type` (or is absent). */
export function cellFits(type: ColumnType, bytes: Uint8Array, start: number, end: number, zone?: Zone): boolean {
  return start === end || fitsWholly(type, formsOf(bytes, start, end, zone), zone !== undefined);
}

/** The type of a column: the first of `COLUMN_TYPES` that holds all cells; undefined while all are absent. */
export function typeOf(forms: CellForms, asInstants: boolean): ColumnType | undefined {
  if ((forms & ~NULL_TEXT) === 0) return undefined;
  return COLUMN_TYPES.find((type) => fitsWholly(type, forms, asInstants));
}

/** The first type that holds all these cells among `from` and the types that it can widen to. */
export function widenedType(from: ColumnType, forms: CellForms, asInstants: boolean): ColumnType {
  return [from, ...widenings(from)].find((type) => fitsWholly(type, forms, asInstants)) ?? 'string';
}
