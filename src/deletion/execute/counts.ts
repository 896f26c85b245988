import type { DeletionAnswer } from '../../service/delete/answer.ts';

/** The outcomes of the ids of a run. */
export interface DeletionCounts {
  done: number;
  rejected: number;
  /** Ids whose deletion was requested with an unknown outcome. */
  undecided: number;
  /** Rejections by the service's code. */
  readonly codes: Map<string, number>;
  /** Undecided ids, by the code of their last answer; those that had none are not in it. */
  readonly unclear: Map<string, number>;
  /** Requests sent, repeated ones included. */
  requests: number;
  /** The answer that stopped the run, if one did. */
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
