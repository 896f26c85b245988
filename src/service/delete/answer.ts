import type { Limits } from '../export/answer.ts';
import type { DeletionKind } from './outcomes.ts';

/** What became of one deletion; never holds an id or a text of the service. */
export interface DeletionAnswer {
  /**
   * `done`: all four fields say so. `rejected`: this id is not accepted, others may be. `retry`: the same again, which is
   * harmless. `wait`: nothing more before `limits.resetAt`. `stop`: nothing more at all. `undecided`: nobody can tell.
   */
  readonly kind: DeletionKind;
  /** The service's code, or a short word for what came instead. */
  readonly code: string;
  /** Undefined when no answer came. */
  readonly status: number | undefined;
  readonly message: string;
  readonly limits: Limits;
}

export interface DeletionService {
  /**
   * Sends one deletion, without any retry or pacing. Rejects when aborted, with the signal's reason, and with a
   * configuration failure where nothing can be sent at all; never for what the service or the network did.
   */
  deleteProfile(externalId: string, signal: AbortSignal): Promise<DeletionAnswer>;
  close(): Promise<void>;
}
