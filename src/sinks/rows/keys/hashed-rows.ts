import type { BlockReader } from '../block-reader.ts';
import type { RowBlock } from '../row-blocks.ts';
import { hashBytes, WORDS } from './hash-bytes.ts';
import type { RowKey } from './row-key.ts';

/** Numbers per row of `HashedRows`: three of the target's own, then three of the key's hash. */
export const HASH_STRIDE = 6;
/** Where the hash of the key begins among them. */
export const KEY_AT = 3;

const FIRST_WORDS_BYTES = 1 << 16;

/** What the rows of one block hash to. */
export interface HashedRows {
  readonly rows: number;
  /** `HASH_STRIDE` numbers per row, from byte 0 on. */
  readonly buffer: ArrayBuffer;
  /** Ids that end in `#` and a number, as generated keys of repeated rows do. */
  readonly numbered: readonly string[];
}

/**
 * Hashes the keys of a block. `readOwn` has the key read the tokenizer's row, and writes three numbers of the target's own
 * at `k` of the words.
 */
export function hashRows(
  reader: BlockReader,
  block: RowBlock,
  key: RowKey,
  spare: ArrayBuffer | undefined,
  readOwn: (words: Uint32Array, k: number, bytes: Uint8Array<ArrayBuffer>) => void,
): HashedRows {
  let words = new Uint32Array(spare ?? new ArrayBuffer(FIRST_WORDS_BYTES));
  const numbered: string[] = [];
  reader.load(block);
  const rows = reader.rows((bytes, row) => {
    const k = row * HASH_STRIDE;
    if (k + HASH_STRIDE > words.length) words = larger(words);
    readOwn(words, k, bytes);
    hashBytes(key.bytes, key.start, key.end);
    words.set(WORDS, k + KEY_AT);
    if (key.isNumbered) numbered.push(key.text);
  });
  return { rows, buffer: words.buffer, numbered };
}

function larger(words: Uint32Array<ArrayBuffer>): Uint32Array<ArrayBuffer> {
  const copy = new Uint32Array(words.length * 2);
  copy.set(words);
  return copy;
}
