import { createHash } from 'node:crypto';
import type { ScanResult } from '../cells/columns/scanner.ts';
import type { RunProgress } from './export-state.ts';
import type { Receipt } from './receipt.ts';
import type { CheckedFile } from './spool.ts';

/** One file of a day: a complete, verified CSV. It has LF, valid UTF-8, no BOM, and rows as wide as the header. */
export interface SpoolFile extends ScanResult {
  readonly path: string;
}

/** A day that is downloaded, verified and not yet committed. Days are delivered in the order of days. */
export interface DayDownload {
  readonly receipt: Receipt;
  /** The file, or the parts of a day that was too large; none for an answer without a header. */
  readonly files: readonly SpoolFile[];
  /** True if the day and its neighbours may have rows of each other, since an export may contain its `to_date`. */
  readonly mayShareRows: boolean;
}

/** Days that are committed together, in order. A day that may share rows with its neighbours comes alone. */
export interface DayBatch {
  readonly days: readonly DayDownload[];
  readonly progress: RunProgress;
}

/** How a day was requested. Instants in ms since 1970. */
interface DayRequest extends Pick<Receipt, 'day' | 'to_date' | 'is_over' | 'filters' | 'exports' | 'source'> {
  readonly requestedAt: number;
  readonly verifiedAt: number;
}

/** A day of these files: one, the parts of a day that was too large, or none. */
export function dayDownload(
  files: readonly CheckedFile[],
  { requestedAt, verifiedAt, ...request }: DayRequest,
): DayDownload {
  const sum = (of: (file: CheckedFile) => number) => files.reduce((total, file) => total + of(file), 0);
  const receipt: Receipt = {
    v: 1,
    ...request,
    requested_at: new Date(requestedAt).toISOString(),
    verified_at: new Date(verifiedAt).toISOString(),
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

/** True if rows of the day may have no id, or one that occurs twice. Else the order of rows does not matter. */
export const mayHaveDuplicateIds = ({ files }: Pick<DayDownload, 'files'>): boolean =>
  files.length > 1 || files.some((file) => file.hasDuplicateOrMissingIds);
