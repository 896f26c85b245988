import { type HeaderColumn, headerColumns } from '../cells/columns/groups.ts';
import type { FirstSeen } from '../cells/columns/scan.ts';
import type { CellForms } from '../cells/types/forms.ts';
import type { FileScan } from '../extract/receipt.ts';

/** A column of one file: where it stands and which column of the table it feeds. */
export interface FileColumn extends Pick<HeaderColumn, 'key' | 'source'> {
  readonly index: number;
  readonly filled: number;
}

/** One column of some files, as their scans together describe it. */
export interface IncomingColumn extends Omit<HeaderColumn, 'name'> {
  readonly forms: CellForms;
  readonly seen: readonly FirstSeen[];
}

export interface IncomingColumns {
  /** Columns of each file, in the order of its header. */
  readonly files: readonly (readonly FileColumn[])[];
  /** Columns of all files by key, in the order of first occurrence. */
  readonly columns: ReadonlyMap<string, IncomingColumn>;
}

/** Joins the headers and scans of the files of a day, or of a batch of days. */
export function incomingColumns(files: readonly FileScan[]): IncomingColumns {
  const columns = new Map<string, IncomingColumn>();
  return { files: files.map((file) => columnsOfFile(file, columns)), columns };
}

/** The columns of a file; joins them in `columns` with those of the other files. */
function columnsOfFile(file: FileScan, columns: Map<string, IncomingColumn>): FileColumn[] {
  return headerColumns(file.header).map(({ key, source, occurrence, group, declared }, index) => {
    const { forms, filled, seen = [], hashed } = file.columns[index];
    const before = columns.get(key);
    columns.set(key, {
      key,
      source,
      occurrence,
      group,
      declared: hashed ? 'string' : declared,
      forms: forms | (before?.forms ?? 0),
      seen: [...(before?.seen ?? []), ...seen],
    });
    return { key, source, index, filled };
  });
}
