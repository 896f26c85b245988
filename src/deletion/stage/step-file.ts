import { closeSync, read } from 'node:fs';
import { promisify } from 'node:util';
import { defect } from '../../base/errors.ts';
import { openScratch, writeScratch } from './scratch.ts';

const readAt = promisify(read);

/** kind (1), stream (2), length (4), then the payload. */
const HEAD_BYTES = 7;
const BUFFER_BYTES = 256 * 1024;

export const STEP = { id: 1, refused: 2, state: 3 } as const;
/** In place of a stream: the state concerns them all. */
export const EVERY_STREAM = 0xffff;

export interface RawStep {
  readonly kind: number;
  readonly stream: number;
  /** Where the payload begins in the file. */
  readonly at: number;
  readonly payload: Buffer;
}

/** Steps on disk: appended 256 KiB at a time, then read as often as wanted. */
export class StepFile {
  readonly #fd: number;
  readonly #buffer = Buffer.allocUnsafe(BUFFER_BYTES);
  #used = 0;

  constructor(folder: string) {
    this.#fd = openScratch(folder);
  }

  add(kind: number, stream: number, payload: Uint8Array): void {
    if (this.#used + HEAD_BYTES + payload.length > BUFFER_BYTES) this.flush();
    this.#buffer.writeUInt8(kind, this.#used);
    this.#buffer.writeUInt16LE(stream, this.#used + 1);
    this.#buffer.writeUInt32LE(payload.length, this.#used + 3);
    this.#used += HEAD_BYTES;
    if (this.#used + payload.length <= BUFFER_BYTES) {
      this.#buffer.set(payload, this.#used);
      this.#used += payload.length;
      return;
    }
    this.flush();
    writeScratch(this.#fd, payload);
  }

  /** After the last `add`. */
  flush(): void {
    writeScratch(this.#fd, this.#buffer.subarray(0, this.#used));
    this.#used = 0;
  }

  /** Bytes of the file, as many as there are. */
  async bytes(at: number, length: number): Promise<Buffer> {
    const buffer = Buffer.allocUnsafe(length);
    let done = 0;
    while (done < length) {
      const { bytesRead } = await readAt(this.#fd, buffer, done, length - done, at + done);
      if (bytesRead === 0) break;
      done += bytesRead;
    }
    return buffer.subarray(0, done);
  }

  /** Every step in order. */
  async *steps(): AsyncGenerator<RawStep> {
    let buffer: Buffer = Buffer.alloc(0);
    let [start, base] = [0, 0];
    for (;;) {
      const length = buffer.length - start < HEAD_BYTES ? 0 : buffer.readUInt32LE(start + 3);
      const needed = HEAD_BYTES + length;
      if (buffer.length - start >= needed) {
        const at = start + HEAD_BYTES;
        const payload = buffer.subarray(at, at + length);
        yield { kind: buffer.readUInt8(start), stream: buffer.readUInt16LE(start + 1), at: base + at, payload };
        start += needed;
        continue;
      }
      base += start;
      const isCut = start < buffer.length;
      buffer = await this.bytes(base, Math.max(BUFFER_BYTES, needed));
      start = 0;
      if (buffer.length === 0 && !isCut) return;
      if (buffer.length < needed) throw defect('The stage on disk is shorter than what was written to it.');
    }
  }

  close(): void {
    closeSync(this.#fd);
  }
}
