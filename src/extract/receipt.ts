import { createHash } from 'node:crypto';
import type { Day } from '../base/days.ts';
import type { ScanResult } from '../cells/columns/scanner.ts';
import type { CheckedBody } from '../service/export/download.ts';
import type { HashedColumns, RequestHashes } from './export-request.ts';
import type { FileOutput } from './spool.ts';

/** The facts about one checked download of one day. Every target stores them beside the rows (schemas/receipt.json). */
export interface Receipt {
  readonly v: 1;
  /** The `event_date` of all of its rows. */
  readonly day: Day;
  /** As sent: `day` if an export includes its end, else the day after. */
  readonly to_date: Day;
  /** Instant (ISO, UTC, by the clock of this machine) before its first request. It orders two downloads of a day. */
  readonly requested_at: string;
  /** True if the day was over when it was requested. */
  readonly is_over: boolean;
  /** Hash of the filters with which it was requested, as the state has it (`RequestHashes.filters`). */
  readonly filters: string;
  /** Rows of the download, also those of people to be forgotten and those that a neighbouring day has, too. */
  readonly rows: number;
  /** Rows left out because the person asked to be forgotten. */
  readonly suppressed: number;
  /** Bytes of CSV, after any content coding, and their SHA-256 in hex; of a day in parts that of their hashes. */
  readonly bytes: number;
  readonly sha256: string;
  /** Exports that were sent for the day, retries and parts included. */
  readonly exports: number;
  /** Cells whose bytes were not valid UTF-8; they are kept with U+FFFD in place of those bytes. */
  readonly invalid_utf8: number;
  /** Instant (ISO, UTC) at which the download was verified. */
  readonly verified_at: string;
  /** `file` if it came from a file that the user gave, and not from the service. */
  readonly source?: 'file';
}

/** The results of a scan that readers of the file need. */
export type FileScan = Pick<
  ScanResult,
  'header' | 'columns' | 'rows' | 'longestRow' | 'hasDuplicateOrMissingIds' | 'eventNames' | 'listed'
>;

/**
 * One file of a day: a complete, verified CSV, normalised for readers (LF, valid UTF-8, no BOM, every row as wide as
 * the header).
 */
export interface SpoolFile extends FileScan {
  readonly path: string;
}

/** A day that is downloaded, verified and not yet committed. Days are delivered in the order of days. */
export interface DayDownload {
  readonly receipt: Receipt;
  /** The file, or the parts of a day that was too large; none for an answer without a header. */
  readonly files: readonly SpoolFile[];
  /**
   * True if the neighbouring days may have rows of this one, and this one of theirs: an export may contain its
   * `to_date`.
   */
  readonly mayShareRows: boolean;
}

/** A checked body that lies in a file. */
export type CheckedFile = CheckedBody<FileOutput>;

/** A day of these files: one, the parts of a day that was too large, or none. */
export function dayDownload(
  files: readonly CheckedFile[],
  request: Pick<
    Receipt,
    'day' | 'to_date' | 'requested_at' | 'is_over' | 'filters' | 'exports' | 'verified_at' | 'source'
  >,
): DayDownload {
  const sum = (of: (file: CheckedFile) => number) => files.reduce((total, file) => total + of(file), 0);
  const receipt: Receipt = {
    v: 1,
    ...request,
    rows: rowCount(files),
    suppressed: sum((file) => file.scan.suppressed),
    bytes: sum((file) => file.bytes),
    sha256: hashOf(files),
    invalid_utf8: sum((file) => file.scan.invalidUtf8.cells),
  };
  const mayShareRows = request.to_date > request.day;
  return { receipt, files: files.map(({ output: { path }, scan }) => ({ path, ...scan })), mayShareRows };
}

/** Number of rows that the service sent, also those that were left out for the suppression list. */
export const rowCount = (files: readonly CheckedFile[]): number =>
  files.reduce((sum, { scan }) => sum + scan.rows + scan.suppressed, 0);

/** SHA-256 of one file, of several that of their hashes, of none that of no byte. */
function hashOf(files: readonly CheckedFile[]): string {
  const [first, ...others] = files;
  if (first !== undefined && others.length === 0) return first.sha256;
  return createHash('sha256')
    .update(files.map((file) => file.sha256).join(''))
    .digest('hex');
}

/** True if some rows of the day may not have their id as key; else the order of rows does not matter. */
export const hasDuplicateOrMissingIds = ({ files }: Pick<DayDownload, 'files'>): boolean =>
  files.length > 1 || files.some((file) => file.hasDuplicateOrMissingIds);

/** The cursor and its companions (schemas/state.json). Unknown keys of a stored state are kept. */
export interface ExportState {
  readonly version: 1;
  /** The cursor: first day from the start on that is not both loaded and over. */
  readonly from_date: Day;
  /** The start, which the first commit fixes. */
  readonly start_date?: Day;
  /** Hash of `service_id`. */
  readonly service?: string;
  /** Hash of the filters and of the columns that are dropped or hashed, of the last run. */
  readonly filters?: string;
  /** Columns that hold hashes in some rows, oldest first. */
  readonly hashed?: readonly HashedColumns[];
  /** Whether an export includes its `to_date`, once that is proved. */
  readonly to_date_inclusive?: boolean;
  /** False if the files of the service end without a line end. */
  readonly final_newline?: boolean;
  /** Days that are over, have no rows or are implausible, and are read again by the next run. */
  readonly read_again?: readonly Day[];
  /** Days that were wanted and are no longer exported. */
  readonly gaps?: readonly Day[];
  readonly [key: string]: unknown;
}

/** What a run has learned, to be stored with the next commit. */
export interface RunProgress {
  /** The time of this machine (ms since 1970). */
  readonly now: number;
  /** The start, if the place has none yet. */
  readonly start: Day;
  readonly hashes: RequestHashes;
  /** What the configuration hashes. */
  readonly hashing: HashedColumns;
  /** True if every day is written, also one whose rows are there already (`--full-refresh`, `--from`). */
  readonly rewrites: boolean;
  /** Whether an export includes its `to_date`, once that is proved; undefined also if the configuration says it. */
  readonly toDateInclusive: boolean | undefined;
  /** Whether files end with a line end, as far as this run knows. */
  readonly finalNewline: boolean | undefined;
  /** Days found to be lost in this run, under `on_gap: warn`. */
  readonly gaps: readonly Day[];
  /** True under plain append, which reads only days without rows again. */
  readonly appends: boolean;
}

/** Days that are committed together, in order; one day if it may share rows with its neighbours. */
export interface DayBatch {
  readonly days: readonly DayDownload[];
  readonly progress: RunProgress;
}

/** What a place stores of a receipt, as far as plans and states need it. */
export interface PriorReceipt extends Pick<Receipt, 'rows' | 'to_date' | 'is_over' | 'requested_at'> {
  /** Hash of the filters; undefined: those of the state. */
  readonly filters?: string | undefined;
  /** Rows of the day that the place has now; a stream of records does not know them. */
  readonly rows_stored?: number | undefined;
  /** True if the rows of the day were removed by `prune` or by a user. */
  readonly pruned?: boolean | undefined;
}

/** True for a day that was loaded with other filters, dropped or hashed columns. */
export const hasOtherFilters = (
  stored: Pick<PriorReceipt, 'filters'> | undefined,
  { filters }: Pick<RequestHashes, 'filters'>,
): boolean => stored?.filters !== undefined && stored.filters !== filters;

/** The receipts of a place, by day. */
export type PriorReceipts = ReadonlyMap<Day, PriorReceipt>;

/** The facts about earlier loads that a place has stored. */
export interface PriorLoads {
  /** The stored state; the plan parses and checks it. */
  readonly state: unknown;
  readonly receipts: PriorReceipts;
}

/** The earlier loads of a place before its first run, and of a target that stores nothing. */
export const NO_PRIOR_LOADS: PriorLoads = { state: undefined, receipts: new Map() };
