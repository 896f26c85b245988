import { elementEnd, skipSpace } from '../../../types/list-text.ts';

const COMMA = 44;
const CLOSE = 93;
const LOWER_N = 110;

/** Calls `each` for the elements of a list cell that fits, [from, to) of its text. */
export function eachElement(
  b: Uint8Array,
  start: number,
  end: number,
  each: (from: number, to: number, isNull: boolean) => void,
): void {
  let i = skipSpace(b, skipSpace(b, start, end) + 1, end);
  while (i < end && b[i] !== CLOSE) {
    const stop = elementEnd(b, i, end);
    each(i, stop, b[i] === LOWER_N);
    i = skipSpace(b, stop, end);
    if (b[i] !== COMMA) return;
    i = skipSpace(b, i + 1, end);
  }
}
