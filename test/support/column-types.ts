import type { Data } from 'apache-arrow';
import { DAY_MS } from '../../src/base/clock.ts';
import { COLUMN_TYPES, type ColumnType } from '../../src/cells/types/column-types.ts';
import fc from './property.ts';

// What each column type is, once more, for all tests that go through the types. A new type is an entry of TYPE_CASES,
// and a form in `test/unit/types/grammar.test.ts`.

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

/**
 * A value in the one form in which those of all targets are compared: a double as its shortest text, a datetime in
 * microseconds.
 */
type Comparable = string | null | readonly (string | null)[];

interface TypeCase {
  /** The forms of cells that a column of it may mix, each right and nearly right. */
  readonly forms: readonly fc.Arbitrary<string>[];
  /** The schema that platforms and readers of a target see, without a zone. */
  readonly jsonSchema: object;
  readonly duckdb: string;
  readonly arrow: string;
  /** By each type to which it widens: cells, and the text that DuckDB gives the widened values. */
  readonly widened: Partial<Record<ColumnType, readonly (readonly [cell: string, text: string])[]>>;
  /** SQL that writes a typed value as text. */
  sql(value: string, asInstants: boolean): string;
  /** A value to compare, of that text, of JSON as `exactJson` reads it, or of `arrowAt`. */
  canonical(value: unknown): Comparable;
  /** The value in a row of an Arrow vector. */
  readonly arrowAt: (data: Data, row: number) => unknown;
}

const asText = (value: string): string => `CAST(${value} AS VARCHAR)`;

/** Numbers keep their digits: outside strings each becomes a text that starts with `#`. */
const NUMBERS = /("(?:[^"\\]|\\.)*")|(-?\d[-+.\deE]*)/g;
export const exactJson = (json: string) =>
  JSON.parse(json.replace(NUMBERS, (_, text, number) => text ?? `"#${number}"`));

const exactText = (value: unknown): string => String(value).replace(/^#/, '');
const double = (value: unknown): string => {
  const number = typeof value === 'number' ? value : Number(exactText(value));
  return Object.is(number, -0) ? '-0' : String(number);
};
const items = (value: unknown) => (typeof value === 'string' ? JSON.parse(value) : value) as (string | null)[];
const each = (canonical: (item: unknown) => string) => (value: unknown) =>
  items(value).map((item) => (item === null ? null : canonical(item)));

const longAt = (data: Data, row: number): unknown => `${data.values[row]}`;
const doubleAt = (data: Data, row: number): unknown => data.values[row];
/** Reads a text without the library's own decoder, which removes a U+FEFF at the start. */
const textAt = ({ values, valueOffsets: offsets }: Data, row: number): unknown =>
  Buffer.from(values.subarray(offsets[row], offsets[row + 1])).toString();
const listAt = (itemAt: TypeCase['arrowAt']) => (data: Data, row: number) => {
  const [child] = data.children;
  const [from, to] = [data.valueOffsets[row], data.valueOffsets[row + 1]];
  return Array.from({ length: to - from }, (_, i) => (child.getValid(from + i) ? itemAt(child, from + i) : null));
};

/** Microseconds since 1970 as `2026-01-02T03:04:05.000000`. */
function instantText(micros: bigint): string {
  const rest = ((micros % 1_000_000n) + 1_000_000n) % 1_000_000n;
  const date = new Date(Number((micros - rest) / 1_000n));
  return `${date.toISOString().slice(0, 19)}.${String(rest).padStart(6, '0')}`;
}

const STRING = { type: ['string', 'null'] };
const listOf = (items: object): object => ({ type: ['array', 'null'], items });

const TYPE_CASES: Readonly<Record<ColumnType, TypeCase>> = {
  boolean: {
    forms: [booleans],
    jsonSchema: { type: ['boolean', 'null'] },
    duckdb: 'BOOLEAN',
    arrow: 'Bool',
    widened: {
      string: [
        ['true', 'TRUE'],
        ['FALSE', 'FALSE'],
      ],
    },
    sql: asText,
    canonical: String,
    arrowAt: ({ values }, row) => (values[row >> 3] & (1 << (row & 7))) !== 0,
  },
  long: {
    forms: [longs],
    jsonSchema: { type: ['integer', 'null'] },
    duckdb: 'BIGINT',
    arrow: 'Int64',
    widened: {
      double: [['7', '7.0']],
      string: [
        ['9007199254740993', '9007199254740993'],
        ['-5', '-5'],
      ],
    },
    sql: asText,
    canonical: exactText,
    arrowAt: longAt,
  },
  double: {
    forms: [doubles, longs],
    jsonSchema: { type: ['number', 'null'] },
    duckdb: 'DOUBLE',
    arrow: 'Float64',
    widened: {
      string: [
        ['1.50', '1.5'],
        ['1.0E7', '10000000'],
        ['-0.0', '-0.0'],
      ],
    },
    sql: asText,
    canonical: double,
    arrowAt: doubleAt,
  },
  date: {
    forms: [dates],
    jsonSchema: { ...STRING, format: 'date' },
    duckdb: 'DATE',
    arrow: 'Date32<DAY>',
    widened: {
      datetime: [['2024-02-29', '2024-02-29 00:00:00']],
      string: [
        ['0001-01-01', '0001-01-01'],
        ['2024-02-29', '2024-02-29'],
      ],
    },
    sql: asText,
    canonical: String,
    arrowAt: ({ values }, row) => new Date(values[row] * DAY_MS).toISOString().slice(0, 10),
  },
  datetime: {
    forms: [dots, dashes, dates, offsets, odd],
    jsonSchema: { ...STRING, format: 'date-time', airbyte_type: 'timestamp_without_timezone' },
    duckdb: 'TIMESTAMP',
    arrow: 'Timestamp<MICROSECOND>',
    widened: {
      string: [
        ['2026.1.2 3:04', '2026-01-02 03:04:00.000'],
        ['2026-01-02 03:04:05.5', '2026-01-02 03:04:05.500'],
        ['2026-01-02T03:04:05.000001', '2026-01-02 03:04:05.000001'],
        ['0001-01-01 00:00:00', '0001-01-01'],
      ],
    },
    sql: (value, asInstants) => `strftime(${asInstants ? `timezone('UTC', ${value})` : value}, '%Y-%m-%dT%H:%M:%S.%f')`,
    canonical: (value) => String(value).replace(/Z$/, '').padEnd('2026-01-02T03:04:05.000000'.length, '0'),
    arrowAt: ({ values }, row) => instantText(values[row]),
  },
  'long[]': {
    forms: [longLists],
    jsonSchema: listOf({ type: ['integer', 'null'] }),
    duckdb: 'BIGINT[]',
    arrow: 'List<Int64>',
    widened: {
      'double[]': [['[1,null]', '[1.0, NULL]']],
      'string[]': [['[null]', '[NULL]']],
      string: [
        ['[ 1, null ]', '[1,null]'],
        ['[]', '[]'],
      ],
    },
    sql: (value) => `CAST(to_json(CAST(${value} AS VARCHAR[])) AS VARCHAR)`,
    canonical: each(exactText),
    arrowAt: listAt(longAt),
  },
  'double[]': {
    forms: [doubleLists, longLists],
    jsonSchema: listOf({ type: ['number', 'null'] }),
    duckdb: 'DOUBLE[]',
    arrow: 'List<Float64>',
    widened: {
      string: [['[1.50,2]', '[1.5,2]']],
    },
    sql: (value) => `CAST(to_json(list_transform(${value}, lambda x: CAST(x AS VARCHAR))) AS VARCHAR)`,
    canonical: each(double),
    arrowAt: listAt(doubleAt),
  },
  'string[]': {
    forms: [stringLists],
    jsonSchema: listOf(STRING),
    duckdb: 'VARCHAR[]',
    arrow: 'List<Utf8>',
    widened: {
      string: [
        ['["a,\\"b"]', '["a,\\"b"]'],
        ['["1.5",null]', '["1.5",null]'],
      ],
    },
    sql: (value) => `CAST(to_json(${value}) AS VARCHAR)`,
    canonical: items,
    arrowAt: listAt(textAt),
  },
  string: {
    forms: [texts, longs],
    jsonSchema: STRING,
    duckdb: 'VARCHAR',
    arrow: 'Utf8',
    widened: {},
    sql: asText,
    canonical: String,
    arrowAt: textAt,
  },
};

/** The contract of a type with platforms and readers of a target. */
export const contractOf = (type: ColumnType): Pick<TypeCase, 'jsonSchema' | 'duckdb' | 'arrow'> => TYPE_CASES[type];

/** Each type with each that it is shown to widen to, cells of it, and what they become as text. */
export const WIDENINGS = COLUMN_TYPES.flatMap((from) =>
  Object.entries(TYPE_CASES[from].widened).map(([to, cells]) => ({
    from,
    to: to as ColumnType,
    cells: cells.map(([cell]) => cell),
    texts: cells.map(([, text]) => text),
  })),
);

/** SQL that writes a typed value as text. */
export const sqlText = (type: ColumnType, value: string, asInstants: boolean): string =>
  TYPE_CASES[type].sql(value, asInstants);

/** One form for values of all targets: that text, JSON as `exactJson` reads it, or a value of `arrowAt`. */
export const canonical = (type: ColumnType, value: unknown): Comparable =>
  value === null || value === undefined ? null : TYPE_CASES[type].canonical(value);

export const arrowAt = (type: ColumnType, data: Data, row: number): unknown =>
  data.getValid(row) ? TYPE_CASES[type].arrowAt(data, row) : null;

/** Cells of every form, right and nearly right; never empty. */
export const cells = fc
  .oneof(...new Set(Object.values(TYPE_CASES).flatMap(({ forms }) => forms)), oddLists, words)
  .filter((text) => text.length > 0 && isText(text));

/** Some of the forms of a type: those of the cells of one column. */
export const cellTextsOf = (type: ColumnType): fc.Arbitrary<fc.Arbitrary<string>[]> =>
  fc.subarray([...TYPE_CASES[type].forms], { minLength: 1 });

/** Cells of several forms of any type. */
export const someForms = fc.constantFrom(...COLUMN_TYPES).chain(cellTextsOf);
