/** No line ends, no control characters, nothing beyond one byte, no blank at either end. */
const HEADER_TEXT = /^[\x21-\x7e\x80-\xff]([\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?$/;

const NOT_CARRIED = 'holds a line end, or another character that no HTTP header can carry';

/** True for a text that an HTTP header carries unchanged, a token for one. */
export const isHeaderText = (text: string): boolean => HEADER_TEXT.test(text);

/** What is wrong with a configured token, or undefined. One that is empty or no text is left to the schema. */
export function tokenProblem(key: string, token: unknown): { readonly key: string; readonly text: string } | undefined {
  if (typeof token !== 'string' || token === '' || isHeaderText(token)) return undefined;
  const isPadded = /^[\t ]|[\t ]$/.test(token);
  const what = isPadded ? 'begins or ends with a blank, which no HTTP header keeps' : NOT_CARRIED;
  return { key, text: `${key} ${what}` };
}
