/**
 * Control characters, line and paragraph separators, invisible characters, and those that turn the direction of a text.
 */
const UNPRINTABLE =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|\p{Surrogate}/gu;

/**
 * A text from outside as one line that a terminal, a log or a page shows as it is: every character that moves a
 * cursor, ends a line or shows nothing becomes its escape, as JSON writes it (`\u001b`). JSON stays the same JSON.
 */
export const printable = (text: string): string =>
  text.replaceAll(UNPRINTABLE, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
