import { type FileHandle, open } from 'node:fs/promises';
import { internalError } from '../../base/errors.ts';
import { INCOMPLETE, RowTokenizer, SENTINEL } from '../../csv/tokenizer.ts';
import type { SpoolFile } from '../../extract/window.ts';

/** Whole rows of a file: bytes [from, to). */
interface RowBlock {
  readonly from: number;
  readonly to: number;
}

/** A block of one of several files. */
interface FileBlock extends RowBlock {
  /** Index of the file. */
  readonly fileIndex: number;
}

/** Bytes of a block: small against the memory of a worker, large against the cost of a message to it. */
const BLOCK_BYTES = 256 * 1024;
const LF = 10;
const QUOTE = 34;
const QUOTES = 0x22222222;
const ONES = 0x01010101;
const HIGHS = 0x80808080 | 0;

/** The blocks of files, in order; stops between two when the signal aborts. */
export async function* fileBlocks(files: readonly SpoolFile[], signal: AbortSignal): AsyncGenerator<FileBlock> {
  for (let fileIndex = 0; fileIndex < files.length; fileIndex++) {
    const file = await open(files[fileIndex].path, 'r');
    try {
      for await (const block of rowBlocksOf(file, files[fileIndex].rowEnds)) {
        signal.throwIfAborted();
        yield { fileIndex, ...block };
      }
    } finally {
      await file.close();
    }
  }
}

/** Splits a normalised CSV file, behind its header, into blocks of whole rows, in order; `rowEnds`: where rows are known to end. */
export async function* rowBlocksOf(
  file: FileHandle,
  rowEnds?: readonly number[],
  blockBytes = BLOCK_BYTES,
): AsyncGenerator<RowBlock> {
  const { size } = await file.stat();
  const start = await headerEnd(file, size, blockBytes);
  if (rowEnds === undefined) yield* searchedBlocks(file, start, size, blockBytes);
  else yield* knownBlocks(rowEnds, start, size);
}

function* knownBlocks(rowEnds: readonly number[], start: number, size: number): Generator<RowBlock> {
  let from = start;
  for (const to of [...rowEnds, size]) {
    if (to <= from) continue;
    yield { from, to };
    from = to;
  }
}

async function* searchedBlocks(
  file: FileHandle,
  start: number,
  size: number,
  blockBytes: number,
): AsyncGenerator<RowBlock> {
  let bytes = new Uint8Array(blockBytes + 8);
  let from = start;
  while (from < size) {
    let want = Math.min(blockBytes, size - from);
    let to = from + want;
    while (to < size) {
      if (bytes.length < want + 8) bytes = new Uint8Array(want * 2 + 8);
      await readFully(file, bytes, want, from);
      const cut = lastRowEnd(bytes, want);
      if (cut > 0) {
        to = from + cut;
        break;
      }
      want = Math.min(want * 2, size - from);
      to = from + want;
    }
    yield { from, to };
    from = to;
  }
}

async function headerEnd(file: FileHandle, size: number, blockBytes: number): Promise<number> {
  for (let want = Math.min(size, blockBytes); ; want = Math.min(size, want * 2)) {
    const bytes = new Uint8Array(want + 8);
    await readFully(file, bytes, want, 0);
    bytes[want] = SENTINEL;
    const end = new RowTokenizer().next(bytes, 0, want, want === size);
    if (end >= 0) return end;
    if (end !== INCOMPLETE || want === size) throw internalError('A verified export has no header.');
  }
}

/** Fills the first `length` bytes from `position` of a file on. */
async function readFully(file: FileHandle, bytes: Uint8Array, length: number, position: number): Promise<void> {
  for (let done = 0; done < length; ) {
    const { bytesRead } = await file.read(bytes, done, length - done, position + done);
    if (bytesRead === 0) throw internalError('A spooled file became shorter while it was read.');
    done += bytesRead;
  }
}

/** Where the last row that ends within the first `length` bytes ends, 0 when none does. They start with a row. */
function lastRowEnd(bytes: Uint8Array, length: number): number {
  let quoted = isOdd(bytes, length);
  for (let i = length - 1; i >= 0; i--) {
    const c = bytes[i];
    if (c === QUOTE) quoted = !quoted;
    else if (c === LF && !quoted) return i + 1;
  }
  return 0;
}

/** True when an odd number of quotes is among the first `length` bytes; four bytes at a time, as few hold one. */
function isOdd(bytes: Uint8Array, length: number): boolean {
  const words = new Int32Array(bytes.buffer, bytes.byteOffset, length >> 2);
  let count = 0;
  for (let i = 0; i < words.length; i++) {
    const x = words[i] ^ QUOTES;
    if (((x - ONES) & ~x & HIGHS) === 0) continue;
    for (let k = i << 2, end = k + 4; k < end; k++) if (bytes[k] === QUOTE) count++;
  }
  for (let i = words.length << 2; i < length; i++) if (bytes[i] === QUOTE) count++;
  return (count & 1) === 1;
}
