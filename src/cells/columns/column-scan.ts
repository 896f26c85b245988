import { CellText, COLUMN_SHIFT, type CsvRow, STRIDE } from '../csv/row.ts';
import { DROP, HASH } from '../csv/row-writer.ts';
import { CivilTime } from '../types/civil-time.ts';
import type { ColumnType } from '../types/codec.ts';
import {
  type CellForms,
  DATE,
  DATETIME_DASH,
  DATETIME_DOT,
  DATETIME_OFFSET,
  NULL_TEXT,
  STRING,
} from '../types/forms.ts';
import { formsOf, typeOf } from '../types/types.ts';
import type { Zone } from '../types/zone.ts';
import type { EditedHeader } from './column-edits.ts';
import { type ColumnGroup, EVENT_NAME, type HeaderColumn, headerColumns } from './groups.ts';
import { IdHashes } from './id-hashes.ts';

/** The first cell of a column that had a new form. */
export interface FirstCell {
  /** The forms that it added. */
  readonly forms: CellForms;
  /** Its shape: digits as 9, letters as a, at most 32 characters. Nothing else of a cell may be logged. */
  readonly shape: string;
}

/** The result of a scan for one column, from all of its cells. */
export interface ColumnScan {
  /** Its name in the header. */
  readonly name: string;
  readonly group: ColumnGroup;
  /** True if the values were replaced by hashes: then the column is a string, whatever its name. */
  readonly hashed?: true;
  /** With STRING others may be missing: then nothing depends on them. A declared string column has STRING alone. */
  readonly forms: CellForms;
  /** The declared type, else that of the forms; absent while every cell is absent. */
  readonly type?: ColumnType;
  /** Number of cells that are not empty (the text `null` counts). */
  readonly filled: number;
  /** First and last time of a datetime column: seconds from 1970-01-01 00:00 by the zone's wall clock. */
  readonly first?: number;
  readonly last?: number;
  /** The first cell of each new form, in the order of rows; for the log line that says what widened a column. */
  readonly seen?: readonly FirstCell[];
}

/** Maximum length of a shape (characters). */
const MAX_SHAPE_LENGTH = 32;
/** Bytes that are looked at: 32 characters take at most four bytes each. */
const MAX_SHAPED_BYTES = MAX_SHAPE_LENGTH * 4;
const decoder = new TextDecoder();

/** The shape of a cell, for logs: digits as 9, letters as a, control characters as `·`, others as they are. */
function shapeOf(bytes: Uint8Array, start: number, end: number): string {
  const text = decoder.decode(bytes.subarray(start, Math.min(end, start + MAX_SHAPED_BYTES)));
  return [...text].slice(0, MAX_SHAPE_LENGTH).map(shapeOfCharacter).join('');
}

function shapeOfCharacter(character: string): string {
  if (/\p{N}/u.test(character)) return '9';
  if (/[\p{L}\p{M}]/u.test(character)) return 'a';
  return /\p{C}/u.test(character) ? '·' : character;
}

// What is done with each filled cell of a column, beside counting it.

/** Its forms are collected. */
const EXAMINED = 0;
/** Nothing: the forms can change no more, or nobody asks for them. */
const COUNTED = 1;
/** It is an id. Its forms are not collected, so that the column must be a declared string. */
const ROW_IDS = 2;
/** It is the name of an event, which is a declared string too. */
const EVENT_NAMES = 3;

const TIMES = DATE | DATETIME_DOT | DATETIME_DASH | DATETIME_OFFSET;
/** Maximum number of event names that a scan lists: a list of so many may lack some. */
const MAX_SCANNED_NAMES = 1_000;

/** A column that is kept. If it holds hashes, it is a string, whatever type the service fixes. */
interface KeptColumn extends HeaderColumn {
  readonly isHashed: boolean;
}

/**
 * Collects from every cell what `ColumnScan` reports, in flat arrays of one entry a column of the header.
 * Methods get a cell as several numbers, so that no object is made for it. Nothing is kept of a hashed value.
 */
export class ColumnCollector {
  /** By the column of the export; undefined for a dropped one. */
  readonly #columns: readonly (KeptColumn | undefined)[];
  readonly #zone: Zone | undefined;
  readonly #forms: Int32Array;
  readonly #filled: Float64Array;
  readonly #modes: Uint8Array;
  readonly #first: Float64Array;
  readonly #last: Float64Array;
  readonly #seen = new Map<number, FirstCell[]>();
  readonly #text = new CellText();
  /** The time of the last cell with one. */
  readonly #time = new CivilTime();
  readonly #ids = new IdHashes();
  /** As Latin-1, at most `MAX_SCANNED_NAMES`. */
  readonly #eventNames = new Set<string>();

  /** `idColumn`: name of the column whose cells identify rows. */
  constructor({ actions, kept }: Pick<EditedHeader, 'actions' | 'kept'>, idColumn: string, zone: Zone | undefined) {
    const count = actions.length;
    // The kept header decides, as for all readers of the file: without `df_event_name`, `event_name` is the event name.
    const keptColumns = headerColumns(kept).values();
    this.#columns = Array.from(actions, (action): KeptColumn | undefined => {
      const column = action === DROP ? undefined : keptColumns.next().value;
      const isHashed = action === HASH;
      return column && { ...column, isHashed, declared: isHashed ? 'string' : column.declared };
    });
    this.#zone = zone;
    this.#forms = new Int32Array(count);
    this.#filled = new Float64Array(count);
    this.#modes = Uint8Array.from(this.#columns, (column) => modeOf(column, idColumn));
    this.#first = new Float64Array(count).fill(Number.POSITIVE_INFINITY);
    this.#last = new Float64Array(count).fill(Number.NEGATIVE_INFINITY);
  }

  observe(row: CsvRow): void {
    const { cells, used } = row;
    const [filled, modes] = [this.#filled, this.#modes];
    for (let k = 0; k < used; k += STRIDE) {
      const column = cells[k] >> COLUMN_SHIFT;
      filled[column]++;
      if (modes[column] !== COUNTED) this.#collect(row, k);
    }
  }

  /**
   * Ends the collection of ids, once, after the last of `rows` rows. True if a row had no id, or the id of another row.
   * Also true if there were too many ids to tell.
   */
  hasDuplicateOrMissingIds(rows: number): boolean {
    return this.#ids.distinct() !== rows;
  }

  eventNames(): string[] {
    return Array.from(this.#eventNames, (name) => Buffer.from(name, 'latin1').toString()).sort();
  }

  /** What was collected. */
  results(): ColumnScan[] {
    return this.#columns.flatMap((column, i) => (column === undefined ? [] : [this.#resultOf(column, i)]));
  }

  #collect(row: CsvRow, k: number): void {
    const column = row.cells[k] >> COLUMN_SHIFT;
    const mode = this.#modes[column];
    const cell = this.#text;
    cell.read(row, k);
    const { bytes, start, end } = cell;
    if (mode === EXAMINED) this.#examine(bytes, start, end, column);
    else if (mode === ROW_IDS) this.#ids.add(bytes, start, end);
    else if (this.#eventNames.size < MAX_SCANNED_NAMES) this.#eventNames.add(cell.latin1);
  }

  #examine(bytes: Uint8Array, start: number, end: number, column: number): void {
    const bits = formsOf(bytes, start, end, this.#zone, this.#time);
    const added = bits & ~this.#forms[column];
    if (added !== 0) this.#discover(bytes, start, end, column, added);
    if ((bits & TIMES) === 0) return;
    const second = this.#wallClock(bits);
    if (second < this.#first[column]) this.#first[column] = second;
    if (second > this.#last[column]) this.#last[column] = second;
  }

  /** The time of a cell by the zone's wall clock. */
  #wallClock(bits: CellForms): number {
    const { seconds, offset } = this.#time;
    if ((bits & DATETIME_OFFSET) === 0 || this.#zone === undefined) return seconds;
    const utc = seconds - offset;
    return utc + this.#zone.offsetAt(utc);
  }

  #discover(bytes: Uint8Array, start: number, end: number, column: number, added: CellForms): void {
    this.#forms[column] |= added;
    const needsNoForms = (added & STRING) !== 0 && this.#columns[column]?.declared === undefined;
    if (needsNoForms) this.#modes[column] = COUNTED;
    const seen = this.#seen.get(column) ?? [];
    seen.push({ forms: added, shape: shapeOf(bytes, start, end) });
    this.#seen.set(column, seen);
  }

  #resultOf({ name, group, declared, isHashed }: KeptColumn, column: number): ColumnScan {
    const filled = this.#filled[column];
    const forms = declared === 'string' && filled > 0 ? STRING : this.#forms[column];
    const type = this.#typeOf(forms, declared);
    const seen = this.#seen.get(column);
    const [first, last] = [this.#first[column], this.#last[column]];
    return {
      name,
      group,
      ...(isHashed && { hashed: true }),
      forms,
      ...(type !== undefined && { type }),
      filled,
      ...(type === 'datetime' && first <= last && { first, last }),
      ...(seen !== undefined && { seen }),
    };
  }

  #typeOf(forms: CellForms, declared: ColumnType | undefined): ColumnType | undefined {
    if (declared !== undefined) return (forms & ~NULL_TEXT) === 0 ? undefined : declared;
    return typeOf(forms, this.#zone);
  }
}

function modeOf(column: KeptColumn | undefined, idColumn: string): number {
  if (column === undefined) return COUNTED;
  const { source, occurrence, declared, isHashed } = column;
  // An event name that is hashed must not be remembered. A hashed id still identifies its row.
  if (source === EVENT_NAME && occurrence === 1 && !isHashed) return EVENT_NAMES;
  if (source === idColumn && occurrence === 1) return ROW_IDS;
  return declared === 'string' ? COUNTED : EXAMINED;
}
