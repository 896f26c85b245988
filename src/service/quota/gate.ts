import type { ExportQuota } from '../export/service.ts';
import type { LimitHeaders } from '../http/headers.ts';

/** What the quota learns from the head of an answer. */
export interface Head {
  readonly status: number;
  /** True when the answer says that the limit is reached, under whatever status. */
  readonly limited: boolean;
  readonly limits: LimitHeaders;
}

/** The leave to send one export. */
export interface Place {
  /** Called when an answer came, before `leave`; a second call is no news. */
  answered(head: Head): Promise<void>;
  /** Called when the connection is let go of; harmless when repeated. */
  leave(): Promise<void>;
}

/** The quota as the one who sends sees it. */
export interface ExportGate extends ExportQuota {
  /**
   * Resolves when an export may be sent; its place counts from then on. Rejects with the signal's reason, or with a
   * transient Failure that names the wait when it is longer than allowed.
   */
  enter(signal: AbortSignal): Promise<Place>;
  /** A place that is counted and not waited for: for one small question of a person who is waiting. */
  enterNow(): Promise<Place>;
  /** Gives back what is held for this process. */
  close(): Promise<void>;
}
