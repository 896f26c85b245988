import type { DeletionAnswer } from '../../service/delete/answer.ts';

/** What became of the ids of a run. */
export interface DeletionCounts {
  done: number;
  rejected: number;
  /** Asked for, and nobody knows. */
  undecided: number;
  /** Rejections by the service's code. */
  readonly codes: Map<string, number>;
  /** Undecided ids, by the code of their last answer; those that had none are not in it. */
  readonly unclear: Map<string, number>;
  /** Requests sent, repeated ones included. */
  requests: number;
  /** The answer that ended everything, if one did. */
  stoppedBy: DeletionAnswer | undefined;
}

export const newCounts = (): DeletionCounts => ({
  done: 0,
  rejected: 0,
  undecided: 0,
  codes: new Map(),
  unclear: new Map(),
  requests: 0,
  stoppedBy: undefined,
});
