import { closeSync, openSync } from 'node:fs';
import { isNull } from '../../base/ascii.ts';
import { internalError } from '../../base/errors.ts';
import { headerColumns } from '../../cells/columns/groups.ts';
import { COLUMN_SHIFT, STRIDE } from '../../cells/csv/layout.ts';
import { RowTokenizer } from '../../cells/csv/tokenizer.ts';
import { isItem } from '../../table/columns.ts';
import { RecordEncoder } from './record-encoder.ts';
import { RecordMemory } from './record-memory.ts';
import type { RecordPlan } from './record-plan.ts';
import { RowKey } from './row-key.ts';
import {
  type BlockKeys,
  HASHED_WORDS,
  type HashedRows,
  hashBytes,
  KEY_AT,
  keyNumber,
  LAST_RANK,
  NO_POSITION,
  OWN_EVENT,
  RANK_AT,
  ROW_WORDS,
} from './window-keys.ts';

/** Everything that the rows of one file need to become records; plain data, so that it can be sent to a worker. */
export interface FileJob {
  readonly path: string;
  readonly header: readonly string[];
  readonly streams: readonly RecordPlan[];
  readonly timezone: string | undefined;
  /** ms since 1970. */
  readonly emittedAt: number;
}

/** Whole rows of a file: bytes [from, to). The first block begins with the header. */
export interface RowBlock {
  /** Index of the file among those of the window. */
  readonly fileIndex: number;
  readonly from: number;
  readonly to: number;
}

/** The work on a block: hash the event and the key of each row, or write each as RECORD lines of all streams. */
export type Task = RowBlock & ({ readonly kind: 'hash' } | ({ readonly kind: 'encode' } & BlockKeys));

export interface EncodedBlock {
  readonly fileIndex: number;
  /** The lines, from byte 0 on. */
  readonly buffer: ArrayBuffer;
  readonly length: number;
  readonly records: readonly number[];
  /** Cells that did not fit, for each stream of the job: pairs of column and count. */
  readonly rescued: readonly (readonly (readonly [column: number, cells: number])[])[];
}

export type TaskResult<T extends Task = Task> = T extends { readonly kind: 'hash' } ? HashedRows : EncodedBlock;

/** Number of words for the hashes of a block for which there is room at first. */
const FIRST_WORDS = 1 << 14;

/** Runs the tasks of a window one by one, in any thread. The latest file stays open: tasks come file by file. */
export class RecordRunner {
  #files: readonly FileJob[] = [];
  #fileIndex = -1;
  #file: RecordFile | undefined;

  open(files: readonly FileJob[]): void {
    this.close();
    this.#files = files;
  }

  /** Runs a task. `buffer` is memory for the result that nothing else uses. */
  run(task: Task, buffer: ArrayBuffer | undefined): TaskResult {
    if (this.#file === undefined || this.#fileIndex !== task.fileIndex) {
      this.close();
      this.#fileIndex = task.fileIndex;
      this.#file = new RecordFile(this.#files[task.fileIndex]);
    }
    return task.kind === 'hash' ? this.#file.hash(task, buffer) : this.#file.encode(task, buffer);
  }

  close(): void {
    this.#file?.close();
    this.#file = undefined;
  }
}

class RecordFile {
  readonly #file: number;
  readonly #memory: RecordMemory;
  readonly #tokenizer: RowTokenizer;
  readonly #encoders: readonly RecordEncoder[];
  readonly #isItem: Uint8Array;
  readonly #key: RowKey;

  constructor({ path, header, streams, timezone, emittedAt }: FileJob) {
    this.#encoders = streams.map((plan) => new RecordEncoder(plan, timezone, emittedAt));
    const columns = headerColumns(header);
    this.#isItem = Uint8Array.from(columns, ({ group }) => (isItem(group) ? 1 : 0));
    this.#key = new RowKey(columns);
    const tableBytes = this.#encoders.reduce((sum, encoder) => sum + encoder.tableBytes, 0);
    this.#memory = new RecordMemory(tableBytes);
    let at = this.#memory.start - tableBytes;
    for (const encoder of this.#encoders) {
      encoder.writeTables(this.#memory.csv.bytes, at);
      at += encoder.tableBytes;
    }
    this.#tokenizer = new RowTokenizer(this.#memory.csv);
    this.#file = openSync(path, 'r');
  }

  hash(task: RowBlock, buffer: ArrayBuffer | undefined): HashedRows {
    const key = this.#key;
    let words = new Uint32Array(buffer ?? new ArrayBuffer(FIRST_WORDS * Uint32Array.BYTES_PER_ELEMENT));
    const numbered: string[] = [];
    this.#memory.read(this.#file, task.from, task.to);
    const { bytes } = this.#memory.csv;
    const rows = this.#eachRow(task, (row) => {
      const k = row * ROW_WORDS;
      if (k + ROW_WORDS > words.length) words = larger(words);
      key.read(bytes, this.#tokenizer);
      hashBytes(key.event.bytes, key.event.start, key.event.end);
      words.set(HASHED_WORDS, k);
      words[k + RANK_AT] = rankOf(key);
      hashBytes(key.id.bytes, key.id.start, key.id.end);
      words.set(HASHED_WORDS, k + KEY_AT);
      if (key.isNumbered) numbered.push(key.text);
    });
    return { rows, buffer: words.buffer, numbered };
  }

  encode(task: RowBlock & BlockKeys, buffer: ArrayBuffer | undefined): EncodedBlock {
    const { fileIndex, events, ordinals, reserved } = task;
    for (const encoder of this.#encoders) encoder.reset();
    this.#memory.read(this.#file, task.from, task.to);
    this.#eachRow(task, (row) => {
      // Before the key is read: what makes room may replace the array that the key refers to.
      this.#memory.reserve(this.#roomForRow());
      const { bytes } = this.#memory.csv;
      this.#key.read(bytes, this.#tokenizer);
      let ordinal = ordinals === undefined ? 1 : ordinals[row];
      if (ordinal > 1 && reserved !== undefined) ordinal = keyNumber(ordinal, reserved.get(this.#key.text));
      for (const encoder of this.#encoders) {
        if (encoder.stream === 'event_logs' && (events === undefined || events[row] === 0)) continue;
        if (encoder.stream === 'event_items' && !this.#hasItem(bytes)) continue;
        encoder.write(this.#tokenizer, this.#key, ordinal, this.#memory);
      }
    });
    const records = this.#encoders.map((encoder) => encoder.records);
    const rescued = this.#encoders.map((encoder) => nonZero(encoder.rescued));
    return { fileIndex, ...this.#memory.finish(buffer), records, rescued };
  }

  close(): void {
    closeSync(this.#file);
    this.#memory.csv.release();
  }

  /** Calls `each` whenever the tokenizer has read a row of the block, not of the header; returns how many. */
  #eachRow({ from }: RowBlock, each: (row: number) => void): number {
    const { start, end } = this.#memory;
    let rows = from === 0 ? -1 : 0;
    for (let at = start; at < end; rows++) {
      const next = this.#tokenizer.next(at, end, true);
      if (next < 0) throw internalError(`Row ${rows + 1} behind byte ${from} of a verified export cannot be read.`);
      if (rows >= 0) each(rows);
      at = next;
    }
    return rows;
  }

  #roomForRow(): number {
    let room = 0;
    for (const encoder of this.#encoders) room += encoder.roomFor(this.#memory.csv.bytes, this.#tokenizer);
    return room;
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

/** A copy with room for more words: memory that held no lines has room for none. */
function larger(words: Uint32Array<ArrayBuffer>): Uint32Array<ArrayBuffer> {
  const copy = new Uint32Array(Math.max(words.length * 2, FIRST_WORDS));
  copy.set(words);
  return copy;
}

function nonZero(counts: Float64Array): (readonly [number, number])[] {
  return [...counts].flatMap((count, column) => (count > 0 ? [[column, count] as const] : []));
}
