import { type FileHandle, open, unlink } from 'node:fs/promises';
import { OWNER_FILE } from '../../fs/atomic-file.ts';
import { diskError } from '../../fs/disk-failure.ts';

/** Number of bytes that are collected before a write; each file has two such buffers. */
const BUFFER_BYTES = 1 << 20;

/**
 * Writes one spool file (exclusive, mode 0600) with at most two buffers in memory. Throws a UserError for a full or
 * failing disk.
 */
export class SpoolWriter {
  readonly path: string;
  readonly #folder: string;
  readonly #file: FileHandle;
  #filling = Buffer.allocUnsafeSlow(BUFFER_BYTES);
  #free = Buffer.allocUnsafeSlow(BUFFER_BYTES);
  #used = 0;
  #writing: Promise<void> = Promise.resolve();
  #closed = false;

  private constructor(path: string, folder: string, file: FileHandle) {
    this.path = path;
    this.#folder = folder;
    this.#file = file;
  }

  static async create(path: string, folder: string): Promise<SpoolWriter> {
    try {
      return new SpoolWriter(path, folder, await open(path, 'wx', OWNER_FILE));
    } catch (error) {
      throw spoolError(error, folder);
    }
  }

  /**
   * Copies the chunk into the buffer. Returns a promise only when a buffer is full: wait for it before the next call.
   */
  write(chunk: Uint8Array): Promise<void> | undefined {
    if (chunk.length <= BUFFER_BYTES - this.#used) {
      this.#filling.set(chunk, this.#used);
      this.#used += chunk.length;
      return undefined;
    }
    return this.#writeAcrossBuffers(chunk);
  }

  /** Writes what is buffered and closes the file, without fsync. */
  async finish(): Promise<void> {
    await this.#flush();
    await this.#writing;
    await this.close();
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#writing.catch(() => {});
    await this.#file.close().catch(() => {});
  }

  /** Closes and removes the file; may be called at any time, more than once. */
  async drop(): Promise<void> {
    await this.close();
    await unlink(this.path).catch(() => {});
  }

  async #writeAcrossBuffers(chunk: Uint8Array): Promise<void> {
    for (let at = 0; at < chunk.length; ) {
      const count = Math.min(chunk.length - at, BUFFER_BYTES - this.#used);
      this.#filling.set(chunk.subarray(at, at + count), this.#used);
      this.#used += count;
      at += count;
      if (this.#used === BUFFER_BYTES) await this.#flush();
    }
  }

  async #flush(): Promise<void> {
    await this.#writing;
    const full = this.#filling;
    const length = this.#used;
    this.#filling = this.#free;
    this.#free = full;
    this.#used = 0;
    this.#writing = this.#writeAll(full, length);
    this.#writing.catch(() => {});
  }

  async #writeAll(buffer: Uint8Array, length: number): Promise<void> {
    try {
      for (let at = 0; at < length; ) at += (await this.#file.write(buffer, at, length - at)).bytesWritten;
    } catch (error) {
      throw spoolError(error, this.#folder);
    }
  }
}

/** A system error of the spool folder as a UserError that names the folder; any other error unchanged. */
export const spoolError = (error: unknown, folder: string): unknown =>
  diskError(error, {
    what: `the spool folder ${folder}`,
    path: folder,
    remedy: 'set spool_dir to a folder on another disk that this user may write to',
    consequence: 'what was stored before is complete, the next run goes on from there',
  });
