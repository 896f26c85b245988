// The ASCII characters that parsers and writers of bytes look for.

const TAB = 9;
export const LF = 10;
export const CR = 13;
export const SPACE = 32;
export const QUOTE = 34;
export const PLUS = 43;
export const COMMA = 44;
export const HYPHEN = 45;
export const DOT = 46;
export const ZERO = 48;
export const NINE = 57;
export const COLON = 58;
export const LESS_THAN = 60;
export const UPPER_E = 69;
export const UPPER_T = 84;
export const UPPER_Z = 90;
export const OPEN_BRACKET = 91;
export const BACKSLASH = 92;
export const CLOSE_BRACKET = 93;
export const LOWER_N = 110;
export const OPEN_BRACE = 123;
export const CLOSE_BRACE = 125;

/** The bit that makes an ASCII letter lower case. */
export const LOWER_BIT = 0x20;

const NULL = Buffer.from('null');

/** True for the text `null`. */
export const isNullText = (bytes: Uint8Array, start: number, end: number): boolean =>
  end - start === NULL.length && standsAt(bytes, start, NULL);

export function standsAt(bytes: Uint8Array, at: number, text: Uint8Array): boolean {
  for (let i = 0; i < text.length; i++) if (bytes[at + i] !== text[i]) return false;
  return true;
}

/** True for JSON white space. */
export const isJsonSpace = (c: number): boolean => c === SPACE || c === LF || c === CR || c === TAB;
