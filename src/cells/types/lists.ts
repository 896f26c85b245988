import { BACKSLASH, CLOSE_BRACKET, COMMA, isJsonSpace, isNullText, LOWER_N, QUOTE, SPACE } from '../../base/ascii.ts';
import { literal, matchesSql, varcharSql } from '../../base/sql.ts';
import type { ColumnCodec, ScalarCodec } from './codec.ts';
import { type CellForms, LIST_EMPTY, LIST_STRING, listOf } from './forms.ts';
import { DOUBLE_CODEC, LONG_CODEC, numberForm } from './numbers.ts';
import { STRING_CODEC } from './string.ts';

function skipSpace(bytes: Uint8Array, start: number, end: number): number {
  let i = start;
  while (i < end && isJsonSpace(bytes[i])) i++;
  return i;
}

/**
 * The LIST_ forms of a JSON array of strings and nulls, or of numbers and nulls. A number must be a long or a double. 0
 * for anything else: a nested, mixed or broken list, or a string with U+0000 or half a surrogate.
 */
export function listForms(bytes: Uint8Array, start: number, end: number): CellForms {
  let i = skipSpace(bytes, start + 1, end);
  if (i < end && bytes[i] === CLOSE_BRACKET) return i + 1 === end ? LIST_EMPTY : 0;
  let forms = 0;
  for (;;) {
    const elementStop = elementEnd(bytes, i, end);
    const form = elementStop < 0 ? 0 : elementForm(bytes, i, elementStop);
    if (form === 0) return 0;
    forms |= form;
    i = skipSpace(bytes, elementStop, end);
    if (i >= end) return 0;
    if (bytes[i] === CLOSE_BRACKET) break;
    if (bytes[i] !== COMMA) return 0;
    i = skipSpace(bytes, i + 1, end);
  }
  return i + 1 === end ? joinedForms(forms) : 0;
}

/** The forms of a list from those of its elements; 0 if it has both texts and numbers. */
function joinedForms(forms: CellForms): CellForms {
  const withValues = forms & ~LIST_EMPTY;
  if (withValues === 0) return LIST_EMPTY;
  return (withValues & LIST_STRING) !== 0 && withValues !== LIST_STRING ? 0 : withValues;
}

/** The form of a list of this element alone; 0 for any other element. */
function elementForm(bytes: Uint8Array, start: number, end: number): CellForms {
  if (bytes[start] === QUOTE) return hasOnlyText(bytes, start, end) ? LIST_STRING : 0;
  if (bytes[start] === LOWER_N) return LIST_EMPTY;
  return listOf(numberForm(bytes, start, end));
}

/** The index behind the string, the `null` or the number-like text at `start`; -1 if there is none. */
function elementEnd(bytes: Uint8Array, start: number, end: number): number {
  if (start >= end) return -1;
  const c = bytes[start];
  if (c === QUOTE) return stringEnd(bytes, start + 1, end);
  if (c === LOWER_N) return start + 4 <= end && isNullText(bytes, start, start + 4) ? start + 4 : -1;
  let i = start;
  while (i < end && bytes[i] !== COMMA && bytes[i] !== CLOSE_BRACKET && !isJsonSpace(bytes[i])) i++;
  return i === start ? -1 : i;
}

function stringEnd(bytes: Uint8Array, start: number, end: number): number {
  for (let i = start; i < end; i++) {
    if (bytes[i] === QUOTE) return i + 1;
    if (bytes[i] < SPACE) return -1;
    if (bytes[i] === BACKSLASH) i++;
  }
  return -1;
}

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** True if the escapes of a JSON string are valid, and those of text: neither U+0000 nor half a surrogate. */
function hasOnlyText(bytes: Uint8Array, start: number, end: number): boolean {
  let i = start;
  while (i < end && bytes[i] !== BACKSLASH) i++;
  if (i === end) return true;
  try {
    const text: string = JSON.parse(decoder.decode(bytes.subarray(start, end)));
    return !text.includes('\0') && !/\p{Surrogate}/u.test(text);
  } catch {
    return false;
  }
}

/** Copies a list cell that fits, without white space outside its strings. */
function writeList(bytes: Uint8Array, start: number, end: number, out: Uint8Array, at: number): number {
  let to = at;
  let isInString = false;
  for (let i = start; i < end; i++) {
    if (bytes[i] === QUOTE) isInString = !isInString;
    if (!isInString && isJsonSpace(bytes[i])) continue;
    if (bytes[i] === BACKSLASH) out[to++] = bytes[i++];
    out[to++] = bytes[i];
  }
  return to;
}

const SPACES = '[ \\t\\n\\r]*';
const NUMBER_PATTERN = '-?[0-9][0-9.E+-]*';
const HEX_DIGIT = '[0-9a-fA-F]';
/** Patterns of `\u` escapes that are characters: no half surrogate, no U+0000. */
const UNICODE_ESCAPE = [
  `000[1-9a-fA-F]|00[1-9a-fA-F]${HEX_DIGIT}|0[1-9a-fA-F]${HEX_DIGIT}{2}`,
  `[1-9a-cA-CefEF]${HEX_DIGIT}{3}|[dD][0-7]${HEX_DIGIT}{2}`,
  `[dD][89abAB]${HEX_DIGIT}{2}\\\\u[dD][c-fC-F]${HEX_DIGIT}{2}`,
].join('|');
const STRING_PATTERN = `"([^"\\\\\\x00-\\x1f]|\\\\(["\\\\/bfnrt]|u(${UNICODE_ESCAPE})))*"`;

const listPattern = (element: string) =>
  `\\[${SPACES}((${element}|null)${SPACES}(,${SPACES}(${element}|null)${SPACES})*)?\\]`;

/** SQL of a list of numbers, made one by one; NULL if an element but `null` has no value: `1.2.3` in `[1, 1.2.3]`. */
function numberListSql(expr: string, element: ScalarCodec): string {
  const texts = `regexp_extract_all(${expr}, '[^\\[\\], \\t\\n\\r]+')`;
  const values = `list_transform(${texts}, lambda e: ${element.checkedSql('e')})`;
  const nulls = `len(list_filter(${texts}, lambda e: e = 'null'))`;
  // A list of one value and a lambda over it bind `v`, so that the value is made once.
  const checked = `list_transform([${values}], lambda v: CASE WHEN len(v) - list_count(v) = ${nulls} THEN v END)[1]`;
  return `CASE WHEN ${matchesSql(expr, listPattern(NUMBER_PATTERN))} THEN ${checked} END`;
}

/** SQL that writes the list `[1.0,2.5,0.0]` as `[1,2.5,0]`. Zeros are replaced twice, since neighbours share a comma. */
function integralAsLongsSql(list: string): string {
  const replaced = (text: string, pattern: string) => `regexp_replace(${text}, ${literal(pattern)}, '\\1\\2', 'g')`;
  const zeros = '([\\[,]0)\\.0([,\\]])';
  return replaced(replaced(replaced(list, '([1-9][0-9]*)\\.0([,\\]])'), zeros), zeros);
}

const jsonTextSql = (expr: string): string => varcharSql(`to_json(${expr})`);

const fromJsonSql = (expr: string, element: ScalarCodec): string => `from_json(${expr}, '["${element.duckdbType}"]')`;

/** SQL of a list of texts; NULL for any other text. */
const stringListSql = (expr: string): string =>
  `CASE WHEN ${matchesSql(expr, listPattern(STRING_PATTERN))} THEN ${fromJsonSql(expr, STRING_CODEC)} END`;

/** `forms`: those of lists with a value. */
const listCodec = (
  element: ScalarCodec,
  forms: CellForms,
  checkedSql: (expr: string, element: ScalarCodec) => string,
  textSql = jsonTextSql,
): ColumnCodec => ({
  forms: LIST_EMPTY | forms,
  duckdbType: `${element.duckdbType}[]`,
  jsonSchema: { type: ['array', 'null'], items: element.jsonSchema },
  checkedSql: (expr) => checkedSql(expr, element),
  uncheckedSql: (expr) => fromJsonSql(expr, element),
  textSql,
  writeJson: writeList,
});

/** A JSON list of integers of 64 bits and nulls. */
export const LONG_LIST_CODEC = listCodec(LONG_CODEC, listOf(LONG_CODEC.forms), numberListSql);

/** A JSON list of doubles, integers that a double holds exactly, and nulls. */
export const DOUBLE_LIST_CODEC = listCodec(DOUBLE_CODEC, listOf(DOUBLE_CODEC.forms), numberListSql, (expr) =>
  integralAsLongsSql(jsonTextSql(expr)),
);

/** A JSON list of strings and nulls. */
export const STRING_LIST_CODEC = listCodec(STRING_CODEC, LIST_STRING, stringListSql);
