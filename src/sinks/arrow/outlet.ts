import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { rename, rm, stat } from 'node:fs/promises';
import type { Writable } from 'node:stream';
import { AsyncByteQueue, type RecordBatch, RecordBatchStreamWriter, type Schema } from 'apache-arrow';
import { codeOf } from '../../base/errors.ts';

const OWNER_FILE = 0o600;

/** Where the bytes of a stream go. */
export interface Outlet {
  /** Resolves once bytes may be written; throws what the system said against it. */
  ready(): Promise<void>;
  /** Ends what is there with success: a file takes its name. */
  end(): Promise<void>;
  /** Gives up: an unfinished file goes. */
  drop(): Promise<void>;
  readonly stream: Writable;
}

/** A stream that somebody else owns, and closes. */
export function outletTo(stream: Writable): Outlet {
  return { stream, async ready() {}, async end() {}, async drop() {} };
}

/** A file that appears under its name once it is whole. */
export function outletToFile(path: string): Outlet {
  const waiting = `${path}.part`;
  const stream = createWriteStream(waiting, { mode: OWNER_FILE });
  const opened = once(stream, 'open');
  const closed = once(stream, 'close');
  for (const event of [opened, closed]) event.catch(() => {});
  return {
    stream,
    async ready() {
      await opened;
      // What is to take the name of a folder would only be refused at the very end.
      const found = await stat(path).catch(() => undefined);
      if (found?.isDirectory()) throw Object.assign(new Error(`${path} is a folder`), { code: 'EISDIR' });
    },
    async end() {
      stream.end();
      await closed;
      await rename(waiting, path);
    },
    async drop() {
      stream.destroy();
      await rm(waiting, { force: true });
    },
  };
}

/** Takes what Arrow's writer writes, at once and in order. */
class Collector extends AsyncByteQueue {
  parts: Uint8Array[] = [];

  override write(part: Uint8Array): void {
    this.parts.push(part);
  }
}

/** An Arrow IPC stream into a Node stream, one batch after another: `write` resolves once the reader's side took it. */
export class IpcStream {
  readonly #collector = new Collector();
  readonly #writer = new RecordBatchStreamWriter();
  readonly #out: Writable;
  #failed: Error | undefined;
  readonly #onError = (error: Error) => {
    this.#failed ??= error;
  };

  constructor(out: Writable, schema: Schema) {
    this.#out = out;
    out.on('error', this.#onError);
    this.#writer.reset(this.#collector, schema);
  }

  write(batch: RecordBatch): Promise<void> {
    this.#writer.write(batch);
    return this.#flush();
  }

  async end(): Promise<void> {
    this.#writer.finish();
    await this.#flush();
  }

  /** Stops listening to the stream, which may live on. */
  release(): void {
    this.#out.off('error', this.#onError);
  }

  async #flush(): Promise<void> {
    const { parts } = this.#collector;
    this.#collector.parts = [];
    if (this.#failed) throw this.#failed;
    if (parts.length === 0) return;
    const last = parts.length - 1;
    this.#out.cork();
    const written = new Promise<void>((resolve, reject) => {
      parts.forEach((part, i) => {
        this.#out.write(part, i === last ? (error) => (error ? reject(error) : resolve()) : undefined);
      });
    });
    this.#out.uncork();
    await written;
  }
}

/** True when whoever read the stream has gone away, which is theirs to do. */
export function isReaderGone(error: unknown): boolean {
  return ['EPIPE', 'ERR_STREAM_DESTROYED', 'ERR_STREAM_WRITE_AFTER_END'].includes(codeOf(error) ?? '');
}
