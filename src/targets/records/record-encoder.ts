import { BACKSLASH, isNull, NUMBER_SIGN, OPEN_BRACE, QUOTE } from '../../base/ascii.ts';
import { COLUMN_SHIFT, COPY, OUT_END, SKIP, STRIDE, TEXT } from '../../cells/csv/layout.ts';
import { CellText, type RowTokenizer } from '../../cells/csv/tokenizer.ts';
import { DATETIME_BEYOND, DATETIME_OFFSET } from '../../cells/types/evidence.ts';
import { cellFits, classify, TYPES } from '../../cells/types/index.ts';
import { copyBytes, writeString } from '../../cells/types/json-text.ts';
import type { ColumnCodec } from '../../cells/types/type.ts';
import { Zone, zoneOf } from '../../cells/types/zone.ts';
import type { StreamName } from './property-names.ts';
import type { RecordMemory } from './record-memory.ts';
import { CHECKED, OFFSETS_ONLY, type RecordPlan } from './record-plan.ts';
import type { RowKey } from './row-key.ts';

/**
 * Room (bytes) for a cell beside `BYTE_ROOM` for each of its bytes, enough for a cell that is rescued and the row's
 * key, and so written three times.
 */
const CELL_ROOM = 100;
const BYTE_ROOM = 22;
/**
 * Room for each byte of a typed cell that fits: a number in a list, such as `1.0E15`, becomes a longer text in quotes.
 */
const TYPED_ROOM = 4;
const ESCAPE_ROOM = 6;
/**
 * Maximum size of a row (bytes) whose room is not measured cell by cell: the memory has 4 GiB at most, in which the
 * lines of the longest row must have room, one for each stream.
 */
const LARGE_ROW = 1 << 18;

/** Bytes behind a table that a vector load may read, and the alignment of the tables. */
const SLACK_BYTES = 16;
const WORD_BYTES = 4;

const encoder = new TextEncoder();
const bytesOf = (text: string) => encoder.encode(text);

const KEY_LABEL = bytesOf(',"_key":');
const LOG_ID_LABEL = bytesOf(',"df_event_log_id":');
const POSITION_LABEL = bytesOf(',"item_position":');
const NULL = bytesOf('null');
const END = bytesOf('}}}\n');

/**
 * Writes rows as RECORD lines, behind the rows in one memory. No object is made for a cell: methods get `cells` and the
 * index `k` of its first number, and move `at` of the memory behind what they wrote.
 */
export class RecordEncoder {
  readonly stream: StreamName;
  /** Cells that did not fit, by column of the header. */
  readonly rescued: Float64Array;
  records = 0;
  /** Room (bytes) for a row beside its cells. */
  readonly #room: number;
  readonly #plan: RecordPlan;
  readonly #codecs: readonly (ColumnCodec | undefined)[];
  readonly #zones: readonly (Zone | undefined)[];
  readonly #head: Uint8Array;
  readonly #placeholder: Uint8Array;
  readonly #mismatches: number[] = [];
  readonly #text = new CellText();
  /** Where the parts of the plan and `#head` lie in the memory, one behind the other. */
  #tables = { offsets: 0, labels: 0, encodings: 0, head: 0 };

  /** `emittedAt` is in ms since 1970. */
  constructor(plan: RecordPlan, timezone: string | undefined, emittedAt: number) {
    const zone = zoneOf(timezone);
    const utc = new Zone('UTC');
    this.stream = plan.name;
    this.#plan = plan;
    this.#codecs = plan.types.map((type) => type && TYPES[type]);
    this.#zones = Array.from(plan.encodings, (encoding, i) =>
      encoding === OFFSETS_ONLY ? utc : plan.asInstants[i] === 1 ? zone : undefined,
    );
    this.rescued = new Float64Array(plan.encodings.length);
    this.#head = bytesOf(`{"type":"RECORD","record":{"stream":"${plan.name}","emitted_at":${emittedAt},"data":`);
    this.#placeholder = bytesOf(plan.placeholder);
    const names = plan.rescuedAs.reduce((sum, name) => sum + name.length * 3, 0);
    this.#room = this.#head.length + this.#placeholder.length + plan.labels.length * 3 + names + 1024;
  }

  /** Number of bytes that `writeTables` writes. */
  get tableBytes(): number {
    const { labelOffsets, labels, encodings } = this.#plan;
    const bytes = labelOffsets.byteLength + labels.length + encodings.length + this.#head.length + SLACK_BYTES;
    return Math.ceil(bytes / WORD_BYTES) * WORD_BYTES;
  }

  /** Writes what SIMD needs of the plan from byte `at` on. */
  writeTables(bytes: Uint8Array, at: number): void {
    const { labelOffsets, labels, encodings } = this.#plan;
    const labelsAt = at + labelOffsets.byteLength;
    const encodingsAt = labelsAt + labels.length;
    const headAt = encodingsAt + encodings.length;
    this.#tables = { offsets: at, labels: labelsAt, encodings: encodingsAt, head: headAt };
    bytes.set(new Uint8Array(labelOffsets.buffer, labelOffsets.byteOffset, labelOffsets.byteLength), at);
    bytes.set(labels, labelsAt);
    bytes.set(encodings, encodingsAt);
    bytes.set(this.#head, headAt);
  }

  reset(): void {
    this.records = 0;
    this.rescued.fill(0);
  }

  /** Appends the tokenizer's last row. `ordinal` is its number, from 1, among the rows of this export with its key. */
  write(tokenizer: RowTokenizer, key: RowKey, ordinal: number, output: RecordMemory): void {
    const plan = this.#plan;
    const { bytes, functions } = output.csv;
    const headEnd = functions.copyBytes(this.#tables.head, this.#head.length, output.at);
    if (headEnd < 0) append(this.#head, output);
    else output.at = headEnd;
    const dataStart = output.at;
    if (plan.key) writeKey(KEY_LABEL, key, ordinal, output);
    this.#writeCells(bytes, tokenizer, output);
    // A row that names no event is an event of its own: its key replaces the log id.
    if (!key.hasLogId && plan.name === 'event_logs') writeKey(LOG_ID_LABEL, key, ordinal, output);
    if (plan.position && key.positionEnd > key.positionStart) writePosition(key, output);
    if (output.at === dataStart) append(this.#placeholder, output);
    if (this.#mismatches.length > 0) this.#writeMismatches(bytes, tokenizer, output);
    else append(END, output);
    bytes[dataStart] = OPEN_BRACE;
    this.records++;
  }

  /** An upper bound of the bytes that the tokenizer's last row can take. */
  roomFor(b: Uint8Array, { cells, used, contentEnd }: RowTokenizer): number {
    const rest = this.#room + used * CELL_ROOM;
    const length = used === 0 ? 0 : contentEnd - cells[1];
    if (length <= LARGE_ROW) return rest + length * BYTE_ROOM;
    let room = rest;
    let longest = 0;
    for (let k = 0; k < used; k += STRIDE) {
      const encoding = this.#plan.encodings[cells[k] >> COLUMN_SHIFT];
      const bytes = cells[k + 2] - cells[k + 1];
      longest = Math.max(longest, bytes);
      if (encoding === SKIP) continue;
      room += bytes * (encoding === TEXT ? 1 : TYPED_ROOM);
      room += escapesIn(b, cells[k + 1], cells[k + 2]) * ESCAPE_ROOM;
    }
    // Any cell may be the id that the key repeats.
    return room + longest * ESCAPE_ROOM;
  }

  #writeCells(b: Uint8Array, { cells, used }: RowTokenizer, output: RecordMemory): void {
    const { offsets, labels, encodings } = this.#tables;
    const { functions, info } = output.csv;
    for (let k = 0; k < used; k += STRIDE) {
      const first = functions.writeCells(k, used, encodings, labels, offsets, output.at);
      // The function returns 32 bits with a sign.
      if (first > k) output.at = info[OUT_END] >>> 0;
      if (first >= used) break;
      k = first;
      this.#writeCell(b, cells, k, output);
    }
  }

  /** Writes a label and its cell; nothing if the column is left out or the cell is absent. */
  #writeCell(b: Uint8Array, cells: Int32Array, k: number, output: RecordMemory): void {
    const { labels, labelOffsets } = this.#plan;
    const { at: start } = output;
    const head = cells[k];
    const column = head >> COLUMN_SHIFT;
    const encoding = this.#plan.encodings[column];
    if (encoding === SKIP) return;
    let at = start;
    for (let i = labelOffsets[column], end = labelOffsets[column + 1]; i < end; i++) b[at++] = labels[i];
    output.at = at;
    if (encoding === TEXT) this.#writeText(b, cells, k, output);
    else if (encoding === COPY) output.at = copyBytes(b, cells[k + 1], cells[k + 2], b, at);
    else if (!this.#writeTyped(b, cells, k, output)) output.at = start;
  }

  /** Writes the text of a cell as a JSON string, each pair of quotes as one quote. */
  #writeText(b: Uint8Array, cells: Int32Array, k: number, output: RecordMemory): void {
    this.#text.read(b, cells, k);
    output.at = writeString(this.#text.bytes, this.#text.start, this.#text.end, b, output.at);
  }

  /** Writes a cell of any type; false if it is absent. */
  #writeTyped(b: Uint8Array, cells: Int32Array, k: number, output: RecordMemory): boolean {
    this.#text.read(b, cells, k);
    const { bytes, start, end } = this.#text;
    if (isNull(bytes, start, end)) return false;
    const column = cells[k] >> COLUMN_SHIFT;
    if (this.#writeValue(bytes, start, end, column, output)) return true;
    this.#mismatches.push(k);
    this.rescued[column]++;
    append(NULL, output);
    return true;
  }

  /** Writes a cell with a value; false if it does not fit. */
  #writeValue(b: Uint8Array, start: number, end: number, column: number, output: RecordMemory): boolean {
    const codec = this.#codecs[column];
    if (codec === undefined) return false;
    const zone = this.#zones[column];
    const encoding = this.#plan.encodings[column];
    if (encoding === CHECKED && !cellFits(codec.type, b, start, end, zone)) return false;
    if (encoding === OFFSETS_ONLY) {
      const form = classify(b, start, end, zone);
      if ((form & DATETIME_OFFSET) === 0 || (form & DATETIME_BEYOND) !== 0) return false;
    }
    output.at = codec.writeJson(b, start, end, output.csv.bytes, output.at, zone);
    return true;
  }

  /** Writes `_rescued` and `meta.changes` for the cells that did not fit, and the end of the line. */
  #writeMismatches(b: Uint8Array, { cells }: RowTokenizer, output: RecordMemory): void {
    const mismatches = this.#mismatches;
    if (this.#plan.rescued) {
      mismatches.forEach((k, i) => {
        append(bytesOf(`${i === 0 ? ',"_rescued":{' : ','}${this.#plan.rescuedAs[cells[k] >> COLUMN_SHIFT]}:`), output);
        this.#writeText(b, cells, k, output);
      });
      append(bytesOf('}'), output);
    }
    append(bytesOf('},"meta":{"changes":['), output);
    mismatches.forEach((k, i) => {
      const field = this.#plan.fields[cells[k] >> COLUMN_SHIFT];
      const change = `{"field":${field},"change":"NULLED","reason":"SOURCE_SERIALIZATION_ERROR"}`;
      append(bytesOf(i === 0 ? change : `,${change}`), output);
    });
    mismatches.length = 0;
    append(bytesOf(']}}}\n'), output);
  }
}

function append(bytes: Uint8Array, output: RecordMemory): void {
  output.at = copyBytes(bytes, 0, bytes.length, output.csv.bytes, output.at);
}

/** Writes `,"_key":"…"`, with `#n` behind the base for the second and later rows that share it. */
function writeKey(label: Uint8Array, { id }: RowKey, ordinal: number, output: RecordMemory): void {
  const { bytes: to, functions } = output.csv;
  const { bytes, start, end } = id;
  append(label, output);
  const written = bytes === to ? functions.writeText(start, end - start, output.at) : -1;
  output.at = written < 0 ? writeString(bytes, start, end, to, output.at) : written;
  if (ordinal <= 1) return;
  to[output.at - 1] = NUMBER_SIGN;
  append(bytesOf(String(ordinal)), output);
  to[output.at++] = QUOTE;
}

function writePosition(key: RowKey, output: RecordMemory): void {
  append(POSITION_LABEL, output);
  output.at = copyBytes(key.id.bytes, key.positionStart, key.positionEnd, output.csv.bytes, output.at);
}

function escapesIn(b: Uint8Array, start: number, end: number): number {
  let count = 0;
  for (let i = start; i < end; i++) if (b[i] < 32 || b[i] === QUOTE || b[i] === BACKSLASH) count++;
  return count;
}
