import type { ScanResult } from '../../schema/scanner.ts';

/** One export, completely downloaded and verified, in the spool folder. */
export interface Verified {
  /** Unique; later downloads sort after earlier ones. */
  readonly id: string;
  /** `keyOf` the question it answers. */
  readonly key: string;
  /** The normalised CSV; undefined when the body had no byte at all (`empty_body: no_rows`). */
  readonly path: string | undefined;
  readonly scan: Omit<ScanResult, 'tail'>;
  /** Bytes received and their SHA-256 (hex). */
  readonly bytes: number;
  readonly sha256: string;
  /** When the request was sent (ms since 1970), by the earlier of the two clocks: days that were over then are complete. */
  readonly sentAt: number;
  /** ISO, UTC. */
  readonly verifiedAt: string;
  /** Exports sent to obtain it; 0 when it comes from an earlier run. */
  readonly exports: number;
  /** The command that made it, if that loads several targets. */
  readonly command?: string;
}

/** Rows the service sent, whether or not they were left out for the suppression list. */
export const rowsSent = (part: Verified): number => part.scan.rows + part.scan.suppressed;
