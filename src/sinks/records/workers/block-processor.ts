import { closeSync, openSync } from 'node:fs';
import { defect } from '../../../base/errors.ts';
import { COLUMN_SHIFT, RowTokenizer, STRIDE } from '../../../csv/tokenizer.ts';
import { headerColumns } from '../../../schema/groups.ts';
import { isNull } from '../../../types/list-text.ts';
import { LineBuffer } from '../encode/line-buffer.ts';
import { RecordEncoder } from '../encode/record-encoder.ts';
import { hashBytes, WORDS } from '../keys/hash-bytes.ts';
import { RowKey } from '../keys/row-key.ts';
import { keyNumber } from '../keys/window-keys.ts';
import { BlockMemory } from './block-memory.ts';
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
  type Task,
  type TaskResult,
} from './task.ts';

const FIRST_WORDS_BYTES = 1 << 16;
const FIRST_LINES_BYTES = 1 << 20;

/** Runs the tasks of one file, in the main thread or in a worker. */
export class BlockProcessor {
  readonly #memory: BlockMemory;
  readonly #tokenizer: RowTokenizer;
  readonly #file: number;
  readonly #encoders: readonly RecordEncoder[];
  readonly #streams: FileJob['streams'];
  readonly #isItem: Uint8Array;
  readonly #key: RowKey;

  constructor(job: FileJob) {
    this.#streams = job.streams;
    this.#encoders = job.streams.map((plan) => new RecordEncoder(plan, job.evidence, job.timezone, job.emittedAt));
    this.#isItem = Uint8Array.from(headerColumns(job.header), ({ group }) => (group.endsWith('_item') ? 1 : 0));
    this.#key = new RowKey(job.header);
    this.#memory = new BlockMemory(this.#encoders);
    this.#tokenizer = new RowTokenizer(this.#memory.simd);
    this.#file = openSync(job.path, 'r');
  }

  close(): void {
    closeSync(this.#file);
    this.#memory.release();
  }

  run(task: Task): TaskResult {
    return task.kind === 'hash' ? this.#hash(task) : this.#encode(task);
  }

  /** Calls `each` after the tokenizer has read a row of the block, which ends at `end`. */
  #rows(task: Task, end: number, each: (bytes: Uint8Array<ArrayBuffer>, row: number) => void): number {
    const { bytes, start } = this.#memory;
    let rows = 0;
    for (let at = start; at < end; rows++) {
      const next = this.#tokenizer.next(bytes, at, end, true);
      if (next < 0) throw defect(`Row ${rows + 1} behind byte ${task.from} of a verified export cannot be read.`);
      each(bytes, rows);
      at = next;
    }
    return rows;
  }

  #hash(task: HashTask): HashedBlock {
    let words = new Uint32Array(task.spare ?? new ArrayBuffer(FIRST_WORDS_BYTES));
    const key = this.#key;
    const numbered: string[] = [];
    const end = this.#memory.read(this.#file, task.from, task.to);
    const rows = this.#rows(task, end, (bytes, row) => {
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
    const { events, ordinals, reserved } = task;
    for (const encoder of this.#encoders) {
      encoder.records = 0;
      encoder.rescued.fill(0);
    }
    const end = this.#memory.read(this.#file, task.from, task.to);
    const output = new LineBuffer(task.spare ?? new ArrayBuffer(FIRST_LINES_BYTES), this.#memory.staging);
    this.#rows(task, end, (bytes, row) => {
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
      ...output.finish(),
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
