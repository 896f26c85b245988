import type { Day } from '../base/days.ts';
import type { ColumnScan } from '../cells/columns/scan.ts';
import type { ScanResult } from '../cells/columns/scanner.ts';
import type { HashedColumns } from './export-request.ts';

/** The facts about one verified download; all but header and columns are stored beside its data in every target. */
export interface Receipt {
  readonly v: 1;
  /** Unique for each verified download; the order of ids is that of the downloads. */
  readonly id: string;
  /** First and last requested day (`to` was sent as `to_date`). */
  readonly from: Day;
  readonly to: Day;
  /** First and last day that this window makes complete: not a boundary day that it shares with another window. */
  readonly covers_from: Day;
  readonly covers_to: Day | null;
  /** Bytes of CSV, after any content coding, and their SHA-256 in hex; for parts that of their hashes, in order. */
  readonly bytes: number;
  readonly sha256: string;
  /** Number of data rows, without the header. */
  readonly rows: number;
  /** Number of exports sent, retries and parts included; 0 if the download of an earlier run was used. */
  readonly exports: number;
  /**
   * Exact column names, in order; of a window in parts the union (`mergeColumns`). Empty for a body of zero bytes
   * (`no_rows`).
   */
  readonly header: readonly string[];
  readonly columns: readonly ColumnScan[];
  /** `names` if a day was fetched in parts by event name. */
  readonly split: 'none' | 'names';
  /** Instant (ISO, UTC) at which the download was verified. */
  readonly verified_at: string;
  /** Number of rows left out because the person asked to be forgotten. */
  readonly suppressed: number;
  /** Number of cells whose bytes were not valid UTF-8; they are kept with U+FFFD in place of those bytes. */
  readonly invalid_utf8: number;
}

/** The results of a scan that readers of the file need. */
export type FileScan = Pick<
  ScanResult,
  'header' | 'columns' | 'rows' | 'longestRow' | 'hasDuplicateOrMissingIds' | 'idSample' | 'eventNames'
>;

/**
 * One file of a window: a complete, verified CSV, normalised for readers (LF, valid UTF-8, no BOM, every row as wide as
 * the header).
 */
export interface SpoolFile extends FileScan {
  readonly path: string;
}

/** Consecutive days that are downloaded, verified and not yet committed. Windows are delivered in the order of days. */
export interface Window {
  readonly receipt: Receipt;
  /** The file, or the parts of a day that was split by names; none for zero bytes. Removed with the next request. */
  readonly files: readonly SpoolFile[];
  readonly state: ExportState;
}

/** True if some rows of the window may not have their id as key; else the order of rows does not matter. */
export const hasDuplicateOrMissingIds = ({ files }: Pick<Window, 'files'>): boolean =>
  files.length > 1 || files.some((file) => file.hasDuplicateOrMissingIds);

/** The cursor and its companions (schemas/state.json). Unknown keys of a stored state are kept. */
export interface ExportState {
  readonly version: 1;
  /** First day not yet known to be complete. */
  readonly from_date: Day;
  readonly start_date?: Day;
  /** Hash of the whole export request (`RequestHashes.request`), then of its service and of its columns. */
  readonly question?: string;
  readonly service?: string;
  readonly columns?: string;
  readonly hashed?: readonly HashedColumns[];
  /** Whether an export contains its `to_date`, once it is proved: for single days, and for several. */
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

/** The facts about earlier loads that a target has stored. */
export interface PriorLoads {
  /** The stored state; the plan parses and checks it. */
  readonly state: unknown;
  /** Days that committed receipts cover; empty if only the state is stored. */
  readonly covered: ReadonlySet<Day>;
  /** Event names seen so far, for a day that must be split. */
  readonly eventNames: readonly string[];
  /** Number of rows of the latest receipt for exactly these days, with which a re-read is compared. */
  readonly rowsOf?: ((from: Day, to: Day) => number | undefined) | undefined;
}

/** The earlier loads of a target before its first run, and of a target that stores nothing. */
export const NO_PRIOR_LOADS: PriorLoads = { state: undefined, covered: new Set(), eventNames: [] };
