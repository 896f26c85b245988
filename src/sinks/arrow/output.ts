import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import type { Writable } from 'node:stream';
import { RecordBatchStreamWriter, type Schema } from 'apache-arrow';
import { codeOf } from '../../base/errors.ts';
import { moveFile, removeTemporaries, replaceablePath, temporaryPathOf } from '../../fs/atomic-file.ts';

const OWNER_FILE = 0o600;
/** A run of today may still be waiting for its first window. */
const ABANDONED_MS = 86_400_000;

/** Receives the bytes of a stream. */
export interface Output {
  /** Resolves once bytes may be written; throws the system's error. */
  ready(): Promise<void>;
  /** Called on success: a file gets its final name. */
  end(): Promise<void>;
  /** Called on failure: an unfinished file is removed. */
  drop(): Promise<void>;
  readonly stream: Writable;
}

/** A stream that the caller owns and closes. */
export function streamOutput(stream: Writable): Output {
  return { stream, async ready() {}, async end() {}, async drop() {} };
}

/**
 * A file that appears under its name only when it is complete; a device or a pipe is written as it is. What killed runs left of a
 * file is removed. `now`: in ms.
 */
export function fileOutput(path: string, now: number): Output {
  const file = replaceablePath(path);
  const draft = temporaryPathOf(file ?? path);
  const stream =
    file === undefined ? createWriteStream(path) : createWriteStream(draft, { flags: 'wx', mode: OWNER_FILE });
  const opened = once(stream, 'open');
  const closed = once(stream, 'close');
  for (const event of [opened, closed]) event.catch(() => {});
  return {
    stream,
    async ready() {
      await opened;
      if (file === undefined) return;
      await removeTemporaries(file, now, ABANDONED_MS);
      // Without this check the rename at the very end is the first thing that a folder of this name refuses.
      const found = await stat(file).catch(() => undefined);
      if (found?.isDirectory()) throw Object.assign(new Error(`${path} is a folder`), { code: 'EISDIR' });
    },
    async end() {
      stream.end();
      await closed;
      if (file !== undefined) await moveFile(draft, file);
    },
    async drop() {
      stream.destroy();
      await rm(draft, { force: true });
    },
  };
}

/** What ends a stream: a message without content. */
export const END_BYTES = 8;

/** The messages of an Arrow IPC stream, into a Node stream: `write` resolves once the reader's side took them. */
export class IpcStream {
  /** The schema, which is written with what comes first. */
  #begin: Uint8Array | undefined;
  readonly #end: Uint8Array;
  readonly #out: Writable;
  #failed: Error | undefined;
  readonly #onError = (error: Error) => {
    this.#failed ??= error;
  };

  constructor(out: Writable, schema: Schema) {
    this.#out = out;
    out.on('error', this.#onError);
    const writer = new RecordBatchStreamWriter();
    writer.reset(undefined, schema);
    writer.finish();
    const empty = writer.toUint8Array(true);
    this.#begin = empty.subarray(0, -END_BYTES);
    this.#end = empty.subarray(-END_BYTES);
  }

  /** Writes whole messages. */
  async write(messages: Uint8Array): Promise<void> {
    if (this.#failed) throw this.#failed;
    if (this.#begin !== undefined) this.#out.write(this.#begin);
    this.#begin = undefined;
    await new Promise<void>((resolve, reject) => {
      this.#out.write(messages, (error) => (error ? reject(error) : resolve()));
    });
  }

  end(): Promise<void> {
    return this.write(this.#end);
  }

  /** Removes its listener from the stream, which may be used further. */
  release(): void {
    this.#out.off('error', this.#onError);
  }
}

/** True when the reader closed its end of the stream: no failure of this program. */
export function isReaderGone(error: unknown): boolean {
  return ['EPIPE', 'ERR_STREAM_DESTROYED', 'ERR_STREAM_WRITE_AFTER_END'].includes(codeOf(error) ?? '');
}
