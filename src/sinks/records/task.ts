import type { StreamPlan } from './plan.ts';

/** All that the rows of one file need to become records; plain data, so that it may go to a worker. */
export interface FileJob {
  readonly path: string;
  readonly header: readonly string[];
  /** Per column of the header, over every cell of the file. */
  readonly evidence: readonly number[];
  readonly streams: readonly StreamPlan[];
  readonly timezone: string | undefined;
  /** ms since 1970. */
  readonly emittedAt: number;
}

/** One part of one file, to be surveyed or written. */
export type Task = SurveyTask | WriteTask;

interface Piece {
  readonly job: number;
  readonly from: number;
  readonly to: number;
  /** A buffer that may be used again. */
  readonly spare: ArrayBuffer | undefined;
}

export interface SurveyTask extends Piece {
  readonly kind: 'survey';
}

export interface WriteTask extends Piece {
  readonly kind: 'write';
  /** Per row of the part: 1 where it stands for its event in `event_logs`. Absent: no row does. */
  readonly events: Uint8Array | undefined;
  /** Per row of the part: how many rows of the export, it included, have its key. Absent: 1 everywhere. */
  readonly ordinals: Uint32Array | undefined;
  /** Numbers that are part of somebody's own id, by what stands before `#` there. */
  readonly taken: ReadonlyMap<string, readonly number[]> | undefined;
}

/** Numbers per row of a survey: two of the event's hash, the rank among its rows, three of the key's hash. */
export const SURVEY_STRIDE = 6;
/** Ranks: no item position comes first, then the positions from 0 on; the last stands for all beyond it. */
export const NO_POSITION = 0;
export const LAST_RANK = 0xffff_fffe;
/** In place of a rank: the row names no event and so is one of its own. */
export const OWN_EVENT = 0xffff_ffff;

export interface Surveyed {
  readonly kind: 'survey';
  readonly rows: number;
  /** `SURVEY_STRIDE` numbers per row, at the start. */
  readonly buffer: ArrayBuffer;
  /** Ids that end like the key of a repeated row: `#` and a number. */
  readonly numbered: readonly string[];
}

export interface Written {
  readonly kind: 'write';
  readonly job: number;
  /** The lines, at the start. */
  readonly buffer: ArrayBuffer;
  readonly length: number;
  /** Per stream of the job. */
  readonly records: readonly number[];
  /** Cells that did not fit: pairs of column and count, per stream of the job. */
  readonly rescued: readonly (readonly (readonly [column: number, cells: number])[])[];
}

export type Done = Surveyed | Written;
