// This folder: what the columns of an export hold, and the rows to keep of it. `export-scanner.ts` passes on each row
// while the export arrives: to `invalid-utf8.ts`, to `column-scanner.ts`, which collects the forms of cells and the
// hashes of ids (`id-hashes.ts`), and to `row-writer.ts`, which drops and hashes columns as `column-edits.ts` says.

import { configError } from '../../base/errors.ts';
import { UnusableCsv } from '../csv/malformed.ts';
import { CellText, type CsvRow } from '../csv/row.ts';
import { RowReader } from '../csv/row-reader.ts';
import { missingColumns, REQUIRED_COLUMNS, UNIFIED_ID } from '../header.ts';
import { zoneOf } from '../types/zone.ts';
import { type ColumnEdits, editHeader, NO_EDITS } from './column-edits.ts';
import { type ColumnScan, ColumnScanner } from './column-scanner.ts';
import { type InvalidUtf8, InvalidUtf8Counter } from './invalid-utf8.ts';
import { RowWriter } from './row-writer.ts';

export interface ScannerOptions {
  /** IANA name of the zone of datetimes that carry none. */
  readonly timezone?: string | undefined;
  /** True to refuse a header without the columns that every export of events has. */
  readonly needsEventColumns: boolean;
  /** Leaves the rows of these people out of everything: counts, types, written bytes. */
  readonly suppression?: Suppression | undefined;
  readonly edits?: ColumnEdits | undefined;
  /** As `RowReader` has it. */
  readonly minReadBytes?: number | undefined;
}

/** The people who stay forgotten. */
export interface Suppression {
  /** True for a `df_unified_id` of the list, before it is hashed; `id` holds until the next call. */
  has(id: Buffer): boolean;
}

export interface ScanResult {
  /** The kept columns, in the order of the header. */
  readonly columns: readonly ColumnScan[];
  /** Number of data rows, also of those that `suppression` leaves out. */
  readonly rows: number;
  readonly keptRows: number;
  /** Length of the longest row written, the header too, with its line end (bytes). */
  readonly longestRowBytes: number;
  /** True if every row has an id, and no two the same; false if there were too many ids to tell. */
  readonly hasUniqueIds: boolean;
  /** False if the last row had no line end: the body may have been cut there. */
  readonly hasFinalNewline: boolean;
  readonly invalidUtf8: InvalidUtf8;
  /** Distinct event names, at most 1,000, sorted. */
  readonly eventNames: readonly string[];
  /** The names of `edits` that the header had. */
  readonly editedNames: readonly string[];
}

/** What follows from a header, for the rows below it. */
interface HeaderSetup {
  /** The column of `df_unified_id`; -1 if there is none. */
  readonly personColumnNumber: number;
  readonly invalidUtf8Counter: InvalidUtf8Counter;
  readonly columnScanner: ColumnScanner;
  readonly writer: RowWriter;
  readonly editedNames: readonly string[];
}

/**
 * Scans an export as it arrives. Checks every row, collects what its cells tell of their columns, and returns the bytes
 * to keep. These are normalised: LF, valid UTF-8, no BOM, no blank lines at the end. The result does not depend on how
 * the body is cut into chunks.
 */
export class ExportScanner {
  readonly #options: ScannerOptions;
  readonly #reader: RowReader;
  readonly #personId = new CellText();
  /** Undefined until the first line has come. */
  #setup: HeaderSetup | undefined;
  #suppressedRows = 0;

  constructor(options: ScannerOptions) {
    this.#options = options;
    this.#reader = new RowReader(options.minReadBytes);
  }

  /** Scans a chunk; returns the bytes to write, valid until the next call. Throws MalformedCsv, UnusableCsv. */
  push(chunk: Uint8Array): Uint8Array {
    this.#reader.push(chunk);
    return this.#readRows();
  }

  /** Ends the body; `tail` has the last bytes to write. Throws MalformedCsv if the body is not complete. */
  finish(): { readonly scan: ScanResult; readonly tail: Uint8Array } {
    this.#reader.finish();
    const tail = this.#readRows();
    // A body without a header was refused.
    if (this.#setup === undefined) throw new TypeError('an export without a header');
    const { columnScanner, invalidUtf8Counter, editedNames, writer } = this.#setup;
    const rows = this.#reader.rowNumber - 1;
    const keptRows = rows - this.#suppressedRows;
    invalidUtf8Counter.checkEncoding(keptRows);
    const scan: ScanResult = {
      columns: columnScanner.columnScans(),
      rows,
      keptRows,
      longestRowBytes: writer.longestRowBytes,
      hasUniqueIds: columnScanner.hasUniqueIds(keptRows),
      hasFinalNewline: this.#reader.hasLineEnd,
      invalidUtf8: invalidUtf8Counter.summary(),
      eventNames: columnScanner.eventNames(),
      editedNames,
    };
    return { scan, tail };
  }

  /** Reads the rows that are whole; returns what is kept of them. */
  #readRows(): Uint8Array {
    while (this.#reader.next()) {
      if (this.#setup === undefined) this.#setup = this.#readHeader();
      else this.#readRow(this.#setup);
    }
    return this.#setup?.writer.take() ?? Buffer.alloc(0);
  }

  #readRow({ personColumnNumber, invalidUtf8Counter, columnScanner, writer }: HeaderSetup): void {
    const reader = this.#reader;
    if (this.#isSuppressed(reader.row, personColumnNumber)) {
      this.#suppressedRows++;
      return;
    }
    if (reader.replacementIndices.length > 0) invalidUtf8Counter.count(reader);
    columnScanner.scan(reader);
    writer.write(reader.row, 'data');
  }

  /** Reads the current row as the header, and writes it. */
  #readHeader(): HeaderSetup {
    const { needsEventColumns, suppression, edits = NO_EDITS, timezone } = this.#options;
    const names = this.#reader.row.texts();
    if (names.every((name) => name === '')) throw this.#reader.rowError('no_header', 'column names', 'empty cells');
    // Lines that end in CR alone look like one long header, and must not be taken for an empty export.
    if (this.#reader.row.hasBareCr) throw new UnusableCsv('lines that end in LF or CRLF', 'a CR in its header');
    if (needsEventColumns) this.#checkRequired(names);
    const personColumnNumber = names.indexOf(UNIFIED_ID);
    // Without the column of people nobody would be left out.
    if (suppression !== undefined && personColumnNumber < 0)
      throw this.#reader.rowError('missing_columns', UNIFIED_ID, `${names.length} other columns`);
    const { columns, editedNames } = editHeader(names, edits);
    if (columns.every((column) => column === undefined))
      throw configError('columns_drop names every column there is: leave one.');
    const writer = new RowWriter(columns, edits.hashKey);
    writer.write(this.#reader.row, 'header');
    const columnScanner = new ColumnScanner(names, columns, zoneOf(timezone));
    const invalidUtf8Counter = new InvalidUtf8Counter(columns);
    return { personColumnNumber, editedNames, invalidUtf8Counter, columnScanner, writer };
  }

  /** Throws if the header lacks columns that every export has. If it lacks all of them, another download would too. */
  #checkRequired(names: readonly string[]): void {
    const missingNames = missingColumns(names);
    if (missingNames.length === REQUIRED_COLUMNS.length)
      throw new UnusableCsv(`a header with ${missingNames.join(', ')}`, 'not one column that every export has');
    if (missingNames.length > 0)
      throw this.#reader.rowError('missing_columns', missingNames.join(', '), `${names.length} other columns`);
  }

  #isSuppressed(row: CsvRow, personColumnNumber: number): boolean {
    const { suppression } = this.#options;
    if (suppression === undefined) return false;
    const k = row.cellOf(personColumnNumber);
    if (k < 0) return false;
    this.#personId.read(row, k);
    return suppression.has(this.#personId.content);
  }
}
