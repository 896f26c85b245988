import { createReadStream } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type Day, daysOf } from '../../base/days.ts';
import { codeOf } from '../../base/errors.ts';

/** Prepared exports: a folder of `yyyy-MM-dd.csv`, or the file of each day. They are sent as they are; filters do not apply. */
export type ServedFiles = string | ReadonlyMap<Day, string>;

const READ_BYTES = 1024 * 1024;
const QUOTE = 0x22;
const NEWLINE = 0x0a;

export interface ServedFile {
  readonly path: string;
  readonly size: number;
}

/** The files of the days asked for, in order; days without one are passed over. */
export async function filesOf(served: ServedFiles, from: Day, last: Day): Promise<ServedFile[]> {
  const found: ServedFile[] = [];
  for (const day of daysOf(from, last)) {
    const path = typeof served === 'string' ? join(served, `${day}.csv`) : served.get(day);
    const size = path === undefined ? undefined : await sizeOf(path);
    if (path !== undefined && size !== undefined) found.push({ path, size });
  }
  return found;
}

/** One file whole, or several behind the header of the first: they must agree in it, and end with a newline. */
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
