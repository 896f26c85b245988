import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import type { Writable } from 'node:stream';
import { DAY_MS } from '../../base/durations.ts';
import { codeOf } from '../../base/errors.ts';
import { moveFile, OWNER_FILE, removeTemporaries, replaceablePath, temporaryPathOf } from '../../fs/atomic-file.ts';
import { diskError } from '../../fs/disk-failure.ts';

/** Age (ms) from which an unfinished file is abandoned: a younger one's run may wait for its first day. */
const ABANDONED_MS = DAY_MS;

/** A file or a stream that receives bytes. */
export interface ArrowOutput {
  /** Resolves once bytes may be written; throws the system's error. */
  ready(): Promise<void>;
  /** Called on success: a file gets its final name. */
  end(): Promise<void>;
  /** Called on failure: an unfinished file is removed. */
  drop(): Promise<void>;
  readonly stream: Writable;
}

/** An output for a stream that the caller owns and closes. */
export function streamOutput(stream: Writable): ArrowOutput {
  return { stream, async ready() {}, async end() {}, async drop() {} };
}

function finalPath(path: string): string | undefined {
  try {
    return replaceablePath(path);
  } catch (error) {
    throw diskError(error, { what: path, path });
  }
}

/**
 * An output for a file that appears under its name only when it is complete; a device or a pipe is written directly.
 * Files that killed runs left unfinished are removed. `now` is in ms. Throws a UserError for a path that cannot be one
 * of an output.
 */
export function fileOutput(path: string, now: number): ArrowOutput {
  const file = finalPath(path);
  const temporary = temporaryPathOf(file ?? path);
  const stream =
    file === undefined ? createWriteStream(path) : createWriteStream(temporary, { flags: 'wx', mode: OWNER_FILE });
  const opened = once(stream, 'open');
  const closed = once(stream, 'close');
  for (const event of [opened, closed]) event.catch(() => {});
  return {
    stream,
    async ready() {
      await opened;
      if (file === undefined) return;
      await removeTemporaries(file, now, ABANDONED_MS);
      // Without this check only the rename at the very end would find that a folder has this name.
      const found = await stat(file).catch(() => undefined);
      if (found?.isDirectory()) throw Object.assign(new Error(`${path} is a folder`), { code: 'EISDIR' });
    },
    async end() {
      stream.end();
      await closed;
      if (file !== undefined) await moveFile(temporary, file);
    },
    async drop() {
      stream.destroy();
      await rm(temporary, { force: true });
    },
  };
}

/** True if the reader closed its end of the stream, which is no failure of this program. */
export function isReaderGone(error: unknown): boolean {
  return ['EPIPE', 'ERR_STREAM_DESTROYED', 'ERR_STREAM_WRITE_AFTER_END'].includes(codeOf(error) ?? '');
}
