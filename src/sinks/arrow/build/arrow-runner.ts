import { isDeepStrictEqual } from 'node:util';
import { defect } from '../../../base/errors.ts';
import { Zone } from '../../../types/zone.ts';
import { BlockReader } from '../../rows/block-reader.ts';
import { WORDS } from '../../rows/keys/hash-bytes.ts';
import { hashRows } from '../../rows/keys/hashed-rows.ts';
import { RowKey } from '../../rows/keys/row-key.ts';
import { keyNumber } from '../../rows/keys/window-keys.ts';
import type { Runner } from '../../workers/runner.ts';
import { BatchBuilder } from './batch-builder.ts';
import { ColumnMemory } from './column-memory.ts';
import type { PackedBatch } from './packed.ts';
import { RowBuilder } from './row-builder.ts';
import { RowIdentity } from './row-date.ts';
import type {
  ArrowJob,
  ArrowResult,
  ArrowTask,
  BuiltBatches,
  ColumnsTask,
  FilePlan,
  HashedBlock,
  HashTask,
  KeyedBlock,
} from './task.ts';

/** The current file. */
interface OpenFile {
  readonly number: number;
  readonly plan: FilePlan;
  readonly reader: BlockReader;
  readonly key: RowKey;
  readonly rows: RowBuilder;
}

/** Makes record batches of the rows of files, in the main thread or in a worker. */
export class ArrowRunner implements Runner<ArrowJob, ArrowTask, ArrowResult> {
  #job: ArrowJob | undefined;
  #zone: Zone | undefined;
  #memory: ColumnMemory | undefined;
  #batch: BatchBuilder | undefined;
  #file: OpenFile | undefined;

  open(job: ArrowJob): void {
    this.close();
    // Most jobs have the columns of the one before, and a zone remembers what it was asked.
    if (job.timezone !== this.#job?.timezone || !isDeepStrictEqual(job.columns, this.#job?.columns)) {
      this.#memory ??= ColumnMemory.open();
      this.#batch = new BatchBuilder(job.columns, job.timezone !== undefined, this.#memory);
    }
    if (job.timezone !== this.#zone?.name) this.#zone = job.timezone === undefined ? undefined : new Zone(job.timezone);
    this.#job = job;
  }

  run(task: ArrowTask): ArrowResult {
    return task.kind === 'hash' ? this.#hash(task) : this.#build(task);
  }

  close(): void {
    this.#file?.reader.close();
    this.#file = undefined;
  }

  #openFile(number: number): OpenFile {
    if (this.#file?.number === number) return this.#file;
    this.close();
    const job = this.#job;
    const plan = job?.files[number];
    if (job === undefined || plan === undefined || this.#batch === undefined) throw defect('A task without a job.');
    this.#file = {
      number,
      plan,
      reader: new BlockReader(plan.path, this.#batch.memory),
      key: new RowKey(plan.header),
      rows: new RowBuilder(plan, job.columns, this.#batch, this.#zone),
    };
    return this.#file;
  }

  #hash({ block, spare }: HashTask): HashedBlock {
    const { plan, reader, key } = this.#openFile(block.fileIndex);
    const identity = new RowIdentity(plan, this.#zone);
    const hashed = hashRows(reader, block, key, spare, (words, k, bytes) => {
      key.readBase(bytes, reader.tokenizer);
      identity.hash(bytes, reader.tokenizer, key);
      words.set(WORDS, k);
    });
    return { kind: 'hash', ...hashed };
  }

  #build({ blocks, spare }: ColumnsTask): BuiltBatches {
    const batches: PackedBatch[] = [];
    const rescued = new Map<string, number>();
    const read = blocks.reduce((rows, block) => rows + this.#addBlock(block, batches, rescued), 0);
    if (this.#batch !== undefined && this.#batch.rows > 0) {
      batches.push(this.#batch.take(batches.length === 0 ? spare : undefined));
    }
    const [first, ...more] = batches.map(({ buffer }) => buffer);
    return {
      kind: 'columns',
      batches,
      rows: batches.reduce((sum, { rows }) => sum + rows, 0),
      read,
      rescued: [...rescued],
      buffer: first ?? new ArrayBuffer(0),
      more,
      isKept: this.#job?.isReused !== true,
    };
  }

  #addBlock(block: KeyedBlock, batches: PackedBatch[], rescued: Map<string, number>): number {
    const { reader, key, rows } = this.#openFile(block.fileIndex);
    const { ordinals, reserved, sent } = block;
    const batch = this.#batch;
    // Stryker disable next-line ConditionalExpression: there is a batch by then; it is for the compiler
    if (batch === undefined) return 0;
    reader.load(block);
    const read = reader.rows((bytes, row) => {
      if (sent?.[row] === 1) return;
      key.readBase(bytes, reader.tokenizer);
      let number = ordinals === undefined ? 1 : ordinals[row];
      if (number > 1 && reserved !== undefined) number = keyNumber(number, reserved.get(key.text));
      rows.add(bytes, reader.tokenizer, key, number);
      if (batch.isFull) batches.push(batch.take());
    });
    batch.bytes += rows.takeExtraBytes();
    for (const [name, cells] of rows.rescued) rescued.set(name, (rescued.get(name) ?? 0) + cells);
    rows.rescued.clear();
    return read;
  }
}
