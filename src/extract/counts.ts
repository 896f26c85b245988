import type { Day } from '../base/days.ts';

/** What an extraction counts while it runs. */
export interface ExtractCounts {
  /** Requests sent. */
  exports: number;
  /** CSV received, of requests that failed too. */
  bytes: number;
  /** What the extraction has proved about `to_date` (S2); undefined: nothing. */
  inclusive: boolean | undefined;
  /** Days that are lost at the service, in no order. */
  gaps: Day[];
}

export const newExtractCounts = (): ExtractCounts => ({ exports: 0, bytes: 0, inclusive: undefined, gaps: [] });
