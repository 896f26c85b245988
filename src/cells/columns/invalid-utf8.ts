import { otherEncodingError } from '../csv/malformed.ts';
import type { RowReader } from '../csv/row-reader.ts';
import type { EditedColumns } from './column-edits.ts';

/** A body has another encoding if so many cells are mostly replaced, and more than so many a row. */
const MIN_REPLACED_CELLS = 10;
const MAX_REPLACED_CELLS_PER_ROW = 0.05;

/** Number of cells that were not valid UTF-8, and the place of the first of them; the header is row 1. */
export interface InvalidUtf8 {
  readonly cells: number;
  readonly first?: { readonly row: number; readonly column: string };
}

/** Counts the cells of kept columns in which U+FFFD replaces characters. */
export class InvalidUtf8Counter {
  readonly #columns: EditedColumns;
  #cells = 0;
  #mostlyReplacedCells = 0;
  #first: InvalidUtf8['first'];

  constructor(columns: EditedColumns) {
    this.#columns = columns;
  }

  count({ row, rowNumber, replacementIndices }: RowReader): void {
    const { bytes, filledCount, columnNumbers, starts, ends } = row;
    let passedCount = 0;
    for (let k = 0; k < filledCount; k++) {
      const isReplaced = replacementIndices[passedCount] < ends[k];
      while (replacementIndices[passedCount] < ends[k]) passedCount++;
      const column = this.#columns[columnNumbers[k]];
      if (!isReplaced || column === undefined) continue;
      this.#cells++;
      if (isMostlyReplaced(bytes.toString('utf8', starts[k], ends[k]))) this.#mostlyReplacedCells++;
      this.#first ??= { row: rowNumber, column: column.headerName };
    }
  }

  /** Throws UnusableCsv if so many cells in these rows are mostly replaced that the body has another encoding. */
  checkEncoding(rows: number): void {
    const cells = this.#mostlyReplacedCells;
    if (cells >= MIN_REPLACED_CELLS && cells > rows * MAX_REPLACED_CELLS_PER_ROW) throw otherEncodingError();
  }

  summary(): InvalidUtf8 {
    return { cells: this.#cells, ...(this.#first && { first: this.#first }) };
  }
}

/** True if most characters beyond ASCII were replaced. A text that was only cut within one has whole ones too. */
function isMostlyReplaced(text: string): boolean {
  const nonAscii = text.replace(/[\0-\x7f]/g, '');
  return nonAscii.replaceAll('\ufffd', '').length * 2 < nonAscii.length;
}
