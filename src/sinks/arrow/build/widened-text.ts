import {
  civilSeconds,
  DAY,
  FIELDS,
  HOUR,
  MICROS,
  MINUTE,
  MONTH,
  OFFSET,
  parseTime,
  SECOND,
  setCivil,
  YEAR,
} from '../../../types/calendar.ts';
import { canonicalDouble } from '../../../types/double.ts';
import { DATETIME_ZONED } from '../../../types/evidence.ts';
import { latin1 } from '../../../types/numbers.ts';
import type { ColumnType } from '../../../types/type.ts';
import type { Zone } from '../../../types/zone.ts';
import { eachElement } from './list-elements.ts';

// The counterpart of sql/columns/widen.ts: what a cell of one type is in a column that another window made text (S21).

const LOWER_CASE = 32;
const LOWER_T = 0x74;
const QUOTE = 34;
const FIRST_LONG = -(2 ** 63);
const END_OF_LONGS = 2 ** 63;
const NUMBER = /^"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"$/;

/** The text of a cell of type `from` that fits it, in a column of text. */
export function widenedText(
  b: Uint8Array,
  start: number,
  end: number,
  from: ColumnType,
  zone: Zone | undefined,
): string {
  switch (from) {
    case 'boolean':
      return (b[start] | LOWER_CASE) === LOWER_T ? 'TRUE' : 'FALSE';
    case 'double':
      return doubleText(latin1(b, start, end));
    case 'datetime':
      return datetimeText(b, start, end, zone);
    case 'string[]':
      return stringListText(b, start, end);
    case 'double[]':
      return listText(b, start, end, (text) => shortDouble(text));
    case 'long[]':
      return listText(b, start, end, (text) => text);
    default:
      return textOf(b, start, end);
  }
}

/** A number of a list of doubles, in a column that another window made lists of texts. */
export function widenedItem(b: Uint8Array, start: number, end: number): string {
  const text = shortDouble(latin1(b, start, end));
  return /^-?[0-9]+$/.test(text) ? text : canonicalDouble(text);
}

/** A number of a list as text: its own for a long, DuckDB's for a double. */
export function itemText(b: Uint8Array, start: number, end: number): string {
  const text = latin1(b, start, end);
  return text.includes('.') ? canonicalDouble(text) : text;
}

/** Valid UTF-8 as a string. */
export function textOf(b: Uint8Array, start: number, end: number): string {
  return Buffer.from(b.buffer, b.byteOffset + start, end - start).toString();
}

/** A text as DuckDB writes it in JSON. */
export function jsonText(text: string): string {
  return JSON.stringify(text).replace(/\\(?:u(....)|.)/g, (written, hex?: string) =>
    hex === undefined ? written : `\\u${hex.toUpperCase()}`,
  );
}

function doubleText(cell: string): string {
  const value = Number(cell);
  const text = canonicalDouble(cell);
  const isLong = value >= FIRST_LONG && value < END_OF_LONGS && Math.trunc(value) === value;
  return isLong && text !== '-0.0' ? BigInt(value).toString() : text;
}

/** A double as JSON has it, a whole one without a fraction. */
function shortDouble(cell: string): string {
  const value = Number(cell);
  return Object.is(value, -0) ? '-0.0' : String(value).replace('e+', 'e');
}

function datetimeText(b: Uint8Array, start: number, end: number, zone: Zone | undefined): string {
  const form = parseTime(b, start, end);
  const seconds = civilSeconds();
  if (zone === undefined) return wallText();
  const instant = (form & DATETIME_ZONED) === 0 ? zone.toUtc(seconds) : seconds - FIELDS[OFFSET];
  const wall = instant + zone.offsetAt(instant);
  const isFirst = zone.toUtc(wall) === instant;
  setCivil(isFirst ? wall : instant);
  return isFirst ? wallText() : `${clockText()}Z`;
}

/** The wall-clock time in FIELDS; of midnight the day alone. */
function wallText(): string {
  return clockText().replace(/ 00:00:00\.000$/, '');
}

function clockText(): string {
  const part = (field: number, digits = 2) => String(FIELDS[field]).padStart(digits, '0');
  const micros = part(MICROS, 6);
  const fraction = micros.endsWith('000') ? micros.slice(0, 3) : micros;
  return `${part(YEAR, 4)}-${part(MONTH)}-${part(DAY)} ${part(HOUR)}:${part(MINUTE)}:${part(SECOND)}.${fraction}`;
}

function listText(b: Uint8Array, start: number, end: number, text: (number: string) => string): string {
  const items: string[] = [];
  eachElement(b, start, end, (from, to, isNull) => items.push(isNull ? 'null' : text(latin1(b, from, to))));
  return `[${items.join(',')}]`;
}

/** A list that may have been one of numbers is written as that. */
function stringListText(b: Uint8Array, start: number, end: number): string {
  const items: string[] = [];
  eachElement(b, start, end, (from, to, isNull) => {
    if (isNull) items.push('null');
    else if (b[from] === QUOTE) items.push(jsonText(JSON.parse(textOf(b, from, to))));
    else items.push(`"${itemText(b, from, to)}"`);
  });
  const isNumbers = items.length > 0 && items.every((item) => item === 'null' || NUMBER.test(item));
  const written = isNumbers ? items.map((item) => (item === 'null' ? item : item.slice(1, -1))) : items;
  return `[${written.join(',')}]`;
}
