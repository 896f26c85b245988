import { LOWER_BIT } from '../../base/ascii.ts';
import { CellText, type CsvRow } from '../csv/row.ts';
import type { RowReader } from '../csv/row-reader.ts';
import { DETAIL_LOG_ID, EVENT_NAME, REQUIRED_COLUMNS, UNIFIED_ID } from '../header.ts';
import { CellClassifier, type ColumnType, narrowestType } from '../types/column-types.ts';
import { type CellForms, DATE, DATETIME_DASH, DATETIME_DOT, DATETIME_OFFSET, STRING } from '../types/forms.ts';
import type { Zone } from '../types/zone.ts';
import type { EditedColumns, KeptColumn } from './column-edits.ts';
import { IdHashes } from './id-hashes.ts';

/** The result of a scan for one column, from all of its cells. */
export interface ColumnScan extends KeptColumn {
  /** With STRING others may be missing: then nothing depends on them. A declared string column has STRING alone. */
  readonly forms: CellForms;
  /** Undefined while every cell is absent; else the declared type; without one that of the cells. */
  readonly type: ColumnType | undefined;
  /** Number of cells that are not empty (the text `null` counts). */
  readonly filledCount: number;
  /**
   * Seconds from 1970-01-01 00:00 by the zone's wall clock; earliestTime > latestTime if no cell is a time. Nothing is
   * read of a column that is a string, by its declaration or by its cells so far.
   */
  readonly earliestTime: number;
  readonly latestTime: number;
}

/**
 * What is done with each filled cell of a column, beside counting it.
 *
 *   examined     its forms are collected
 *   unread       nothing: the forms can change no more, or nobody asks for them
 *   row_id       it is an id; its forms are not collected, since its column is a declared string
 *   event_name   it is the name of an event, which is a declared string too
 */
type CellUse = 'examined' | 'unread' | 'row_id' | 'event_name';

function useOf(column: KeptColumn | undefined, idColumn: string): CellUse {
  if (column === undefined) return 'unread';
  const { source, occurrence, declaredType, isHashed } = column;
  // An event name that is hashed must not be remembered. A hashed id still identifies its row.
  if (source === EVENT_NAME && occurrence === 1 && !isHashed) return 'event_name';
  if (source === idColumn && occurrence === 1) return 'row_id';
  return declaredType === 'string' ? 'unread' : 'examined';
}

/** Names in lower case that tell a second header: the required columns but the event name, which may have another. */
const HEADER_NAMES: ReadonlySet<string> = new Set(REQUIRED_COLUMNS.filter((name) => name !== EVENT_NAME));

/** What the cells of one column have told so far. */
interface Tally {
  /** Undefined for a dropped column. */
  readonly column: KeptColumn | undefined;
  /** True for a column with a name of `HEADER_NAMES`. */
  readonly mayRepeatHeader: boolean;
  use: CellUse;
  filledCount: number;
  forms: CellForms;
  earliestTime: number;
  latestTime: number;
}

const TIME_FORMS = DATE | DATETIME_DOT | DATETIME_DASH | DATETIME_OFFSET;
/** Maximum number of event names that a scan lists: a list of so many may lack some. */
const MAX_SCANNED_NAMES = 1_000;

/** Collects from every cell what `ColumnScan` reports, without an object for it, and nothing of a hashed value. */
export class ColumnScanner {
  /** By the column of the export. */
  readonly #tallies: readonly Tally[];
  readonly #zone: Zone | undefined;
  readonly #cell = new CellText();
  readonly #classifier = new CellClassifier();
  readonly #ids = new IdHashes();
  /** As Latin-1, at most `MAX_SCANNED_NAMES`. */
  readonly #eventNames = new Set<string>();

  constructor(header: readonly string[], columns: EditedColumns, zone: Zone | undefined) {
    // A row of an export of profiles is a person.
    const idColumn = header.includes(DETAIL_LOG_ID) ? DETAIL_LOG_ID : UNIFIED_ID;
    this.#tallies = columns.map((column, i): Tally => {
      const mayRepeatHeader = HEADER_NAMES.has(header[i].toLowerCase());
      const use = useOf(column, idColumn);
      return { column, mayRepeatHeader, use, filledCount: 0, forms: 0, earliestTime: Infinity, latestTime: -Infinity };
    });
    this.#zone = zone;
  }

  /**
   * Collects what a row tells. Throws MalformedCsv for the header of another export: a required column has the name of
   * one. Such a body holds several exports, and nothing tells whether their rows are the same.
   */
  scan(reader: RowReader): void {
    const { row } = reader;
    const { filledCount, columnNumbers } = row;
    for (let k = 0; k < filledCount; k++) {
      const tally = this.#tallies[columnNumbers[k]];
      if (tally.mayRepeatHeader && holdsHeaderName(row, k))
        throw reader.rowError('header_again', 'a data row', 'the header once more');
      tally.filledCount++;
      if (tally.use !== 'unread') this.#readCell(row, k, tally);
    }
  }

  /** True if each of `rows` rows had an id, and no other row the same; false if there were too many ids to tell. */
  hasUniqueIds(rows: number): boolean {
    return this.#ids.distinctCount() === rows;
  }

  eventNames(): string[] {
    return Array.from(this.#eventNames, (name) => Buffer.from(name, 'latin1').toString()).sort();
  }

  columnScans(): ColumnScan[] {
    return this.#tallies.flatMap((tally): ColumnScan[] => {
      const { column, filledCount, earliestTime, latestTime } = tally;
      if (column === undefined) return [];
      const forms = column.declaredType === 'string' && filledCount > 0 ? STRING : tally.forms;
      const typeOfCells = narrowestType(forms, this.#zone);
      const type = typeOfCells === undefined ? undefined : (column.declaredType ?? typeOfCells);
      return [{ ...column, forms, type, filledCount, earliestTime, latestTime }];
    });
  }

  #readCell(row: CsvRow, k: number, tally: Tally): void {
    const cell = this.#cell;
    cell.read(row, k);
    if (tally.use === 'examined') this.#examine(cell, tally);
    else if (tally.use === 'row_id') this.#ids.add(cell.bytes, cell.start, cell.end);
    else if (this.#eventNames.size < MAX_SCANNED_NAMES) this.#eventNames.add(cell.latin1);
  }

  #examine({ bytes, start, end }: CellText, tally: Tally): void {
    const forms = this.#classifier.formsOf(bytes, start, end, this.#zone);
    tally.forms |= forms;
    if ((forms & STRING) !== 0 && tally.column?.declaredType === undefined) tally.use = 'unread';
    if ((forms & TIME_FORMS) === 0) return;
    const seconds = this.#wallClock(forms);
    if (seconds < tally.earliestTime) tally.earliestTime = seconds;
    if (seconds > tally.latestTime) tally.latestTime = seconds;
  }

  /** The time of the cell that was classified last, by the zone's wall clock. */
  #wallClock(forms: CellForms): number {
    const { seconds, offset } = this.#classifier.time;
    if ((forms & DATETIME_OFFSET) === 0 || this.#zone === undefined) return seconds;
    const utc = seconds - offset;
    return utc + this.#zone.offsetAt(utc);
  }
}

const LOWER_D = 0x64;

function holdsHeaderName({ bytes, starts, ends }: CsvRow, k: number): boolean {
  // All these names begin with `d`: few cells need a string.
  if ((bytes[starts[k]] | LOWER_BIT) !== LOWER_D) return false;
  return HEADER_NAMES.has(bytes.toString('latin1', starts[k], ends[k]).toLowerCase());
}
