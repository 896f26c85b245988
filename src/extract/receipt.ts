import { createHash } from 'node:crypto';
import type { Day } from '../base/days.ts';
import { mergeColumns } from '../schema/merge.ts';
import type { ColumnScan } from '../schema/scan.ts';
import type { Download, ExportFile } from './download/download.ts';
import type { Receipt, SpoolFile } from './window.ts';

/** The days that a window makes complete; `last` is null for none. */
export interface CoveredDays {
  readonly first: Day;
  readonly last: Day | null;
}

/** The receipt of a window, from those of its parts. */
export function receiptOf(download: Download, covers: CoveredDays, zoned: boolean): Receipt {
  const { files: parts, split, from, to } = download;
  const columns = mergeColumns(
    parts.map((part) => part.scan.columns),
    zoned,
  );
  return {
    v: 1,
    id: parts[0].id,
    from,
    to,
    covers_from: covers.first,
    covers_to: covers.last,
    bytes: sum(parts, (part) => part.bytes),
    sha256: hashOf(parts),
    rows: sum(parts, (part) => part.scan.rows),
    exports: sum(parts, (part) => part.exports),
    header: headerOf(parts, columns),
    columns,
    split,
    verified_at: parts.map((part) => part.verifiedAt).sort()[parts.length - 1],
    suppressed: sum(parts, (part) => part.scan.suppressed),
    invalid_utf8: sum(parts, (part) => part.scan.invalidUtf8.cells),
  };
}

export function filesOf(download: Download): SpoolFile[] {
  return download.files.flatMap(({ path, scan }) => {
    if (path === undefined) return [];
    const { header, columns, rows, longestRow, keysNeedWork, rowEnds, eventNames, idSample } = scan;
    return [
      { path, header, columns, rows, longestRow, keysNeedWork, rowEnds, eventNames, ...(idSample && { idSample }) },
    ];
  });
}

const sum = (parts: readonly ExportFile[], of: (part: ExportFile) => number): number =>
  parts.reduce((total, part) => total + of(part), 0);

function hashOf(parts: readonly ExportFile[]): string {
  if (parts.length === 1) return parts[0].sha256;
  return createHash('sha256')
    .update(parts.map((part) => part.sha256).join(''))
    .digest('hex');
}

/** Of one part its header as it is; of several the union, in the order of first sight. */
function headerOf(parts: readonly ExportFile[], columns: readonly ColumnScan[]): readonly string[] {
  return parts.length === 1 ? parts[0].scan.header : columns.map((column) => column.source);
}
