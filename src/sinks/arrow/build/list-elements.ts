import { elementEnd, skipSpace } from '../../../types/list-text.ts';

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
    // Behind the comma, or behind the end of the list, after which nothing but white space follows.
    i = skipSpace(b, skipSpace(b, stop, end) + 1, end);
  }
}
