// This folder: the columns of an export: their names and groups, the forms and types of all cells, and the columns that
// are dropped or hashed. `scanner.ts` does it while the export arrives.

import { configError } from '../../base/errors.ts';
import { otherEncoding, otherLineEnds, UnusableCsv } from '../csv/malformed.ts';
import { DROP, RowEditor } from '../csv/row-editor.ts';
import { type RowLimits, RowSource } from '../csv/row-source.ts';
import { CellText, COLUMN_SHIFT, type RowTokenizer, readNames, STRIDE } from '../csv/tokenizer.ts';
import { type Zone, zoneOf } from '../types/zone.ts';
import { type ColumnEdits, editHeader } from './column-edits.ts';
import { Columns } from './columns.ts';
import { EVENT_NAME, headerColumns, missingColumns } from './groups.ts';
import type { RowFilter } from './row-filter.ts';
import type { ColumnScan } from './scan.ts';

/** The columns that every export has, in lower case, but for the event's name, which customers choose. */
const SYSTEM_NAMES: ReadonlySet<string> = new Set(missingColumns([]).filter((name) => name !== EVENT_NAME));
const LOWER_D = 0x64;
/** The bit that makes an ASCII letter lower case. */
const LOWER_BIT = 0x20;
/** A name that is a whole header with another separator. */
const OTHER_SEPARATOR = /([;\t|])df_unified_id|df_unified_id([;\t|])/;
/** Number of cells, and share of rows, from which broken characters may mean another encoding. */
const MIN_FOREIGN_CELLS = 10;
const FOREIGN_CELLS_A_ROW = 0.05;

export interface ScannerOptions extends RowLimits {
  /** IANA name of the zone of datetimes that carry none. */
  readonly timezone?: string | undefined;
  /** True to refuse a header without the columns that every export has. */
  readonly requireSystem: boolean;
  /** Leaves rows out of everything: counts, types, written bytes. */
  readonly dropRows?: RowFilter | undefined;
  /** Columns that are dropped or hashed before anything else sees them. */
  readonly edits?: ColumnEdits | undefined;
}

/** The place of a replaced character; the header is row 1. */
export interface CellPosition {
  readonly row: number;
  readonly column: string;
}

/** The result of scanning every byte of an export. */
export interface ScanResult {
  readonly header: readonly string[];
  readonly columns: readonly ColumnScan[];
  /** Number of data rows kept. */
  readonly rows: number;
  /** Number of data rows left out by `dropRows`. */
  readonly suppressed: number;
  /** Length of the longest row written, the header too, with its line end (bytes). */
  readonly longestRow: number;
  /** True if a `df_event_detail_log_id` occurs twice or is missing (or if there were too many ids to tell). */
  readonly hasDuplicateOrMissingIds: boolean;
  /** False if the last row had no line end: the body may have been cut there. */
  readonly finalNewline: boolean;
  /** Number of cells that were not valid UTF-8, and the place of the first of them. */
  readonly invalidUtf8: { readonly cells: number; readonly first?: CellPosition };
  /** Number of bytes written in all, `tail` included. */
  readonly outLength: number;
  /** Distinct event names, at most 1,000, sorted. */
  readonly eventNames: readonly string[];
  /** Listed names of dropped and hashed columns that the header had; absent if there are no lists. */
  readonly listed?: readonly string[];
  /** The last bytes to write. */
  readonly tail: readonly Uint8Array[];
}

/**
 * Scans an export as it arrives: checks every row, classifies every cell, and returns the bytes to keep. These are
 * normalised: LF, valid UTF-8, no BOM, no blank lines at the end. The result does not depend on how the body is cut
 * into chunks.
 */
export class Scanner {
  readonly #source: RowSource;
  readonly #requireSystem: boolean;
  readonly #zone: Zone | undefined;
  readonly #suppressed: SuppressedRows;
  readonly #edits: ColumnEdits | undefined;
  #actions: Uint8Array = new Uint8Array(0);
  #listed: readonly string[] = [];
  /** The names in the header as it arrived, for naming cells before the edits. */
  #arrived: readonly string[] = [];
  #columns: Columns | undefined;
  #header: readonly string[] = [];
  /** For each column as it arrived 1 if every export has it. */
  #isSystem = new Uint8Array(0);
  #badCells = 0;
  /** Number of those of which most characters beyond ASCII were replaced. */
  #foreignCells = 0;
  #firstBad: CellPosition | undefined;

  constructor(options: ScannerOptions) {
    this.#edits = options.edits;
    this.#source = new RowSource(this, options, options.edits && new RowEditor(options.edits.key));
    this.#requireSystem = options.requireSystem;
    this.#zone = zoneOf(options.timezone);
    this.#suppressed = new SuppressedRows(options.dropRows);
  }

  /** The column names; undefined until the first line has come. */
  get header(): readonly string[] | undefined {
    return this.#columns && this.#header;
  }

  /** Number of data rows kept so far. */
  get rows(): number {
    return Math.max(0, this.#source.rows - 1) - this.#suppressed.rows;
  }

  /** Scans a chunk; returns the bytes to write, valid until the next call. Throws MalformedCsv. */
  push(chunk: Uint8Array): Uint8Array[] {
    return this.#source.push(chunk);
  }

  /** Ends the body. Throws MalformedCsv if it is not complete. */
  finish(): ScanResult {
    const tail = this.#source.finish();
    this.#checkWhole();
    const { longestRow, finalNewline, outLength } = this.#source;
    const { rows } = this;
    const columns = this.#columns?.scans() ?? [];
    return {
      header: this.#header,
      columns,
      rows,
      suppressed: this.#suppressed.rows,
      longestRow,
      hasDuplicateOrMissingIds: this.#columns?.hasDuplicateOrMissingIds(rows) ?? false,
      finalNewline,
      invalidUtf8: { cells: this.#badCells, ...(this.#firstBad && { first: this.#firstBad }) },
      outLength,
      eventNames: this.#columns?.eventNames() ?? [],
      ...(this.#edits && { listed: this.#listed }),
      tail,
    };
  }

  /** Handles one row; a callback of RowSource, which nothing else may call. */
  row(bytes: Buffer, start: number, source: RowSource): boolean {
    const columns = this.#columns;
    if (columns === undefined) this.#open(bytes, start, source);
    else if (this.#isHeader(bytes, source.tokenizer)) {
      // The body holds several exports, and nothing tells whether their rows are the same.
      throw source.malformed('header_again', start, 'an event', 'the header once more');
    } else if (this.#suppressed.has(bytes, source.tokenizer)) return false;
    if (source.isRepaired) this.#countBad(bytes, start, source);
    source.editor?.edit(start, source.tokenizer, columns === undefined);
    if (columns !== undefined) columns.observe(bytes, source.tokenizer, source.rows + 1);
    return true;
  }

  #open(bytes: Buffer, start: number, source: RowSource): void {
    const header = readNames(bytes, source.tokenizer);
    if (header.every((name) => name === '')) throw source.malformed('no_header', start, 'column names', 'empty cells');
    this.#checkFormat(header, start, source);
    const missing = this.#requireSystem ? missingColumns(header) : [];
    if (missing.length > 0) {
      throw source.malformed('missing_columns', start, missing.join(', '), `${header.length} other columns`);
    }
    this.#isSystem = Uint8Array.from(header, (name) => (SYSTEM_NAMES.has(name.toLowerCase()) ? 1 : 0));
    this.#arrived = header;
    this.#header = header;
    this.#suppressed.open(header);
    const isHashed = this.#edits === undefined ? [] : this.#edit(header, this.#edits);
    this.#columns = new Columns(headerColumns(this.#header), isHashed, this.#zone);
  }

  /** Throws if the header shows another format, of which each download would be. */
  #checkFormat(header: readonly string[], start: number, source: RowSource): void {
    source.repairedIn(start, () => {
      throw otherEncoding();
    });
    if (/^sep=/i.test(header[0]))
      throw new UnusableCsv('a line sep= before its header', 'the header as the first line');
    const separator = header.map((name) => OTHER_SEPARATOR.exec(name)).find((match) => match !== null);
    if (separator) throw new UnusableCsv(`cells between ${JSON.stringify(separator[1] ?? separator[2])}`, 'commas');
    if (this.#requireSystem && header.some((name) => name.includes('\r'))) throw otherLineEnds();
  }

  /** Throws if most of the text is no UTF-8, or if all rows lie in one line: values repeat, names hardly do. */
  #checkWhole(): void {
    const { rows, finalNewline } = this.#source;
    if (this.#requireSystem && rows === 1 && !finalNewline && new Set(this.#header).size < this.#header.length)
      throw new UnusableCsv('a single line, in which values repeat', 'a line for each row');
    if (this.#foreignCells >= MIN_FOREIGN_CELLS && this.#foreignCells > rows * FOREIGN_CELLS_A_ROW)
      throw otherEncoding();
  }

  /** True for the header of another export in the same body: a system column has the name of one, in any case. */
  #isHeader(bytes: Buffer, { cells, used }: RowTokenizer): boolean {
    for (let k = 0; k < used; k += STRIDE) {
      if (this.#isSystem[cells[k] >> COLUMN_SHIFT] !== 1 || (bytes[cells[k + 1]] | LOWER_BIT) !== LOWER_D) continue;
      if (SYSTEM_NAMES.has(bytes.toString('latin1', cells[k + 1], cells[k + 2]).toLowerCase())) return true;
    }
    return false;
  }

  #edit(header: readonly string[], edits: ColumnEdits): boolean[] {
    const { actions, kept, listed } = editHeader(header, edits);
    this.#source.editor?.open(actions);
    this.#actions = actions;
    this.#listed = listed;
    this.#header = kept.map(({ name }) => name);
    if (kept.length === 0) throw configError('columns_drop names every column there is: leave one.');
    return kept.map(({ isHashed }) => isHashed);
  }

  #countBad(bytes: Buffer, start: number, source: RowSource): void {
    const { cells, used } = source.tokenizer;
    let k = 0;
    let counted = -1;
    source.repairedIn(start, (index) => {
      while (k < used && cells[k + 2] <= index) k += STRIDE;
      if (k >= used || k === counted) return;
      counted = k;
      const column = cells[k] >> COLUMN_SHIFT;
      if (this.#actions[column] === DROP) return;
      this.#badCells++;
      if (isForeign(bytes.toString('utf8', cells[k + 1], cells[k + 2]))) this.#foreignCells++;
      this.#firstBad ??= { row: source.rows + 1, column: this.#arrived[column] };
    });
  }
}

/** True if most characters beyond ASCII were replaced, where a text that was cut within one has others. */
function isForeign(text: string): boolean {
  const others = text.replace(/[\0-\x7f]/g, '');
  return others.replaceAll('\ufffd', '').length * 2 < others.length;
}

/** Finds and counts the rows of people on the suppression list. */
class SuppressedRows {
  /** Number of rows found. */
  rows = 0;
  readonly #filter: RowFilter | undefined;
  readonly #cell = new CellText();
  /** The columns of the filter that the header has, in the order of the header. */
  #columns: readonly (readonly [index: number, name: string])[] = [];

  constructor(filter: RowFilter | undefined) {
    this.#filter = filter;
  }

  open(header: readonly string[]): void {
    const wanted = this.#filter?.columns ?? [];
    this.#columns = header.flatMap((name, index) => (wanted.includes(name) ? [[index, name] as const] : []));
  }

  /** True if the tokenizer's last row belongs to such a person; it is counted. */
  has(bytes: Buffer, { cells, used }: RowTokenizer): boolean {
    let k = 0;
    const isDropped = this.#columns.some(([column, name]) => {
      while (k < used && cells[k] >> COLUMN_SHIFT < column) k += STRIDE;
      if (k >= used || cells[k] >> COLUMN_SHIFT !== column) return false;
      this.#cell.read(bytes, cells, k);
      return this.#filter?.drops(name, this.#cell.bytes, this.#cell.start, this.#cell.end) === true;
    });
    if (isDropped) this.rows++;
    return isDropped;
  }
}
