import type { ColumnType } from '../../../types/type.ts';
import type { HashedRows } from '../../rows/keys/hashed-rows.ts';
import type { FileBlock } from '../../rows/row-blocks.ts';
import type { PoolResult, PoolTask } from '../../workers/runner.ts';
import type { PackedBatch } from './packed.ts';

/** The files of some windows and the columns that their rows become; plain data, so that it may go to a worker. */
export interface ArrowJob {
  /** Of the stream, between `_key` and `_rescued`. */
  readonly columns: readonly StreamColumn[];
  readonly files: readonly FilePlan[];
  readonly timezone: string | undefined;
  /** True where the receiver of batches needs their memory no more when it asks for the next. */
  readonly isReused: boolean;
}

export interface StreamColumn {
  readonly type: ColumnType;
  readonly isDictionary: boolean;
}

/** How the cells of one file become values. Arrays are per column of its header. */
export interface FilePlan {
  readonly path: string;
  readonly header: readonly string[];
  /** The column of the stream that gets its values, or -1. */
  readonly targets: Int32Array;
  /** 1 + the index in COLUMN_TYPES of the type that its cells are read as, or 0. */
  readonly readAs: Uint8Array;
  /** A set of the flags below. */
  readonly flags: Uint8Array;
  /** Names in `_rescued` of the columns that may have cells there. */
  readonly rescueNames: ReadonlyMap<number, string>;
  /** Columns that tell the date of a row, the first that has a value. */
  readonly dates: readonly number[];
}

/** The text `null` may be among the cells and is absent. */
export const NULLS = 1;
/** It is among them and is a text. */
export const KEEPS_NULLS = 2;
/** Cells may not fit. */
export const CHECKED = 4;
/** No cell has a place in the stream. */
export const REFUSED = 8;

/** Work on some blocks of whole rows. */
export type ArrowTask = HashTask | ColumnsTask;

/** Hash the key of every row, and its base id together with its date. */
export interface HashTask extends PoolTask {
  readonly kind: 'hash';
  readonly block: FileBlock;
}

/** Make record batches of the rows. */
export interface ColumnsTask extends PoolTask {
  readonly kind: 'columns';
  readonly blocks: readonly KeyedBlock[];
}

/** A block and what only the whole window tells of its rows. */
export interface KeyedBlock extends FileBlock {
  /** Per row: how many rows of the export, it included, have its key. Absent: 1 everywhere. */
  readonly ordinals?: Uint32Array | undefined;
  /** Ids of the form `base#n` that the export itself holds: base → every n, rising. No generated key may use them. */
  readonly reserved?: ReadonlyMap<string, readonly number[]> | undefined;
  /** Per row: 1 where it was sent already. Absent: none was. */
  readonly sent?: Uint8Array | undefined;
}

export interface HashedBlock extends HashedRows {
  readonly kind: 'hash';
}

export interface BuiltBatches extends PoolResult {
  readonly kind: 'columns';
  readonly batches: readonly PackedBatch[];
  readonly rows: number;
  /** Rows of the blocks, those sent before too. */
  readonly read: number;
  /** Cells in `_rescued`, by name. */
  readonly rescued: readonly (readonly [name: string, cells: number])[];
}

export type ArrowResult = HashedBlock | BuiltBatches;
