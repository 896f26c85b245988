import { matches } from './sql.ts';

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
export const isStringList = (expr: string) => matches(expr, listOf(STRING));

/** The texts of the elements of such a list of numbers. */
const elementTexts = (expr: string) => `regexp_extract_all(${expr}, '[^\\[\\], \\t\\n\\r]+')`;

/** Elements whose value no reader can get wrong, by what the list becomes. */
const PLAIN_ELEMENTS = {
  BIGINT: '-?[1-9][0-9]{0,17}|0',
  DOUBLE: '-?[1-9][0-9]{0,14}|0|-?(0|[1-9][0-9]{0,6})\\.[0-9]{1,8}',
} as const;

/** The typed list; NULL unless every element but `null` fits by the SQL face of its type. */
export function sqlNumberList(
  expr: string,
  item: keyof typeof PLAIN_ELEMENTS,
  element: (text: string) => string,
): string {
  const isPlain = matches(expr, listOf(PLAIN_ELEMENTS[item]));
  return `CASE WHEN ${isPlain} THEN from_json(${expr}, '["${item}"]') ELSE ${sqlElements(expr, element)} END`;
}

/** A list made element by element; NULL unless every element but `null` gives a value. */
export function sqlElements(expr: string, element: (text: string) => string): string {
  const texts = elementTexts(expr);
  const values = `list_transform(${texts}, lambda e: ${element('e')})`;
  const nulls = `len(list_filter(${texts}, lambda e: e = 'null'))`;
  const bound = `list_transform([${values}], lambda v: CASE WHEN len(v) - list_count(v) = ${nulls} THEN v END)[1]`;
  return `CASE WHEN ${isNumberList(expr)} THEN ${bound} END`;
}
