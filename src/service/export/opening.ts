import { contentOf } from './judge.ts';

/** A body whose first bytes have been looked at. */
export interface Opening {
  /** Enough of them to tell what the body is. */
  readonly first: Uint8Array;
  /** True when there are no more. */
  readonly isAll: boolean;
  /** The whole body, those first bytes included. */
  readonly bytes: AsyncIterable<Uint8Array>;
}

/** White space before anything else is looked through no further. */
const MOST_BYTES = 64 * 1024;

/** Reads until it can be told what the body is. Throws what the body throws. */
export async function openingOf(body: AsyncIterable<Uint8Array>): Promise<Opening> {
  const rest = body[Symbol.asyncIterator]();
  const chunks: Uint8Array[] = [];
  let first: Uint8Array = new Uint8Array(0);
  let isAll = false;
  while (contentOf(first, isAll) === undefined && first.length < MOST_BYTES) {
    const next = await rest.next();
    if (next.done === true) isAll = true;
    else {
      chunks.push(next.value);
      first = chunks.length === 1 ? next.value : Buffer.concat(chunks);
    }
  }
  return { first, isAll, bytes: rejoined(chunks, rest) };
}

async function* rejoined(
  first: readonly Uint8Array[],
  rest: AsyncIterator<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    yield* first;
    for (let next = await rest.next(); next.done !== true; next = await rest.next()) yield next.value;
  } finally {
    await rest.return?.();
  }
}
