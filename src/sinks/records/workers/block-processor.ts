import { COLUMN_SHIFT, STRIDE } from '../../../csv/tokenizer.ts';
import { headerColumns } from '../../../schema/groups.ts';
import { isNull } from '../../../types/json-text.ts';
import { BlockReader } from '../../rows/block-reader.ts';
import { LAST_RANK, NO_POSITION, OWN_EVENT } from '../../rows/keys/event-rows.ts';
import { hashBytes, WORDS } from '../../rows/keys/hash-bytes.ts';
import { hashRows } from '../../rows/keys/hashed-rows.ts';
import { RowKey } from '../../rows/keys/row-key.ts';
import { keyNumber } from '../../rows/keys/window-keys.ts';
import { LineBuffer } from '../encode/line-buffer.ts';
import { RecordEncoder } from '../encode/record-encoder.ts';
import { StagedMemory } from './staged-memory.ts';
import type { EncodedBlock, EncodeTask, FileJob, HashedBlock, HashTask, Task, TaskResult } from './task.ts';

const FIRST_LINES_BYTES = 1 << 20;

/** Runs the tasks of one file, in the main thread or in a worker. */
export class BlockProcessor {
  readonly #memory: StagedMemory;
  readonly #reader: BlockReader;
  readonly #encoders: readonly RecordEncoder[];
  readonly #streams: FileJob['streams'];
  readonly #isItem: Uint8Array;
  readonly #key: RowKey;

  constructor(job: FileJob) {
    this.#streams = job.streams;
    this.#encoders = job.streams.map((plan) => new RecordEncoder(plan, job.evidence, job.timezone, job.emittedAt));
    this.#isItem = Uint8Array.from(headerColumns(job.header), ({ group }) => (group.endsWith('_item') ? 1 : 0));
    this.#key = new RowKey(job.header);
    this.#memory = new StagedMemory(this.#encoders);
    this.#reader = new BlockReader(job.path, this.#memory);
  }

  close(): void {
    this.#reader.close();
    this.#memory.release();
  }

  run(task: Task): TaskResult {
    return task.kind === 'hash' ? this.#hash(task) : this.#encode(task);
  }

  #hash(task: HashTask): HashedBlock {
    const key = this.#key;
    const hashed = hashRows(this.#reader, task, key, task.spare, (words, k, bytes) => {
      key.read(bytes, this.#reader.tokenizer);
      hashBytes(key.logBytes, key.logStart, key.logEnd);
      words[k] = WORDS[0];
      words[k + 1] = WORDS[1];
      words[k + 2] = rankOf(key);
    });
    return { kind: 'hash', ...hashed };
  }

  #encode(task: EncodeTask): EncodedBlock {
    const { events, ordinals, reserved } = task;
    for (const encoder of this.#encoders) {
      encoder.records = 0;
      encoder.rescued.fill(0);
    }
    this.#reader.load(task);
    const output = new LineBuffer(task.spare ?? new ArrayBuffer(FIRST_LINES_BYTES), this.#memory.staging);
    const { tokenizer } = this.#reader;
    this.#reader.rows((bytes, row) => {
      this.#key.read(bytes, tokenizer);
      let ordinal = ordinals === undefined ? 1 : ordinals[row];
      // Stryker disable next-line ConditionalExpression,EqualityOperator: the first row of a key has no number, whatever is reserved
      if (ordinal > 1 && reserved !== undefined) ordinal = keyNumber(ordinal, reserved.get(this.#key.text));
      for (let s = 0; s < this.#encoders.length; s++) {
        const name = this.#streams[s].name;
        if (name === 'event_logs' && (events === undefined || events[row] === 0)) continue;
        if (name === 'event_items' && !this.#hasItem(bytes)) continue;
        this.#encoders[s].write(bytes, tokenizer, this.#key, ordinal, output);
      }
    });
    return {
      kind: 'encode',
      fileIndex: task.fileIndex,
      ...output.finish(),
      records: this.#encoders.map((encoder) => encoder.records),
      rescued: this.#encoders.map((encoder) => nonZero(encoder.rescued)),
    };
  }

  #hasItem(bytes: Uint8Array): boolean {
    const { cells, used } = this.#reader.tokenizer;
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

function nonZero(counts: Float64Array): (readonly [number, number])[] {
  const out: (readonly [number, number])[] = [];
  counts.forEach((count, column) => {
    if (count > 0) out.push([column, count]);
  });
  return out;
}
