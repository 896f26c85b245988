import type { FileScan } from '../extract/window.ts';
import { type ColumnGroup, EVENT_NAME, eventNameIndex, headerColumns } from '../schema/groups.ts';
import type { FirstSeen } from '../schema/scan.ts';
import type { ColumnType, Evidence } from '../types/type.ts';
import { columnKey } from './columns.ts';

/** A column of one file: where it stands and which column of the table it feeds. */
export interface FileColumn {
  readonly key: string;
  readonly source: string;
  readonly occurrence: number;
  readonly index: number;
  readonly filled: number;
}

/** One column of some files, as their scans together describe it. */
export interface IncomingColumn {
  readonly key: string;
  readonly source: string;
  readonly occurrence: number;
  readonly group: ColumnGroup;
  readonly declared: ColumnType | undefined;
  readonly evidence: Evidence;
  readonly seen: readonly FirstSeen[];
}

export interface IncomingColumns {
  /** Columns of each file, in the order of its header. */
  readonly files: readonly (readonly FileColumn[])[];
  /** Columns of all files by key, in the order of first occurrence. */
  readonly columns: ReadonlyMap<string, IncomingColumn>;
}

/** Joins the headers and scans of the files of a window, or of a batch of windows. */
export function incomingColumns(files: readonly FileScan[]): IncomingColumns {
  const columns = new Map<string, IncomingColumn>();
  return { files: files.map((file) => columnsOfFile(file, columns)), columns };
}

/** The columns of a file; joins them in `columns` with those of the other files. */
function columnsOfFile(file: FileScan, columns: Map<string, IncomingColumn>): FileColumn[] {
  const eventName = eventNameIndex(file.header);
  const counts = new Map<string, number>();
  return headerColumns(file.header).map(({ source: raw, group, declared }, index) => {
    const source = index === eventName ? EVENT_NAME : raw;
    const occurrence = (counts.get(source) ?? 0) + 1;
    counts.set(source, occurrence);
    const key = columnKey(source, occurrence);
    const { evidence, filled, seen = [], hashed } = file.columns[index];
    const before = columns.get(key);
    columns.set(key, {
      key,
      source,
      occurrence,
      group,
      declared: hashed ? 'string' : declared,
      evidence: evidence | (before?.evidence ?? 0),
      seen: [...(before?.seen ?? []), ...seen],
    });
    return { key, source, occurrence, index, filled };
  });
}
