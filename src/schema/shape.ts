const LONGEST = 32;
/** Bytes looked at: 32 characters take at most four bytes each. */
const MAX_BYTES = LONGEST * 4;
const decoder = new TextDecoder();

/**
 * What may be logged of a cell: digits as 9, letters as a, other characters as they are (control characters as `·`),
 * at most 32 characters.
 */
export function shapeOf(bytes: Uint8Array, start: number, end: number): string {
  const text = decoder.decode(bytes.subarray(start, Math.min(end, start + MAX_BYTES)));
  return [...text].slice(0, LONGEST).map(shapeOfCharacter).join('');
}

function shapeOfCharacter(character: string): string {
  if (/\p{N}/u.test(character)) return '9';
  if (/[\p{L}\p{M}]/u.test(character)) return 'a';
  return /\p{C}/u.test(character) ? '·' : character;
}
