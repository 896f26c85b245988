/** What the deletion of one profile came to, judged by the service's outcome table. */
export interface DeletionAnswer {
  /**
   * `done`: the service says so in all four fields. `rejected`: it never will. `retry` and `undecided`: nobody knows, and
   * the same again is harmless. `wait`: nothing more before the reset. `stop`: wrong token or service, nothing more at all.
   */
  readonly kind: 'done' | 'rejected' | 'retry' | 'wait' | 'stop' | 'undecided';
  /** The service's own code, or a short word for what came instead; never content. */
  readonly code: string;
  readonly status: number | undefined;
  /** A sentence for people. */
  readonly message: string;
  readonly limits: { readonly remaining: number | undefined; readonly resetAt: number | undefined };
}

/** Sends one deletion, without any retry or pacing of its own; never throws for what the service or the network did. */
export interface Deleter {
  deleteProfile(externalId: string, signal: AbortSignal): Promise<DeletionAnswer>;
}
