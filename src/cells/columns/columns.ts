import type { CsvMemory } from '../csv/csv-memory.ts';
import { COLUMN_SHIFT, COUNTED, EXAMINED, STRIDE } from '../csv/layout.ts';
import { CellText, type RowTokenizer } from '../csv/tokenizer.ts';
import { civilSeconds, FIELDS, MICROS, OFFSET } from '../types/calendar.ts';
import {
  DATE,
  DATETIME_BEYOND,
  DATETIME_DASH,
  DATETIME_DOT,
  DATETIME_OFFSET,
  type Evidence,
  NULL_TEXT,
  STRING,
} from '../types/evidence.ts';
import { acceptedBy, classify, typeOf } from '../types/index.ts';
import type { ColumnType } from '../types/type.ts';
import { END_OF_INSTANTS, type Zone } from '../types/zone.ts';
import { ColumnWords } from './column-words.ts';
import { DETAIL_LOG_ID, EVENT_NAME, type HeaderColumn, hashed } from './groups.ts';
import { IdHashes, type IdSample } from './id-hashes.ts';
import { NameSet } from './name-set.ts';
import { type ColumnScan, type FirstSeen, shapeOf } from './scan.ts';

/** Modes of a column beside EXAMINED and COUNTED: its cells are ids, or names of events. */
const EVENT_IDS = 2;
const EVENT_NAMES = 3;

/** The bits of a cell whose UTC offset takes its instant out of the years 1 to 9999. */
const NOT_IN_YEARS = DATETIME_OFFSET | DATETIME_BEYOND;
const TIMES = DATE | DATETIME_DOT | DATETIME_DASH | DATETIME_OFFSET;
/** Maximum number of event names that a scan lists: a list of so many may lack some. */
export const MAX_SCANNED_NAMES = 1_000;

/** Maximum number of ids of one export in the sample by which ids that come back on another day are found. */
const MAX_SAMPLED_IDS = 16_384;

/** The result for the detail log ids of an export. */
export interface DetailLogIds {
  /** True if a row had no id, or an id that another row had, or if there were too many ids to tell. */
  readonly hasDuplicateOrMissingIds: boolean;
  /** Absent if the ids are hashed, or if there were too many. */
  readonly sample?: IdSample | undefined;
}

/**
 * Collects from every cell of every row what `ColumnScan` reports; state in flat arrays, one entry a column. Methods
 * get a cell as several numbers, so that no object is made for it.
 */
export class Columns {
  readonly #header: readonly HeaderColumn[];
  readonly #isHashed: readonly boolean[];
  readonly #zone: Zone | undefined;
  readonly #evidence: Int32Array;
  readonly #accepted: Int32Array;
  readonly #misfits: Float64Array;
  readonly #words: ColumnWords;
  readonly #seen = new Map<number, FirstSeen[]>();
  readonly #text = new CellText();
  readonly #ids = new IdHashes();
  readonly #eventNames = new NameSet(MAX_SCANNED_NAMES);

  /** `isHashed`: for each column whether it holds hashes; empty if none does. `memory` holds the rows. */
  constructor(
    columns: readonly HeaderColumn[],
    isHashed: readonly boolean[],
    zone: Zone | undefined,
    memory: CsvMemory,
  ) {
    const count = columns.length;
    const header = columns.map((column, i) => (isHashed[i] ? hashed(column) : column));
    this.#header = header;
    this.#isHashed = isHashed;
    this.#zone = zone;
    this.#evidence = new Int32Array(count);
    this.#accepted = Int32Array.from(header, (c) => (c.declared ? acceptedBy(c.declared, zone !== undefined) : -1));
    this.#misfits = new Float64Array(count);
    this.#words = new ColumnWords(
      memory,
      Uint8Array.from(header, (c, i) => modeOf(c, isHashed[i])),
      zone,
    );
  }

  /** Collects the tokenizer's last row. `row` is its number, for `seen`. */
  observe(bytes: Uint8Array, { cells, used }: RowTokenizer, row: number): void {
    const words = this.#words;
    for (let k = 0; k < used; k += STRIDE) {
      k = words.observe(k, used);
      if (k >= used) return;
      words.countFilled(cells[k] >> COLUMN_SHIFT);
      this.#collect(bytes, cells, k, row);
    }
  }

  /** Ends the collection of ids; called once, after the last of `rows` rows. */
  finish(rows: number): DetailLogIds {
    const ids = this.#ids.finish(MAX_SAMPLED_IDS);
    const areHashed = this.#isHashed[this.#header.findIndex(({ source }) => source === DETAIL_LOG_ID)];
    return { hasDuplicateOrMissingIds: ids?.distinct !== rows, sample: areHashed ? undefined : ids?.sample };
  }

  eventNames(): string[] {
    return this.#eventNames.names();
  }

  /** What was collected; the memory must still be there. */
  scans(): ColumnScan[] {
    return this.#header.map((_, column) => this.#scan(column));
  }

  #collect(row: Uint8Array, cells: Int32Array, k: number, rowNumber: number): void {
    const column = cells[k] >> COLUMN_SHIFT;
    const mode = this.#words.mode(column);
    if (mode === COUNTED) return;
    const cell = this.#text;
    cell.read(row, cells, k);
    const { bytes, start, end } = cell;
    if (mode === EXAMINED) this.#examine(bytes, start, end, column, rowNumber);
    else if (mode === EVENT_NAMES) this.#eventNames.add(bytes, start, end);
    else this.#ids.add(bytes, start, end);
  }

  #examine(bytes: Uint8Array, start: number, end: number, column: number, row: number): void {
    const bits = classify(bytes, start, end, this.#zone);
    const had = this.#evidence[column];
    if ((bits & ~had) !== 0) this.#discover(bytes, start, end, column, bits & ~had, row);
    if ((bits & ~this.#accepted[column]) !== 0) this.#misfits[column]++;
    if ((bits & TIMES) === 0 || (bits & NOT_IN_YEARS) === NOT_IN_YEARS) return;
    const seconds = civilSeconds();
    if ((bits & DATETIME_OFFSET) === 0) this.#words.cacheHour(seconds);
    this.#words.addTime(column, this.#wallClock(seconds, bits), FIELDS[MICROS]);
  }

  /** The time of a cell by the zone's wall clock; of a later one the last second that a text without a zone has. */
  #wallClock(seconds: number, bits: Evidence): number {
    if ((bits & DATETIME_OFFSET) === 0 || this.#zone === undefined) return seconds;
    const utc = seconds - FIELDS[OFFSET];
    return Math.min(utc + this.#zone.offsetAt(utc), END_OF_INSTANTS - 1);
  }

  #discover(bytes: Uint8Array, start: number, end: number, column: number, bits: Evidence, row: number): void {
    this.#evidence[column] |= bits;
    const isCounted = (bits & STRING) !== 0 && this.#header[column].declared === undefined;
    this.#words.setKnown(column, this.#evidence[column] & this.#accepted[column], isCounted ? COUNTED : EXAMINED);
    const seen = this.#seen.get(column) ?? [];
    seen.push({ evidence: bits, row, shape: shapeOf(bytes, start, end) });
    this.#seen.set(column, seen);
  }

  #scan(column: number): ColumnScan {
    const { name: source, group, declared } = this.#header[column];
    const filled = this.#words.filled(column);
    const evidence = declared === 'string' && filled > 0 ? STRING : this.#evidence[column];
    const type = this.#typeOf(evidence, declared);
    const seen = this.#seen.get(column);
    return {
      source,
      group,
      ...(this.#isHashed[column] && { hashed: true }),
      evidence,
      ...(type !== undefined && { type }),
      filled,
      misfits: this.#misfits[column],
      ...(type === 'datetime' && this.#words.range(column)),
      ...(seen !== undefined && { seen }),
    };
  }

  #typeOf(evidence: Evidence, declared: ColumnType | undefined): ColumnType | undefined {
    if (declared !== undefined) return (evidence & ~NULL_TEXT) === 0 ? undefined : declared;
    return typeOf(evidence, this.#zone !== undefined);
  }
}

function modeOf({ source, occurrence, declared }: HeaderColumn, isHashed: boolean | undefined): number {
  // Event names that are hashed must not be remembered; ids that are hashed are only counted.
  if (source === EVENT_NAME && occurrence === 1 && !isHashed) return EVENT_NAMES;
  if (source === DETAIL_LOG_ID && occurrence === 1) return EVENT_IDS;
  return declared === 'string' ? COUNTED : EXAMINED;
}
