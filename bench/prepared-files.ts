import { createReadStream, existsSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { LF, QUOTE } from '../src/base/ascii.ts';
import { type Day, daysOf } from '../src/base/days.ts';

const READ_BYTES = 1024 * 1024;

/** Gives the bodies of exports from a folder of `yyyy-MM-dd.csv`, of one header, as they are. A day may have none. */
export const preparedFiles =
  (folder: string) =>
  (from: Day, last: Day): AsyncIterable<Buffer> | undefined => {
    const files = daysOf(from, last)
      .map((day) => join(folder, `${day}.csv`))
      .filter((path) => existsSync(path));
    return files.length === 0 ? undefined : bytesOf(files);
  };

/** Yields the files one after the other, with the header of the first alone. */
async function* bytesOf(files: readonly string[]): AsyncGenerator<Buffer, void, undefined> {
  for (const [i, path] of files.entries()) {
    const start = i === 0 ? 0 : await headerLength(path);
    yield* createReadStream(path, { start, highWaterMark: READ_BYTES }) as AsyncIterable<Buffer>;
  }
}

async function headerLength(path: string): Promise<number> {
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(READ_BYTES), 0, READ_BYTES, 0);
    let isQuoted = false;
    for (let i = 0; i < bytesRead; i++) {
      if (buffer[i] === QUOTE) isQuoted = !isQuoted;
      else if (buffer[i] === LF && !isQuoted) return i + 1;
    }
    return bytesRead;
  } finally {
    await file.close();
  }
}
