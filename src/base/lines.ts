import { LF } from './ascii.ts';
import { configError } from './errors.ts';

const MAX_LINE_BYTES = 64 * 1024 * 1024;

/** Yields with each chunk the lines that it completes, without line ends; valid until the next are requested. */
export async function* linesOf(input: AsyncIterable<Uint8Array | string>): AsyncGenerator<Buffer[]> {
  const begun: Buffer[] = [];
  let begunBytes = 0;
  for await (const piece of input) {
    const chunk =
      typeof piece === 'string' ? Buffer.from(piece) : Buffer.from(piece.buffer, piece.byteOffset, piece.length);
    const lines: Buffer[] = [];
    let start = 0;
    for (let end = chunk.indexOf(LF); end !== -1; end = chunk.indexOf(LF, start)) {
      const part = chunk.subarray(start, end);
      lines.push(begun.length === 0 ? part : Buffer.concat([...begun.splice(0), part]));
      begunBytes = 0;
      start = end + 1;
    }
    if (lines.length > 0) yield lines;
    if (start === chunk.length) continue;
    begun.push(Buffer.from(chunk.subarray(start)));
    begunBytes += chunk.length - start;
    if (begunBytes > MAX_LINE_BYTES) throw configError('A line of the input is longer than 64 MiB; nothing was done.');
  }
  if (begun.length > 0) yield [Buffer.concat(begun)];
}
