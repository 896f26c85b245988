import { closeSync, openSync, readSync } from 'node:fs';
import { defect } from '../../../base/errors.ts';
import { COLUMN_SHIFT, RowTokenizer, SENTINEL, STRIDE } from '../../../csv/tokenizer.ts';
import { headerColumns } from '../../../schema/groups.ts';
import { isNull } from '../../../types/list-text.ts';
import { ByteBuffer } from '../encode/byte-buffer.ts';
import { RecordEncoder } from '../encode/record-encoder.ts';
import { hashBytes, WORDS } from '../keys/hash-bytes.ts';
import { RowKey } from '../keys/row-key.ts';
import { keyNumber } from '../keys/window-keys.ts';
import {
  type EncodedBlock,
  type EncodeTask,
  type FileJob,
  HASH_STRIDE,
  type HashedBlock,
  type HashTask,
  LAST_RANK,
  NO_POSITION,
  OWN_EVENT,
  type TaskResult,
} from './task.ts';

const MARGIN = 8;
const FIRST_BUFFER_BYTES = 1 << 19;

/** Runs the tasks of one file, in the main thread or in a worker. */
export class BlockProcessor {
  readonly #tokenizer = new RowTokenizer();
  readonly #file: number;
  readonly #encoders: readonly RecordEncoder[];
  readonly #streams: FileJob['streams'];
  readonly #isItem: Uint8Array;
  readonly #key: RowKey;
  #bytes = new Uint8Array(FIRST_BUFFER_BYTES);

  constructor(job: FileJob) {
    this.#streams = job.streams;
    this.#encoders = job.streams.map((plan) => new RecordEncoder(plan, job.evidence, job.timezone, job.emittedAt));
    this.#isItem = Uint8Array.from(headerColumns(job.header), ({ group }) => (group.endsWith('_item') ? 1 : 0));
    this.#key = new RowKey(job.header);
    this.#file = openSync(job.path, 'r');
  }

  close(): void {
    closeSync(this.#file);
  }

  run(task: HashTask | EncodeTask): TaskResult {
    return task.kind === 'hash' ? this.#hash(task) : this.#encode(task);
  }

  /** Reads the block and calls `each` after the tokenizer has read a row of it. */
  #rows(task: HashTask | EncodeTask, each: (bytes: Uint8Array<ArrayBuffer>, row: number) => void): number {
    const length = this.#read(task.from, task.to);
    const bytes = this.#bytes;
    let rows = 0;
    for (let at = 0; at < length; rows++) {
      const next = this.#tokenizer.next(bytes, at, length, true);
      if (next < 0) throw defect(`Row ${rows + 1} behind byte ${task.from} of a verified export cannot be read.`);
      each(bytes, rows);
      at = next;
    }
    return rows;
  }

  #read(from: number, to: number): number {
    const length = to - from;
    if (this.#bytes.length < length + MARGIN) this.#bytes = new Uint8Array(length + MARGIN);
    for (let done = 0; done < length; ) {
      const read = readSync(this.#file, this.#bytes, done, length - done, from + done);
      if (read === 0) throw defect('A verified export became shorter while it was read.');
      done += read;
    }
    this.#bytes[length] = SENTINEL;
    return length;
  }

  #hash(task: HashTask): HashedBlock {
    let words = new Uint32Array(task.spare ?? new ArrayBuffer(FIRST_BUFFER_BYTES / 8));
    const key = this.#key;
    const numbered: string[] = [];
    const rows = this.#rows(task, (bytes, row) => {
      const k = row * HASH_STRIDE;
      if (k + HASH_STRIDE > words.length) words = larger(words);
      key.read(bytes, this.#tokenizer);
      hashBytes(key.logBytes, key.logStart, key.logEnd);
      words[k] = WORDS[0];
      words[k + 1] = WORDS[1];
      words[k + 2] = rankOf(key);
      hashBytes(key.bytes, key.start, key.end);
      words[k + 3] = WORDS[0];
      words[k + 4] = WORDS[1];
      words[k + 5] = WORDS[2];
      if (key.isNumbered) numbered.push(key.text);
    });
    return { kind: 'hash', rows, buffer: words.buffer, numbered };
  }

  #encode(task: EncodeTask): EncodedBlock {
    const output = new ByteBuffer(task.spare ?? new ArrayBuffer(FIRST_BUFFER_BYTES * 2));
    const { events, ordinals, reserved } = task;
    for (const encoder of this.#encoders) {
      encoder.records = 0;
      encoder.rescued.fill(0);
    }
    this.#rows(task, (bytes, row) => {
      this.#key.read(bytes, this.#tokenizer);
      let ordinal = ordinals === undefined ? 1 : ordinals[row];
      if (ordinal > 1 && reserved !== undefined) ordinal = keyNumber(ordinal, reserved.get(this.#key.text));
      for (let s = 0; s < this.#encoders.length; s++) {
        const name = this.#streams[s].name;
        if (name === 'event_logs' && (events === undefined || events[row] === 0)) continue;
        if (name === 'event_items' && !this.#hasItem(bytes)) continue;
        this.#encoders[s].write(bytes, this.#tokenizer, this.#key, ordinal, output);
      }
    });
    return {
      kind: 'encode',
      job: task.job,
      buffer: output.bytes.buffer,
      length: output.at,
      records: this.#encoders.map((encoder) => encoder.records),
      rescued: this.#encoders.map((encoder) => nonZero(encoder.rescued)),
    };
  }

  #hasItem(bytes: Uint8Array): boolean {
    const { cells, used } = this.#tokenizer;
    for (let k = 0; k < used; k += STRIDE) {
      if (this.#isItem[cells[k] >> COLUMN_SHIFT] === 1 && !isNull(bytes, cells[k + 1], cells[k + 2])) return true;
    }
    return false;
  }
}

function rankOf(key: RowKey): number {
  if (!key.hasLogId) return OWN_EVENT;
  const { position } = key;
  return position < 0 ? NO_POSITION : Math.min(position + 1, LAST_RANK);
}

function larger(words: Uint32Array<ArrayBuffer>): Uint32Array<ArrayBuffer> {
  const copy = new Uint32Array(words.length * 2);
  copy.set(words);
  return copy;
}

function nonZero(counts: Float64Array): (readonly [number, number])[] {
  const out: (readonly [number, number])[] = [];
  counts.forEach((count, column) => {
    if (count > 0) out.push([column, count]);
  });
  return out;
}
