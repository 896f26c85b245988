import { describe, expect, it } from 'vitest';
import { CellClassifier } from '../../../src/cells/types/column-types.ts';
import { cells } from '../../support/column-types.ts';
import { FORM_BITS, type FormName, formNames } from '../../support/forms.ts';
import fc from '../../support/property.ts';

// Every cell that one edit makes of those below is tried.

const encoder = new TextEncoder();
/** What stands before and behind a cell must never be read: it would go on with numbers, times, lists and texts. */
const SURROUNDINGS = [
  ['-9.', '.9-9:99Z]"'],
  ['[', '0'],
  ['"', '+09:00'],
  ['\\', ']'],
  ['1', 'l\\u0041"]'],
  [' ', '\\'],
] as const;
const ALPHABET = [...'0123456789-+.,:/TtZzEeXx[]"\\ \n\u0001nulabfrFADd'];

const classifier = new CellClassifier();

/** The forms of a cell with these texts before and behind it. */
function classified(cell: string, [before, after]: readonly [string, string]): string {
  const bytes = encoder.encode(`${before}${cell}${after}`);
  const start = encoder.encode(before).length;
  return formNames(classifier.formsOf(bytes, start, start + encoder.encode(cell).length, undefined)).join(' ');
}

const isDay = (year: number, month: number, day: number): boolean => {
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  return year >= 1 && date.getUTCFullYear() === year && date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
};

function timeName(cell: string): FormName | undefined {
  const dot = /^(\d{4})\.(\d\d?)\.(\d\d?) (\d\d?):(\d\d)$/.exec(cell);
  const dash =
    /^(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d):(\d\d)(?:\.\d{1,6})?(Z|[+-]\d\d:?\d\d)?)?$/.exec(cell) ?? undefined;
  const [, year, month, day, hour = '0', minute = '0', second = '0'] = dot ?? dash ?? [];
  if (year === undefined || !isDay(Number(year), Number(month), Number(day))) return undefined;
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return undefined;
  if (dot !== null) return 'DATETIME_DOT';
  const zone = dash?.[7];
  if (zone === undefined) return cell.length === 10 ? 'DATE' : 'DATETIME_DASH';
  const isZone = zone === 'Z' || (Number(zone.slice(1, 3)) <= 15 && Number(zone.slice(-2)) <= 59);
  return isZone ? 'DATETIME_OFFSET' : undefined;
}

function numberName(cell: string): FormName | undefined {
  if (/^(0|-?[1-9]\d*)$/.test(cell)) {
    const value = BigInt(cell);
    if (BigInt.asIntN(64, value) !== value) return undefined;
    return BigInt(Number(cell)) === value ? 'LONG' : 'LONG_WIDE';
  }
  const double = /^-?((?:0|[1-9]\d*)\.\d+|\d\.\d+E[+-]?\d+)$/.exec(cell);
  if (double === null || !Number.isFinite(Number(cell))) return undefined;
  const digits = (text: string) =>
    text
      .replace(/[eE].*$/, '')
      .replace('.', '')
      .replace(/^0+/, '')
      .replace(/0+$/, '');
  return digits(double[1]) === digits(String(Math.abs(Number(cell)))) ? 'DOUBLE' : undefined;
}

const hasHalfSurrogate = (text: string): boolean => Buffer.from(text).toString() !== text;

function listName(cell: string): FormName[] {
  const element = /[ \n\r\t]*("(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"|[^", \n\r\t\]]+)[ \n\r\t]*/;
  const list = new RegExp(`^\\[(?:${element.source}(?:,${element.source})*|[ \\n\\r\\t]*)\\]$`);
  if (!list.test(cell)) return [];
  const inside = cell.slice(cell.indexOf('[') + 1, cell.lastIndexOf(']'));
  const found = new Set<FormName>();
  for (const [, text] of inside.matchAll(new RegExp(element, 'g'))) {
    if (text === 'null') continue;
    const number = numberName(text);
    if (text.startsWith('"')) {
      const value: unknown = JSON.parse(text);
      if (typeof value !== 'string' || value.includes('\0') || hasHalfSurrogate(value)) return [];
      found.add('LIST_STRING');
    } else if (number === undefined) return [];
    else found.add(`LIST_${number}` as FormName);
  }
  if (found.size > 1 && found.has('LIST_STRING')) return [];
  return found.size === 0 ? ['LIST_EMPTY'] : [...found];
}

/** The classes of a cell, by patterns, Date, JSON and BigInt. */
function classesOf(cell: string): FormName[] {
  if (cell === 'null') return ['NULL_TEXT'];
  if (/^(TRUE|FALSE|true|false)$/.test(cell)) return ['BOOL'];
  const name = timeName(cell) ?? numberName(cell);
  const names = name === undefined ? listName(cell) : [name];
  const order = Object.keys(FORM_BITS);
  return names.length === 0 ? ['STRING'] : names.sort((a, b) => order.indexOf(a) - order.indexOf(b));
}

/** The cell, and all that one inserted, replaced or removed character makes of it. */
function* editsOf(cell: string): Generator<string> {
  yield cell;
  for (let i = 0; i <= cell.length; i++) {
    for (const c of ALPHABET) {
      yield cell.slice(0, i) + c + cell.slice(i);
      if (i < cell.length) yield cell.slice(0, i) + c + cell.slice(i + 1);
    }
    if (i < cell.length) yield cell.slice(0, i) + cell.slice(i + 1);
  }
}

/** The cells that are not what they should be: none is wanted. Each is read among some of the surroundings. */
function wrong(seeds: readonly string[]): string[] {
  const out: string[] = [];
  const cells = [...new Set(seeds.flatMap((seed) => [...editsOf(seed)]))].filter((cell) => cell !== '');
  for (const [i, cell] of cells.entries()) {
    const expected = classesOf(cell).join(' ');
    for (const around of seeds.includes(cell) ? SURROUNDINGS : [SURROUNDINGS[i % SURROUNDINGS.length]]) {
      const found = classified(cell, around);
      if (found !== expected) out.push(`${JSON.stringify(cell)} is ${found}, wanted ${expected}`);
    }
  }
  return out.slice(0, 10);
}

describe('a cell one edit away from a valid one', () => {
  it('of a date or a time is read as what it is', () => {
    const dates = ['2026-04-30', '2026-02-28', '2024-02-29', '1900-02-28', '0001-01-01', '9999-12-31', '2026-06-30'];
    const others = ['2026-09-30', '2026-11-30', '2026-01-31', '2000-02-29', '2026-12-01'];
    const times = ['2026-01-02 03:04:05', '2026-01-02T23:59:59', '2026-01-02 00:00:00.123456', '2026-01-02 10:20:30.5'];
    const zoned = [
      '2026-01-02T03:04:05Z',
      '2026-01-02 03:04:05+09:00',
      '2026-01-02T03:04:05.25-1530',
      '2026-01-02 03:04:05-15:59',
    ];
    const dots = ['2026.1.2 3:04', '2026.12.31 23:59', '2026.4.30 0:00', '2026.2.28 10:00'];
    expect(wrong([...dates, ...others, ...times, ...zoned, ...dots])).toEqual([]);
  });

  it('of a number or a word is read as what it is', () => {
    const longs = ['0', '-1', '7', '123', '9007199254740993', '9223372036854775807', '-9223372036854775808'];
    const borders = ['999999999999999', '9007199254740992', '4611686018427387904', '1152921504606846977'];
    const doubles = [
      '0.5',
      '-0.0',
      '1.10',
      '12.25',
      '3.141592653589793',
      '1.7976931348623157E308',
      '1.0E-5',
      '-2.5E+3',
    ];
    const words = ['TRUE', 'FALSE', 'true', 'false', 'null'];
    expect(wrong([...longs, ...borders, ...doubles, ...words])).toEqual([]);
  });

  it('of a list is read as what it is', () => {
    const texts = [
      '["a","b\\n"]',
      '[ "a" , null ]',
      '["\\u0041\\"\\\\\\/"]',
      '["\\b\\f\\r\\t"]',
      '["\\ud83d\\ude00"]',
      '["안녕"]',
      '["a]", "[,"]',
    ];
    const empty = ['[]', ' [ ] ', '[null]', '[null,null]'];
    const numbers = ['[1,2]', '[1.5,null]', '[9007199254740993]', '\n[ 1 ,\t2.0 ]\r'];
    expect(wrong([...texts, ...empty, ...numbers])).toEqual([]);
  });
});

it('a cell of any form is read as what it is', () => {
  fc.assert(
    fc.property(cells, fc.constantFrom(...SURROUNDINGS), (cell, around) => {
      expect(classified(cell, around)).toBe(classesOf(cell).join(' '));
    }),
    { numRuns: 5_000 },
  );
});
