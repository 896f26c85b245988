import { LF } from './ascii.ts';
import { configError } from './errors.ts';

const MAX_LINE_BYTES = 64 * 1024 * 1024;

/** Yields with each chunk the lines that it completes, without their LF (a CR stays); valid until the next come. */
export async function* readLines(input: AsyncIterable<Uint8Array | string>): AsyncGenerator<Buffer[]> {
  const partialLine: Buffer[] = [];
  let partialBytes = 0;
  for await (const piece of input) {
    const chunk =
      typeof piece === 'string' ? Buffer.from(piece) : Buffer.from(piece.buffer, piece.byteOffset, piece.length);
    const lines: Buffer[] = [];
    let start = 0;
    for (let end = chunk.indexOf(LF); end !== -1; end = chunk.indexOf(LF, start)) {
      const part = chunk.subarray(start, end);
      lines.push(partialLine.length === 0 ? part : Buffer.concat([...partialLine.splice(0), part]));
      partialBytes = 0;
      start = end + 1;
    }
    if (lines.length > 0) yield lines;
    if (start === chunk.length) continue;
    partialLine.push(Buffer.from(chunk.subarray(start)));
    partialBytes += chunk.length - start;
    if (partialBytes > MAX_LINE_BYTES)
      throw configError('A line is longer than 64 MiB, the most that is read: shorten it.');
  }
  if (partialLine.length > 0) yield [Buffer.concat(partialLine)];
}

/** The whole of a stream whose `start` was read already. Its end, also an early one, ends that stream. */
export async function* withStart(
  start: Uint8Array,
  rest: AsyncGenerator<Uint8Array, void, undefined>,
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    if (start.length > 0) yield start;
    yield* rest;
  } finally {
    await rest.return();
  }
}
