import { createHash } from 'node:crypto';
import type { Day } from '../base/days.ts';
import type { ScanResult } from '../cells/columns/export-scanner.ts';

/** The facts about one checked download of one day. Every target stores them beside the rows (schemas/receipt.json). */
export interface Receipt {
  readonly v: 1;
  /** The `event_date` of all of its rows. */
  readonly day: Day;
  /** As sent: `day` if an export includes its end, else the day after. Of a file always the day after. */
  readonly to_date: Day;
  /** Instant (ISO, UTC, by the clock of this machine) before its first request. It orders two downloads of a day. */
  readonly requested_at: string;
  /** True if the day was over when it was requested. */
  readonly is_over: boolean;
  /** Hash of the filters and columns with which it was requested (`SettingsFingerprints.filtersHash`). */
  readonly filters: string;
  /** Rows of the download, also those of people to be forgotten and those that a neighbouring day has, too. */
  readonly rows: number;
  /** Rows left out because the person asked to be forgotten. */
  readonly suppressed: number;
  /** Bytes of CSV, after any content coding, and their SHA-256 in hex. Of a day in parts it is that of their hashes. */
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

/** What plans and states need of the receipt of a stored day, or of one that this run has loaded. */
export interface ReceiptSummary extends Pick<Receipt, 'rows' | 'to_date' | 'is_over' | 'requested_at' | 'source'> {
  /** As in the receipt; undefined: that of the state. */
  readonly filters?: string | undefined;
  /** Rows of the day that the place has now; a stream of records does not know them. */
  readonly rows_stored?: number | undefined;
  /** True if the rows of the day were removed by `prune` or by a user. */
  readonly pruned?: boolean | undefined;
}

/** True for a day or a state of other filters, dropped or hashed columns than those with this hash. */
export const hasOtherFilters = (stored: Pick<ReceiptSummary, 'filters'> | undefined, filtersHash: string): boolean =>
  stored?.filters !== undefined && stored.filters !== filtersHash;

/** Receipts by day: those of a place, and of the days that a run has loaded. */
export type ReceiptsByDay = ReadonlyMap<Day, ReceiptSummary>;

/** One file of a day: a complete, verified CSV. It has LF, valid UTF-8, no BOM, and rows as wide as the header. */
export interface CheckedFile extends ScanResult {
  readonly path: string;
  /** Number of bytes received, and their SHA-256 (hex). */
  readonly bytes: number;
  readonly sha256: string;
}

/** A day that is downloaded, verified and not yet committed. Days are delivered in the order of days. */
export interface CheckedDay {
  readonly receipt: Receipt;
  /** The file, or the parts of a day that was too large; none for an answer without a header. */
  readonly files: readonly CheckedFile[];
}

/** True if the day and its neighbours may have rows of each other, since an export may contain its `to_date`. */
export const mayShareRows = ({ day, to_date }: Receipt): boolean => to_date > day;

/** How a day was requested and verified. Instants in ms since 1970. */
export interface DayRequest extends Pick<Receipt, 'day' | 'to_date' | 'is_over' | 'filters' | 'exports' | 'source'> {
  readonly requestedAt: number;
  readonly verifiedAt: number;
}

/** A day that came as one file, as the parts of a day that was too large, or without data as none. */
export function checkedDayOf(
  files: readonly CheckedFile[],
  { requestedAt, verifiedAt, ...request }: DayRequest,
): CheckedDay {
  const sum = (of: (file: CheckedFile) => number) => files.reduce((total, file) => total + of(file), 0);
  const receipt: Receipt = {
    v: 1,
    ...request,
    requested_at: new Date(requestedAt).toISOString(),
    verified_at: new Date(verifiedAt).toISOString(),
    rows: sum(({ rows }) => rows),
    suppressed: sum(({ rows, keptRows }) => rows - keptRows),
    bytes: sum(({ bytes }) => bytes),
    sha256: hashOf(files),
    invalid_utf8: sum(({ invalidUtf8 }) => invalidUtf8.cells),
  };
  return { receipt, files };
}

/** SHA-256 of one file, of several that of their hashes, of none that of no byte. */
function hashOf(files: readonly CheckedFile[]): string {
  if (files.length === 1) return files[0].sha256;
  return createHash('sha256')
    .update(files.map(({ sha256 }) => sha256).join(''))
    .digest('hex');
}

/** True if rows of the day may have no id, or one that occurs twice. Else the order of rows does not matter. */
export const mayHaveDuplicateIds = ({ files }: Pick<CheckedDay, 'files'>): boolean =>
  files.length > 1 || files.some((file) => !file.hasUniqueIds);
