import { closeSync, read, readSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { promisify } from 'node:util';
import { codeOf, defect, transientFailure } from '../../base/errors.ts';
import { openScratch, writeScratch } from './scratch.ts';

const readAt = promisify(read);

/** kind (1), stream (2), length of the payload (4), decision (1), offset of the first equal step (6), then the payload. */
const HEAD_BYTES = 14;
const DECISION_AT = 7;
const FIRST_AT = 8;
const FIRST_BYTES = 6;
const BUFFER_BYTES = 256 * 1024;

/** Kinds of steps. */
export const STEP = { id: 1, refused: 2, state: 3 } as const;

export interface RawStep {
  readonly kind: number;
  readonly stream: number;
  /** Offset of the step in the file. */
  readonly at: number;
  /** Offset of the first step with the same id; its own where there is none before it. */
  readonly first: number;
  /** As it stood when the step was read. */
  readonly decision: number;
  readonly payload: Buffer;
}

/**
 * Steps in an unlinked file on disk: appended 256 KiB at a time, then read any number of times. What becomes known later
 * about a step (its decision, the step that it repeats) is written into the step.
 */
export class StepFile {
  readonly #fd: number;
  readonly #buffer = Buffer.allocUnsafe(BUFFER_BYTES);
  #used = 0;
  #flushed = 0;

  constructor(folder: string) {
    this.#fd = openScratch(folder);
  }

  /** Returns the offset of the step. */
  add(kind: number, stream: number, payload: Uint8Array): number {
    if (this.#used + HEAD_BYTES + payload.length > BUFFER_BYTES) this.flush();
    const at = this.#flushed + this.#used;
    this.#buffer.writeUInt8(kind, this.#used);
    this.#buffer.writeUInt16LE(stream, this.#used + 1);
    this.#buffer.writeUInt32LE(payload.length, this.#used + 3);
    this.#buffer.writeUInt8(0, this.#used + DECISION_AT);
    this.#buffer.writeUIntLE(at, this.#used + FIRST_AT, FIRST_BYTES);
    this.#used += HEAD_BYTES;
    if (this.#used + payload.length <= BUFFER_BYTES) {
      this.#buffer.set(payload, this.#used);
      this.#used += payload.length;
      return at;
    }
    this.flush();
    writeScratch(this.#fd, payload, this.#flushed);
    this.#flushed += payload.length;
    return at;
  }

  /** After the last `add`, and before anything is read or marked. */
  flush(): void {
    writeScratch(this.#fd, this.#buffer.subarray(0, this.#used), this.#flushed);
    this.#flushed += this.#used;
    this.#used = 0;
  }

  /** Notes that the step repeats an earlier one. */
  setFirst(at: number, first: number): void {
    const bytes = Buffer.allocUnsafe(FIRST_BYTES);
    bytes.writeUIntLE(first, 0, FIRST_BYTES);
    this.#patch(bytes, at + FIRST_AT);
  }

  /** `decision`: from 1 to 255; 0 is none. */
  setDecision(at: number, decision: number): void {
    this.#patch(Uint8Array.of(decision), at + DECISION_AT);
  }

  decision(at: number): number {
    const byte = Buffer.allocUnsafe(1);
    if (readSync(this.#fd, byte, 0, 1, at + DECISION_AT) !== 1) throw cut();
    return byte[0];
  }

  /** The payload of a step, of the given length. */
  async payload(at: number, length: number): Promise<Buffer> {
    const bytes = await this.#bytes(at + HEAD_BYTES, length);
    if (bytes.length < length) throw cut();
    return bytes;
  }

  /** Every step in order. */
  async *steps(): AsyncGenerator<RawStep> {
    let buffer: Buffer = Buffer.alloc(0);
    let [start, base] = [0, 0];
    while (base + start < this.#flushed) {
      const left = buffer.length - start;
      const length = left < HEAD_BYTES ? 0 : buffer.readUInt32LE(start + 3);
      const needed = HEAD_BYTES + length;
      if (left >= needed) {
        yield stepOf(buffer.subarray(start, start + needed), base + start);
        start += needed;
        continue;
      }
      base += start;
      start = 0;
      buffer = await this.#bytes(base, Math.max(BUFFER_BYTES, needed));
      if (buffer.length < needed) throw cut();
    }
  }

  close(): void {
    closeSync(this.#fd);
  }

  /** Bytes of the file, as many as there are. */
  async #bytes(at: number, length: number): Promise<Buffer> {
    const buffer = Buffer.allocUnsafe(length);
    let done = 0;
    while (done < length) {
      const { bytesRead } = await readAt(this.#fd, buffer, done, length - done, at + done);
      if (bytesRead === 0) break;
      done += bytesRead;
    }
    return buffer.subarray(0, done);
  }

  #patch(bytes: Uint8Array, at: number): void {
    try {
      if (writeSync(this.#fd, bytes, 0, bytes.length, at) === bytes.length) return;
    } catch (cause) {
      const code = codeOf(cause) ?? 'no code';
      throw transientFailure(
        `The list in the temporary folder ${tmpdir()} could not be kept up to date (${code}); the run was stopped. Run again: what is open is asked for again.`,
        { cause },
      );
    }
    throw cut();
  }
}

function stepOf(bytes: Buffer, at: number): RawStep {
  return {
    kind: bytes.readUInt8(0),
    stream: bytes.readUInt16LE(1),
    at,
    decision: bytes.readUInt8(DECISION_AT),
    first: bytes.readUIntLE(FIRST_AT, FIRST_BYTES),
    payload: bytes.subarray(HEAD_BYTES),
  };
}

const cut = () => defect('The list on disk is shorter than what was written to it.');
