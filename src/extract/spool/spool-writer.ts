import { type FileHandle, open, statfs, unlink } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import { transientError } from '../../base/errors.ts';
import { formatBytes } from '../../base/quantities.ts';
import { OWNER_FILE } from '../../fs/atomic-file.ts';
import { diskError } from '../../fs/disk-failure.ts';

/** Number of bytes that are collected before a write; each file has two such buffers. */
const BUFFER_BYTES = 1 << 20;

/** Space that a spool leaves free on its disk: this share of it, and at least `LEAST_FREE_BYTES`. */
const FREE_SHARE = 0.05;
const LEAST_FREE_BYTES = 256_000_000;
/** Number of buffers between two looks at the free space; the first look is before the first buffer. */
const BUFFERS_A_LOOK = 8;

/** Removes something from a disk that lacks space; false if there is nothing to remove. */
export type MakeRoom = () => Promise<boolean>;

export const NOTHING_TO_REMOVE: MakeRoom = async () => false;

/**
 * Writes one spool file (exclusive, mode 0600) with at most two buffers in memory. Throws a UserError for a full or
 * failing disk.
 */
export class SpoolWriter {
  readonly path: string;
  readonly #folder: string;
  readonly #file: FileHandle;
  readonly #makeRoom: MakeRoom;
  #filling = Buffer.allocUnsafeSlow(BUFFER_BYTES);
  #free = Buffer.allocUnsafeSlow(BUFFER_BYTES);
  #used = 0;
  #crc = 0;
  #flushes = 0;
  #writing: Promise<void> = Promise.resolve();
  #closed = false;

  private constructor(path: string, folder: string, file: FileHandle, makeRoom: MakeRoom) {
    this.path = path;
    this.#folder = folder;
    this.#file = file;
    this.#makeRoom = makeRoom;
  }

  static async create(path: string, folder: string, makeRoom = NOTHING_TO_REMOVE): Promise<SpoolWriter> {
    try {
      return new SpoolWriter(path, folder, await open(path, 'wx', OWNER_FILE), makeRoom);
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

  /** Writes what is buffered, closes the file (without fsync) and returns the CRC-32 of its contents. */
  async finish(): Promise<number> {
    await this.#flush();
    await this.#writing;
    await this.close();
    return this.#crc;
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#writing.catch(() => {});
    await this.#file.close().catch(() => {});
  }

  /** Closes and removes the file, if it still has its first name; may be called at any time, more than once. */
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
    if (this.#flushes++ % BUFFERS_A_LOOK === 0) await leaveFree(this.#folder, this.#makeRoom);
    const full = this.#filling;
    const length = this.#used;
    this.#filling = this.#free;
    this.#free = full;
    this.#used = 0;
    this.#crc = crc32(full.subarray(0, length), this.#crc);
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

/**
 * Waits until the disk has as much space left as a spool leaves free. Throws a UserError that names the folder if it
 * has less and nothing can be removed.
 */
async function leaveFree(folder: string, makeRoom: MakeRoom): Promise<void> {
  const { bavail, blocks, bsize } = await statfs(folder);
  const [free, least] = [bavail * bsize, Math.max(blocks * bsize * FREE_SHARE, LEAST_FREE_BYTES)];
  if (free >= least) return;
  if (await makeRoom()) return leaveFree(folder, makeRoom);
  throw transientError(
    `The disk of the spool folder ${folder} has ${formatBytes(free)} left, and ${formatBytes(least)} of it are kept free: make room or set ` +
      'spool_dir to a folder on another disk. The download was given up and removed; what was stored before is complete.',
    { where: { file: folder }, internal: 'spool: too little space' },
  );
}

/** A system error of the spool folder as a UserError that names the folder; any other error unchanged. */
export const spoolError = (error: unknown, folder: string): unknown =>
  diskError(error, {
    what: `the spool folder ${folder}`,
    path: folder,
    remedy: 'set spool_dir to a folder on another disk that this user may write to',
    consequence: 'what was stored before is complete, the next run goes on from there',
  });
