import { createReadStream } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type Day, daysOf } from '../../base/days.ts';
import { codeOf } from '../../base/errors.ts';

/** Prepared exports, sent unchanged and without filters: a folder of `yyyy-MM-dd.csv`, or the file of each day. */
export type ServedFiles = string | ReadonlyMap<Day, string>;

const READ_BYTES = 1024 * 1024;
const QUOTE = 0x22;
const NEWLINE = 0x0a;

export interface ServedFile {
  readonly path: string;
  readonly size: number;
}

/** The files of the requested days, in order; days without a file are skipped. */
export async function filesOf(served: ServedFiles, from: Day, last: Day): Promise<ServedFile[]> {
  const found: ServedFile[] = [];
  for (const day of daysOf(from, last)) {
    const path = typeof served === 'string' ? join(served, `${day}.csv`) : served.get(day);
    const size = path === undefined ? undefined : await sizeOf(path);
    if (path !== undefined && size !== undefined) found.push({ path, size });
  }
  return found;
}

/** Yields one file, or several of the same header with that of the first alone; each ends with a newline. */
export async function* bytesOf(files: readonly ServedFile[]): AsyncGenerator<Buffer, void, undefined> {
  for (const [i, file] of files.entries()) {
    const start = i === 0 ? 0 : await headerLength(file.path);
    yield* createReadStream(file.path, { start, highWaterMark: READ_BYTES }) as AsyncIterable<Buffer>;
  }
}

async function sizeOf(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

async function headerLength(path: string): Promise<number> {
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(READ_BYTES), 0, READ_BYTES, 0);
    let isQuoted = false;
    for (let i = 0; i < bytesRead; i++) {
      if (buffer[i] === QUOTE) isQuoted = !isQuoted;
      else if (buffer[i] === NEWLINE && !isQuoted) return i + 1;
    }
    return bytesRead;
  } finally {
    await file.close();
  }
}
