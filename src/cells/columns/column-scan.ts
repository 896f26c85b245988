import { CellText, COLUMN_SHIFT, type RowTokenizer, STRIDE } from '../csv/tokenizer.ts';
import { CivilTime } from '../types/calendar.ts';
import {
  type CellForms,
  DATE,
  DATETIME_BEYOND,
  DATETIME_DASH,
  DATETIME_DOT,
  DATETIME_OFFSET,
  NULL_TEXT,
  STRING,
} from '../types/forms.ts';
import type { ColumnType } from '../types/type.ts';
import { acceptedBy, classify, typeOf } from '../types/types.ts';
import { END_OF_INSTANTS, type Zone } from '../types/zone.ts';
import { type ColumnGroup, EVENT_NAME, type HeaderColumn, hashed } from './groups.ts';
import { IdHashes } from './id-hashes.ts';

/** The first cell of a column that had a new class. */
export interface FirstSeen {
  /** The bits that it added. */
  readonly forms: CellForms;
  /** Number of its row; the header is row 1. */
  readonly row: number;
  /** Its shape: digits as 9, letters as a, at most 32 characters. Nothing else of a cell may be logged. */
  readonly shape: string;
}

/** The result of a scan for one column, from all of its cells. */
export interface ColumnScan {
  /** The name in the export. */
  readonly source: string;
  readonly group: ColumnGroup;
  /** True if the values were replaced by hashes: then the column is a string, whatever its name. */
  readonly hashed?: true;
  /** Bits of `src/cells/types/forms.ts`. With STRING others may be missing; a declared string column has STRING alone. */
  readonly forms: CellForms;
  /** The declared type, else that of the forms; absent while every cell is absent. */
  readonly type?: ColumnType;
  /** Number of cells that are not empty (the text `null` counts). */
  readonly filled: number;
  /** Number of cells that do not fit the declared type of a system or standard column; 0 for other columns. */
  readonly misfits: number;
  /**
   * First and last time of a datetime column, in the zone's wall clock. ISO texts without a zone:
   * `2026-01-02T03:04:00.000`, six digits if there are micros. The search for the end day uses them.
   */
  readonly first?: string;
  readonly last?: string;
  /** The first cells of each new class, in the order of rows; for the log line that says what widened a column. */
  readonly seen?: readonly FirstSeen[];
}

/** Maximum length of a shape (characters). */
const LONGEST = 32;
/** Bytes that are looked at: 32 characters take at most four bytes each. */
const MAX_SHAPED_BYTES = LONGEST * 4;
const decoder = new TextDecoder();

/** The shape of a cell, for logs: digits as 9, letters as a, control characters as `·`, others as they are. */
export function shapeOf(bytes: Uint8Array, start: number, end: number): string {
  const text = decoder.decode(bytes.subarray(start, Math.min(end, start + MAX_SHAPED_BYTES)));
  return [...text].slice(0, LONGEST).map(shapeOfCharacter).join('');
}

function shapeOfCharacter(character: string): string {
  if (/\p{N}/u.test(character)) return '9';
  if (/[\p{L}\p{M}]/u.test(character)) return 'a';
  return /\p{C}/u.test(character) ? '·' : character;
}

/**
 * Modes of a column: each filled cell is examined, or only counted, since its forms can change no more; its cells are
 * ids, or names of events.
 */
const EXAMINED = 0;
const COUNTED = 1;
const ROW_IDS = 2;
const EVENT_NAMES = 3;

/** The bits of a cell whose UTC offset takes its instant out of the years 1 to 9999. */
const NOT_IN_YEARS = DATETIME_OFFSET | DATETIME_BEYOND;
const TIMES = DATE | DATETIME_DOT | DATETIME_DASH | DATETIME_OFFSET;
/** Maximum number of event names that a scan lists: a list of so many may lack some. */
const MAX_SCANNED_NAMES = 1_000;

interface ColumnsOptions {
  /** For each column whether it holds hashes; empty if none does. */
  readonly isHashed: readonly boolean[];
  /** Name of the column whose cells identify rows. */
  readonly idColumn: string;
  readonly zone: Zone | undefined;
}

/**
 * Collects from every cell of every row what `ColumnScan` reports; state in flat arrays, one entry a column. Methods
 * get a cell as several numbers, so that no object is made for it.
 */
export class Columns {
  readonly #header: readonly HeaderColumn[];
  readonly #isHashed: readonly boolean[];
  readonly #zone: Zone | undefined;
  readonly #forms: Int32Array;
  readonly #accepted: Int32Array;
  readonly #misfits: Float64Array;
  readonly #filled: Float64Array;
  readonly #modes: Uint8Array;
  /** First and last time of each column: the second from 1970-01-01 00:00 of the wall clock, and its microsecond. */
  readonly #first: Times;
  readonly #last: Times;
  readonly #seen = new Map<number, FirstSeen[]>();
  readonly #text = new CellText();
  /** The time of the last cell with one. */
  readonly #time = new CivilTime();
  readonly #ids = new IdHashes();
  /** As Latin-1, at most `MAX_SCANNED_NAMES`. */
  readonly #eventNames = new Set<string>();

  constructor(columns: readonly HeaderColumn[], { isHashed, idColumn, zone }: ColumnsOptions) {
    const count = columns.length;
    const header = columns.map((column, i) => (isHashed[i] ? hashed(column) : column));
    this.#header = header;
    this.#isHashed = isHashed;
    this.#zone = zone;
    this.#forms = new Int32Array(count);
    this.#accepted = Int32Array.from(header, (c) => (c.declared ? acceptedBy(c.declared, zone !== undefined) : -1));
    this.#misfits = new Float64Array(count);
    this.#filled = new Float64Array(count);
    this.#modes = Uint8Array.from(header, (c, i) => modeOf(c, isHashed[i], idColumn));
    this.#first = { seconds: new Float64Array(count).fill(Number.POSITIVE_INFINITY), micros: new Int32Array(count) };
    this.#last = { seconds: new Float64Array(count).fill(Number.NEGATIVE_INFINITY), micros: new Int32Array(count) };
  }

  /** Collects the tokenizer's last row. `row` is its number, for `seen`. */
  observe(bytes: Buffer, { cells, used }: RowTokenizer, row: number): void {
    const [filled, modes] = [this.#filled, this.#modes];
    for (let k = 0; k < used; k += STRIDE) {
      const column = cells[k] >> COLUMN_SHIFT;
      filled[column]++;
      if (modes[column] !== COUNTED) this.#collect(bytes, cells, k, row);
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
  scans(): ColumnScan[] {
    return this.#header.map((_, column) => this.#scan(column));
  }

  #collect(row: Buffer, cells: Int32Array, k: number, rowNumber: number): void {
    const column = cells[k] >> COLUMN_SHIFT;
    const mode = this.#modes[column];
    const cell = this.#text;
    cell.read(row, cells, k);
    const { bytes, start, end } = cell;
    if (mode === EXAMINED) this.#examine(bytes, start, end, column, rowNumber);
    else if (mode === ROW_IDS) this.#ids.add(bytes, start, end);
    else if (this.#eventNames.size < MAX_SCANNED_NAMES) this.#eventNames.add(cell.latin1);
  }

  #examine(bytes: Uint8Array, start: number, end: number, column: number, row: number): void {
    const bits = classify(bytes, start, end, this.#zone, this.#time);
    const had = this.#forms[column];
    if ((bits & ~had) !== 0) this.#discover(bytes, start, end, column, bits & ~had, row);
    if ((bits & ~this.#accepted[column]) !== 0) this.#misfits[column]++;
    if ((bits & TIMES) === 0 || (bits & NOT_IN_YEARS) === NOT_IN_YEARS) return;
    this.#addTime(column, this.#wallClock(bits), this.#time.micros);
  }

  #addTime(column: number, second: number, micro: number): void {
    const [first, last] = [this.#first, this.#last];
    if (second < first.seconds[column] || (second === first.seconds[column] && micro < first.micros[column]))
      setTime(first, column, second, micro);
    if (second > last.seconds[column] || (second === last.seconds[column] && micro > last.micros[column]))
      setTime(last, column, second, micro);
  }

  /** The time of a cell by the zone's wall clock; of a later one the last second that a text without a zone has. */
  #wallClock(bits: CellForms): number {
    const { seconds, offset } = this.#time;
    if ((bits & DATETIME_OFFSET) === 0 || this.#zone === undefined) return seconds;
    const utc = seconds - offset;
    return Math.min(utc + this.#zone.offsetAt(utc), END_OF_INSTANTS - 1);
  }

  #discover(bytes: Uint8Array, start: number, end: number, column: number, bits: CellForms, row: number): void {
    this.#forms[column] |= bits;
    const isCounted = (bits & STRING) !== 0 && this.#header[column].declared === undefined;
    if (isCounted) this.#modes[column] = COUNTED;
    const seen = this.#seen.get(column) ?? [];
    seen.push({ forms: bits, row, shape: shapeOf(bytes, start, end) });
    this.#seen.set(column, seen);
  }

  #scan(column: number): ColumnScan {
    const { name: source, group, declared } = this.#header[column];
    const filled = this.#filled[column];
    const forms = declared === 'string' && filled > 0 ? STRING : this.#forms[column];
    const type = this.#typeOf(forms, declared);
    const seen = this.#seen.get(column);
    return {
      source,
      group,
      ...(this.#isHashed[column] && { hashed: true }),
      forms,
      ...(type !== undefined && { type }),
      filled,
      misfits: this.#misfits[column],
      ...(type === 'datetime' &&
        this.#first.seconds[column] <= this.#last.seconds[column] && {
          first: isoText(this.#first, column),
          last: isoText(this.#last, column),
        }),
      ...(seen !== undefined && { seen }),
    };
  }

  #typeOf(forms: CellForms, declared: ColumnType | undefined): ColumnType | undefined {
    if (declared !== undefined) return (forms & ~NULL_TEXT) === 0 ? undefined : declared;
    return typeOf(forms, this.#zone !== undefined);
  }
}

/** A time for each column. */
interface Times {
  readonly seconds: Float64Array;
  readonly micros: Int32Array;
}

function setTime({ seconds, micros }: Times, column: number, second: number, micro: number): void {
  seconds[column] = second;
  micros[column] = micro;
}

/** `2026-01-02T03:04:05.678`, with six digits if there are micros. */
function isoText({ seconds, micros }: Times, column: number): string {
  const time = new CivilTime();
  time.seconds = seconds[column];
  const day = [pad(time.year, 4), pad(time.month, 2), pad(time.day, 2)].join('-');
  const clock = [pad(time.hour, 2), pad(time.minute, 2), pad(time.second, 2)].join(':');
  const fraction = pad(micros[column], 6);
  return `${day}T${clock}.${fraction.endsWith('000') ? fraction.slice(0, 3) : fraction}`;
}

const pad = (value: number, width: number): string => String(value).padStart(width, '0');

function modeOf(
  { source, occurrence, declared }: HeaderColumn,
  isHashed: boolean | undefined,
  idColumn: string,
): number {
  // Event names that are hashed must not be remembered; ids that are hashed are only counted.
  if (source === EVENT_NAME && occurrence === 1 && !isHashed) return EVENT_NAMES;
  if (source === idColumn && occurrence === 1) return ROW_IDS;
  return declared === 'string' ? COUNTED : EXAMINED;
}
