// This folder: from planned days to verified files: requests with retries, split where they are too large.

import type { Day } from '../../base/days.ts';
import type { ScanResult } from '../../cells/columns/scanner.ts';
import type { DayRange } from '../plan/days.ts';

/*
 * Two shapes lead from the body of an answer to a window: an ExportFile is one body, stored and verified; a Download is
 * the files of one request for days of the plan, of which the window builder makes a Window.
 */

/** One export, completely downloaded and verified, in the spool folder. */
export interface ExportFile {
  readonly kind: 'file';
  /** Unique id; later downloads sort after earlier ones. */
  readonly id: string;
  /** Hash of its request (`requestKey`). */
  readonly key: string;
  /** Path of the normalised CSV; undefined if the body had no byte at all (`empty_body: no_rows`). */
  readonly path: string | undefined;
  readonly scan: Omit<ScanResult, 'tail'>;
  readonly spoolCrc: number;
  /** True if the length of the body was declared, so that a last row without a line end may be whole. */
  readonly endDeclared: boolean;
  /** Number of bytes received, and their SHA-256 (hex). */
  readonly bytes: number;
  readonly sha256: string;
  /** Instant of the request (ms since 1970) by the earlier clock: days over by then are complete. */
  readonly sentAt: number;
  /** Instant of the verification (ISO, UTC). */
  readonly verifiedAt: string;
  /** Number of exports sent to obtain it; 0 if it comes from an earlier run. */
  readonly exports: number;
  /** Id of the command that made it, if that loads several targets. */
  readonly command?: string;
}

export interface DaysRequest {
  readonly from: Day;
  readonly to: Day;
  /** The last day that the download is to make complete. */
  readonly through: Day;
  /** True if a download that is too large is split by event names; else the caller requests fewer days. */
  readonly splitByNames: boolean;
}

/** The rows of [from, to]: one file, or several for a day that was split by event names. */
export interface Download {
  readonly kind: 'rows';
  readonly from: Day;
  readonly to: Day;
  readonly files: readonly ExportFile[];
  readonly split: 'none' | 'names';
  /** The days of the plan that it is for. */
  readonly days: DayRange;
  /** The last of these days that it contains under every possible reading of `to_date`; undefined if none surely. */
  readonly contains: Day | undefined;
}

/** The result for days of the plan: a window is made of a download, other days are reported. */
export type DaysResult = Download | NoDownload;

/** Days without a download. `later`: they are left to a later run, since rows of them could come twice. */
export interface NoDownload {
  readonly kind: 'gone' | 'invalid' | 'later';
  readonly days: DayRange;
  readonly message: string;
}

export const noDownload = (days: DayRange, kind: NoDownload['kind'], message: string): NoDownload => ({
  kind,
  days,
  message,
});

/** Any answer: one that is no download has no files. */
export interface MayHaveFiles {
  readonly kind: string;
  readonly files?: readonly ExportFile[];
}

/** Number of rows that the service sent, also those that were left out for the suppression list. */
export const rowCount = ({ files = [] }: MayHaveFiles): number =>
  files.reduce((sum, { scan }) => sum + scan.rows + scan.suppressed, 0);

/** Instant of its earliest request (ms since 1970): days that were over then are complete. */
export const sentAtOf = (download: Download): number => Math.min(...download.files.map((file) => file.sentAt));
