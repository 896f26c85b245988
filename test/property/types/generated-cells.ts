import { COLUMN_TYPES, type ColumnType } from '../../../src/types/type.ts';
import fc from '../../support/property.ts';

const isText = (text: string) => !/\p{Surrogate}/u.test(text);
const pad = (value: number, width: number) => String(value).padStart(width, '0');
const int = (min: number, max: number) => fc.integer({ min, max });
const digits = (max: number) => fc.array(int(0, 9), { minLength: 1, maxLength: max }).map((all) => all.join(''));
const sign = fc.constantFrom('', '', '-', '+');

const year = fc.oneof({ weight: 8, arbitrary: int(1990, 2040) }, int(0, 9999), fc.constantFrom(1, 9999));
const clock = fc.record({ h: int(0, 24), m: int(0, 60), s: int(0, 60) });
const day = fc.record({ y: year, m: int(0, 13), d: int(0, 32) });

const longs = fc.oneof(
  int(-1000, 1000).map(String),
  fc.bigInt({ min: -(2n ** 64n), max: 2n ** 64n }).map(String),
  fc
    .tuple(int(52, 63), int(-3, 3), fc.boolean())
    .map(([p, d, n]) => String((2n ** BigInt(p) + BigInt(d)) * (n ? -1n : 1n))),
  fc.tuple(sign, digits(22)).map(([s, d]) => s + d),
);

const javaDouble = fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => {
  const [mantissa, exponent] = value.toExponential().split('e');
  return `${mantissa.includes('.') ? mantissa : `${mantissa}.0`}E${exponent.replace('+', '')}`;
});

const doubles = fc.oneof(
  fc.tuple(sign, digits(4), digits(4)).map(([s, a, b]) => `${s}${a}.${b}`),
  fc.tuple(sign, digits(20), digits(20)).map(([s, a, b]) => `${s}${a}.${b}`),
  fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e20, max: 1e20 }).map(String),
  javaDouble,
  fc.tuple(digits(1), digits(18), fc.constantFrom('', '+', '-'), digits(3)).map(([a, b, s, e]) => `${a}.${b}E${s}${e}`),
  fc.tuple(int(0, 340), digits(3)).map(([n, d]) => `0.${'0'.repeat(n)}${d}`),
);

const booleans = fc.constantFrom('TRUE', 'FALSE', 'true', 'false', 'True', 'Yes', 't', '1', '0');

const dates = day.map(({ y, m, d }) => `${pad(y, 4)}-${pad(m, 2)}-${pad(d, 2)}`);

const dots = fc
  .tuple(day, clock, int(1, 2), int(1, 2), int(1, 2))
  .map(([d, c, a, b, e]) => `${pad(d.y, 4)}.${pad(d.m, a)}.${pad(d.d, b)} ${pad(c.h, e)}:${pad(c.m, 2)}`);

const fraction = fc.oneof(
  fc.constant(''),
  digits(3).map((d) => `.${d.padEnd(3, '0')}`),
  digits(7).map((d) => `.${d}`),
);

const dashes = fc
  .tuple(dates, fc.constantFrom(' ', ' ', 'T'), clock, fraction)
  .map(([d, t, c, f]) => `${d}${t}${pad(c.h, 2)}:${pad(c.m, 2)}:${pad(c.s, 2)}${f}`);

const offset = fc
  .tuple(fc.constantFrom('+', '-'), int(0, 17), int(0, 61), fc.constantFrom('', ':'))
  .map(([s, h, m, c]) => `${s}${pad(h, 2)}${c}${pad(m, 2)}`);

const offsets = fc.tuple(dashes, fc.oneof(fc.constant('Z'), offset)).map(([d, o]) => d + o);

/** Hours in which some zone of the tests changes its clock, so that gaps and overlaps come up. */
const odd = fc
  .tuple(
    fc.constantFrom('2024-03-10', '2024-11-03', '2018-11-04', '2018-02-17', '2018-02-18', '1961-08-10', '2011-12-30'),
    clock,
    fc.constantFrom('.000', '', '.123456'),
  )
  .map(([d, c, f]) => `${d} ${pad(c.h % 4, 2)}:${pad(c.m % 60, 2)}:${pad(c.s % 60, 2)}${f}`);

const space = fc.constantFrom('', '', '', ' ', '\n', '\t ', '\r\n');
const list = (element: fc.Arbitrary<string>) =>
  fc
    .tuple(fc.array(fc.tuple(space, element, space), { maxLength: 4 }), space, space)
    .map(([all, a, b]) => `${a}[${all.map((parts) => parts.join('')).join(',')}]${b}`);

const json = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 6 }).map((text) => JSON.stringify(text)),
  fc.constantFrom(
    '"a,b"',
    '"\\u0041\\/"',
    '"\\ud83d\\ude00"',
    '"\\ud83d"',
    '"\\u0000"',
    '"\\u00ff"',
    '"\n"',
    '"\\x"',
    '"한글"',
  ),
);

const longLists = list(fc.oneof(longs, fc.constant('null')));
const doubleLists = list(fc.oneof(doubles, longs, fc.constant('null')));
const stringLists = list(fc.oneof(json, fc.constant('null')));
const oddLists = fc.oneof(
  list(fc.oneof(json, longs)),
  fc.json(),
  fc.constantFrom(
    '[]',
    '[ ]',
    '[null]',
    '[1,]',
    '[,1]',
    '[1 2]',
    '[',
    ']',
    '[]x',
    '[[1]]',
    '[true]',
    '[NaN]',
    '{"a":1}',
    '["a"',
  ),
);

const words = fc.constantFrom(
  'null',
  'NULL',
  ' null ',
  ' ',
  'NaN',
  'Infinity',
  '1_000',
  '1,000',
  '__proto__',
  '2026-W01',
  '한글',
  '\u0000',
);

export const texts = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 }).filter(isText);

/** The forms of cells that a column of a type may mix, each right and nearly right. */
const FORMS: Readonly<Record<ColumnType, fc.Arbitrary<string>[]>> = {
  boolean: [booleans],
  long: [longs],
  double: [doubles, longs],
  date: [dates],
  datetime: [dots, dashes, dates, offsets, odd],
  'long[]': [longLists],
  'double[]': [doubleLists, longLists],
  'string[]': [stringLists, longLists, doubleLists],
  string: [texts, longs],
};

/** Cells of every form, right and nearly right; never empty. */
export const cells = fc
  .oneof(...new Set(Object.values(FORMS).flat()), oddLists, words)
  .filter((text) => text.length > 0 && isText(text));

/** Some of the forms of a type: those of the cells of one column. */
export const formsOf = (type: ColumnType): fc.Arbitrary<fc.Arbitrary<string>[]> =>
  fc.subarray(FORMS[type], { minLength: 1 });

/** The same of any type. */
export const someForms = fc.constantFrom(...COLUMN_TYPES).chain(formsOf);
