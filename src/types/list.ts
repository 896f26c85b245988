import { type ColumnCodec, type Conversion, codecOf } from './codec.ts';
import { canonicalDouble, DOUBLE_CODEC, sqlDouble } from './double.ts';
import { LIST_DOUBLE, LIST_LONG, LIST_LONG_WIDE } from './evidence.ts';
import { copyBytes, writeQuoted } from './json-text.ts';
import { elementEnd, skipSpace } from './list-text.ts';
import { LONG_CODEC, sqlLong } from './long.ts';
import { latin1 } from './numbers.ts';
import { castTo, literal, matches } from './sql.ts';
import { STRING_CODEC } from './string.ts';
import type { ColumnType, Evidence } from './type.ts';

const QUOTE = 34;
const COMMA = 44;
const DOT = 46;
const OPEN = 91;
const CLOSE = 93;
const LOWER_N = 110;
const NUMBERS = LIST_LONG | LIST_LONG_WIDE | LIST_DOUBLE;

/** Writes one element of a list, [start, end) of its text; returns where it ends in `out`. */
type WriteElement = (b: Uint8Array, start: number, end: number, out: Uint8Array, at: number) => number;

/** Copies a list cell that fits as JSON without white space, element by element. */
function writeList(
  b: Uint8Array,
  start: number,
  end: number,
  out: Uint8Array,
  at: number,
  write: WriteElement,
): number {
  let to = at;
  out[to++] = OPEN;
  let i = skipSpace(b, skipSpace(b, start, end) + 1, end);
  while (i < end && b[i] !== CLOSE) {
    const stop = elementEnd(b, i, end);
    to = write(b, i, stop, out, to);
    i = skipSpace(b, stop, end);
    if (b[i] !== COMMA) break;
    out[to++] = COMMA;
    i = skipSpace(b, i + 1, end);
  }
  out[to++] = CLOSE;
  return to;
}

/** Strings and nulls as they are; a number as its canonical text. */
function writeAsString(b: Uint8Array, start: number, end: number, out: Uint8Array, at: number): number {
  if (b[start] === QUOTE || b[start] === LOWER_N) return copyBytes(b, start, end, out, at);
  const isDouble = b.subarray(start, end).includes(DOT);
  const text = latin1(b, start, end);
  return writeQuoted(isDouble ? canonicalDouble(text) : text, out, at);
}

/** The canonical text of a number in a list: its own for a long, DuckDB's for a double. */
const sqlNumberText = (text: string) =>
  `coalesce(CAST(${sqlLong(text)} AS VARCHAR), CAST(${sqlDouble(text)} AS VARCHAR))`;

const SPACE = '[ \\t\\n\\r]*';
const NUMBER = '-?[0-9][0-9.E+-]*';
const HEX = '[0-9a-fA-F]';
/** `\u` escapes that are characters: no half surrogate, no U+0000. */
const UNIT = [
  `000[1-9a-fA-F]|00[1-9a-fA-F]${HEX}|0[1-9a-fA-F]${HEX}{2}|[1-9a-cA-CefEF]${HEX}{3}|[dD][0-7]${HEX}{2}`,
  `[dD][89abAB]${HEX}{2}\\\\u[dD][c-fC-F]${HEX}{2}`,
].join('|');
const STRING = `"([^"\\\\\\x00-\\x1f]|\\\\(["\\\\/bfnrt]|u(${UNIT})))*"`;

const listOf = (element: string) =>
  `${SPACE}\\[${SPACE}((${element}|null)${SPACE}(,${SPACE}(${element}|null)${SPACE})*)?\\]${SPACE}`;

/** TRUE for a list of what may be numbers (or empty, or of nulls alone); its elements decide. */
const isNumberList = (expr: string) => matches(expr, listOf(NUMBER));

/** TRUE for a list of strings and nulls. */
const isStringList = (expr: string) => matches(expr, listOf(STRING));

/** The texts of the elements of such a list of numbers. */
const elementTexts = (expr: string) => `regexp_extract_all(${expr}, '[^\\[\\], \\t\\n\\r]+')`;

/** Elements whose value no reader can get wrong, by what the list becomes. */
const PLAIN_ELEMENTS = {
  BIGINT: '-?[1-9][0-9]{0,17}|0',
  DOUBLE: '-?[1-9][0-9]{0,14}|0|-?(0|[1-9][0-9]{0,6})\\.[0-9]{1,8}',
} as const;

/** The typed list; NULL unless every element but `null` fits by the SQL codec of its type. */
function sqlNumberList(expr: string, item: keyof typeof PLAIN_ELEMENTS, element: (text: string) => string): string {
  const isPlain = matches(expr, listOf(PLAIN_ELEMENTS[item]));
  return `CASE WHEN ${isPlain} THEN from_json(${expr}, '["${item}"]') ELSE ${sqlElements(expr, element)} END`;
}

/** A list made element by element; NULL unless every element but `null` gives a value. */
function sqlElements(expr: string, element: (text: string) => string): string {
  const texts = elementTexts(expr);
  const values = `list_transform(${texts}, lambda e: ${element('e')})`;
  const nulls = `len(list_filter(${texts}, lambda e: e = 'null'))`;
  const bound = `list_transform([${values}], lambda v: CASE WHEN len(v) - list_count(v) = ${nulls} THEN v END)[1]`;
  return `CASE WHEN ${isNumberList(expr)} THEN ${bound} END`;
}

/** `[1.0,2.5,0.0]` as `[1,2.5,0]`. Zeros twice: neighbours share the comma between them. */
function withLongs(list: string): string {
  const replaced = (text: string, pattern: string) => `regexp_replace(${text}, ${literal(pattern)}, '\\1\\2', 'g')`;
  const zeros = '([\\[,]0)\\.0([,\\]])';
  return replaced(replaced(replaced(list, '([1-9][0-9]*)\\.0([,\\]])'), zeros), zeros);
}

/** A number as a cell or DuckDB writes it. */
const NUMBER_TEXT = '-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?(?:[eE][+-]?[0-9]+)?';

/** `["1.5",null]` as `[1.5,null]`; a list with any other text was never one of numbers. */
function withNumbers(list: string): string {
  const element = `(?:"${NUMBER_TEXT}"|null)`;
  const isNumbers = `regexp_full_match(${list}, ${literal(`\\[${element}(?:,${element})*\\]`)})`;
  const numbers = `regexp_replace(${list}, ${literal(`([\\[,])"(${NUMBER_TEXT})"`)}, '\\1\\2', 'g')`;
  return `CASE WHEN ${isNumbers} THEN ${numbers} ELSE ${list} END`;
}

/** What the list types differ in. */
interface ListDefinition {
  readonly type: ColumnType;
  readonly item: ColumnCodec;
  readonly write: WriteElement;
  sql(expr: string): string;
  sqlValue(expr: string, evidence: Evidence): string;
  readonly widenings: Readonly<Partial<Record<ColumnType, Conversion>>>;
}

const jsonText = (expr: string): string => `CAST(to_json(${expr}) AS VARCHAR)`;

const listOfItems = (item: string) => (expr: string) => `from_json(${expr}, '["${item}"]')`;

function listCodec({ item, write, ...definition }: ListDefinition): ColumnCodec {
  return codecOf({
    ...definition,
    duckdb: (zoned) => `${item.duckdb(zoned)}[]`,
    writeValue: (b, start, end, out, at) => writeList(b, start, end, out, at, write),
    native: () => false,
    sqlText: jsonText,
    keepsSpelling: false,
    isOrdered: false,
    isScale: false,
    jsonSchema: (zoned) => ({ type: ['array', 'null'], items: item.jsonSchema(zoned) }),
    arrow: (zoned) => ({ kind: 'list', item: item.arrow(zoned) }),
  });
}

/** A JSON list of integers of 64 bits and nulls. */
export const LONG_LIST: ColumnCodec = listCodec({
  type: 'long[]',
  item: LONG_CODEC,
  write: copyBytes,
  sql: (expr) => sqlNumberList(expr, 'BIGINT', sqlLong),
  sqlValue: listOfItems('BIGINT'),
  widenings: { 'double[]': castTo('DOUBLE[]'), 'string[]': castTo('VARCHAR[]'), string: jsonText },
});

const longsWherePossible = (expr: string): string => withLongs(jsonText(expr));

/** A JSON list of doubles, integers that a double holds exactly, and nulls. */
export const DOUBLE_LIST: ColumnCodec = listCodec({
  type: 'double[]',
  item: DOUBLE_CODEC,
  write: copyBytes,
  sql: (expr) => sqlNumberList(expr, 'DOUBLE', sqlDouble),
  sqlValue: listOfItems('DOUBLE'),
  widenings: { 'string[]': (expr) => listOfItems('VARCHAR')(longsWherePossible(expr)), string: longsWherePossible },
});

const sqlStrings = (expr: string): string =>
  `CASE WHEN ${isStringList(expr)} THEN ${listOfItems('VARCHAR')(expr)} ELSE ${sqlElements(expr, sqlNumberText)} END`;

/** A JSON list of strings and nulls, or of numbers that become text. */
export const STRING_LIST: ColumnCodec = listCodec({
  type: 'string[]',
  item: STRING_CODEC,
  write: writeAsString,
  sql: sqlStrings,
  sqlValue: (expr, evidence) => ((evidence & NUMBERS) === 0 ? listOfItems('VARCHAR') : sqlStrings)(expr),
  widenings: { string: (expr) => withNumbers(jsonText(expr)) },
});
