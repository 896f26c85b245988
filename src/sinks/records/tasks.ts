import type { RecordPlan } from './record-plan.ts';
import type { HashedRows } from './window-keys.ts';

/** All that the rows of one file need to become records; plain data, so that it may go to a worker. */
export interface FileJob {
  readonly path: string;
  readonly header: readonly string[];
  readonly streams: readonly RecordPlan[];
  readonly timezone: string | undefined;
  /** ms since 1970. */
  readonly emittedAt: number;
}

/** Work on one block of whole rows of one file. */
export type Task = HashTask | EncodeTask;

interface BlockTask {
  /** Index among the files of the window, and their jobs. */
  readonly fileIndex: number;
  /** Bytes [from, to) of the file. */
  readonly from: number;
  readonly to: number;
}

/** Hash the event and the key of every row. */
export interface HashTask extends BlockTask {
  readonly kind: 'hash';
}

/** Write every row as the RECORD lines of all streams. */
export interface EncodeTask extends BlockTask {
  readonly kind: 'encode';
  /** Per row of the block: 1 where `event_logs` has the row for its event. Absent: it has none of them. */
  readonly events: Uint8Array | undefined;
  /** Per row of the block: how many rows of the export, it included, have its key. Absent: 1 everywhere. */
  readonly ordinals: Uint32Array | undefined;
  /** Ids of the form `base#n` that the export itself holds: base → every n, rising. No generated key may use them. */
  readonly reserved: ReadonlyMap<string, readonly number[]> | undefined;
}

export interface HashedBlock extends HashedRows {
  readonly kind: 'hash';
}

export interface EncodedBlock {
  readonly kind: 'encode';
  readonly fileIndex: number;
  /** The lines, from byte 0 on. */
  readonly buffer: ArrayBuffer;
  readonly length: number;
  /** Per stream of the job. */
  readonly records: readonly number[];
  /** Cells that did not fit: pairs of column and count, per stream of the job. */
  readonly rescued: readonly (readonly (readonly [column: number, cells: number])[])[];
}

export type TaskResult = HashedBlock | EncodedBlock;

/** What a worker is sent: the files of the tasks to come, a task with memory for its result, or that there are no more. */
export type WorkerRequest =
  | { readonly kind: 'open'; readonly jobs: readonly FileJob[] }
  | { readonly kind: 'run'; readonly task: Task; readonly buffer: ArrayBuffer | undefined }
  | { readonly kind: 'close' };

/** What it answers to a task. */
export type WorkerAnswer = { readonly result: TaskResult } | { readonly failed: string };
