import type { Day } from '../base/days.ts';
import type { ColumnScan } from '../schema/scan.ts';
import type { ScanResult } from '../schema/scanner.ts';
import type { HashedColumns } from './export-request.ts';

/** What is known of one verified export. Written beside the data it describes, in every sink. */
export interface Receipt {
  readonly v: 1;
  /** Unique per verified download; orders receipts by time. */
  readonly id: string;
  /** First and last day asked for (`to` is what was sent as `to_date`). */
  readonly from: Day;
  readonly to: Day;
  /** Days this window makes complete: [`covers_from`, `covers_to`], both included; a shared boundary day is not covered. */
  readonly covers_from: Day;
  readonly covers_to: Day | null;
  /**
   * Bytes of CSV as received after any content coding, and their SHA-256 in hex; of a window in parts the SHA-256 of the
   * parts' hashes, in order, as one text.
   */
  readonly bytes: number;
  readonly sha256: string;
  /** Data rows, the header not counted. */
  readonly rows: number;
  /** Exports sent to obtain its data (retries and parts included); 0 when an earlier run's verified download was used. */
  readonly exports: number;
  /** Names exactly as in the header, in its order; of parts the union. Empty for an answer of zero bytes (`no_rows`). */
  readonly header: readonly string[];
  readonly columns: readonly ColumnScan[];
  /** `names` when a day had to be fetched in parts by event name. */
  readonly split: 'none' | 'names';
  /** Instant (ISO, UTC) at which the download was verified. */
  readonly verified_at: string;
  /** Rows left out because the person asked to be forgotten. */
  readonly suppressed: number;
  /** Cells whose bytes were not valid UTF-8; kept with U+FFFD in their place. */
  readonly invalid_utf8: number;
}

/** What the scan of a file found that its readers need; which events there are may be undetermined. */
export type FileScan = Pick<
  ScanResult,
  'header' | 'columns' | 'rows' | 'longestRow' | 'hasDuplicateOrMissingIds' | 'rowEnds' | 'idSample'
> &
  Partial<Pick<ScanResult, 'eventNames'>>;

/** One file of a window: a complete, verified CSV, normalised for readers (LF, valid UTF-8, no BOM). */
export interface SpoolFile extends FileScan {
  readonly path: string;
}

/** Consecutive days, downloaded, verified and not yet committed. Handed on in the order of days. */
export interface Window {
  readonly receipt: Receipt;
  /**
   * One file, or several for a day that was split by names, whose headers may differ. None for an answer of zero bytes that
   * means no rows. The files are removed when the next window, or the next batch, is requested.
   */
  readonly files: readonly SpoolFile[];
  /** The state to store together with this window's data. */
  readonly state: ExportState;
}

/** True when the rows of the window may not all have their id as their key; else the order of its rows does not matter. */
export const hasDuplicateOrMissingIds = ({ files }: Pick<Window, 'files'>): boolean =>
  files.length > 1 || files.some((file) => file.hasDuplicateOrMissingIds);

/** The cursor and what goes with it (schemas/state.json). Unknown keys of a stored state are kept. */
export interface ExportState {
  readonly version: 1;
  /** First day not yet known to be complete. */
  readonly from_date: Day;
  readonly start_date?: Day;
  /** The hashes of `RequestHashes`. */
  readonly question?: string;
  readonly service?: string;
  readonly columns?: string;
  readonly hashed?: readonly HashedColumns[];
  /** What is proved of single days, and of several (S62). */
  readonly to_date_inclusive?: boolean;
  readonly ranges_inclusive?: boolean;
  readonly final_newline?: boolean;
  readonly refreshed_through?: Day;
  readonly gaps?: readonly Day[];
  readonly by_cursor?: boolean;
  readonly last_receipt?: string;
  readonly max_window_days?: number;
  readonly name_groups?: number;
  readonly [key: string]: unknown;
}

/** What a target has stored about earlier loads. */
export interface PriorLoads {
  /** As stored; parsed and checked by the plan. */
  readonly state: unknown;
  /** Days that committed receipts cover; empty where only the state is kept. */
  readonly covered: ReadonlySet<Day>;
  /** Event names seen so far, for a day that must be split. */
  readonly eventNames: readonly string[];
  /** Rows of the latest receipt for exactly these days, with which a re-read is compared (S8). */
  readonly rowsOf?: ((from: Day, to: Day) => number | undefined) | undefined;
}

/** Of a target before its first run, and of one that stores nothing. */
export const NO_PRIOR_LOADS: PriorLoads = { state: undefined, covered: new Set(), eventNames: [] };
