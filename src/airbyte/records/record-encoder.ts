import { isNull, NUMBER_SIGN, OPEN_BRACE, QUOTE } from '../../base/ascii.ts';
import { CellText, type CsvRow } from '../../cells/csv/row.ts';
import { CivilTime } from '../../cells/types/civil-time.ts';
import { copyBytes, writeString } from '../../cells/types/string.ts';
import { fits, formsOf } from '../../cells/types/types.ts';
import type { RecordColumn, RecordPlan } from './record-plan.ts';
import type { RowKey } from './row-key.ts';

/**
 * Room (bytes) for a filled cell. It is more than it needs: a line is written without a
 * check of each byte. A cell may stand in a line twice: itself or null, and in `_key` or `_rescued`. Each of its bytes
 * may become six, as `\u0001`. Beside them stand quotes, commas and the 67 bytes of its entry in `meta.changes`. The
 * names are counted by column.
 */
const CELL_ROOM = 300;
const BYTE_ROOM = 2 * 6;
/** Room (bytes) for the frames of `_rescued` and `meta`, the labels of `_key` and the position, and a hash. */
const FRAME_ROOM = 1024;

const KEY_LABEL = Buffer.from(',"_key":');
const LOG_ID_LABEL = Buffer.from(',"df_event_log_id":');
const POSITION_LABEL = Buffer.from(',"item_position":');
const NULL_JSON = Buffer.from('null');
const END = Buffer.from('}}}\n');
/** Size that the array of lines has at first, and to which it returns after a large row (bytes). */
const LINES_BYTES = 1 << 20;

/** The lines that are written next. */
export class Lines {
  bytes = new Uint8Array(LINES_BYTES);
  /** Index of the next byte. */
  at = 0;

  /** Makes room for `more` bytes behind `at`. */
  reserve(more: number): void {
    if (this.at + more <= this.bytes.length) return;
    const larger = new Uint8Array(Math.max(this.at + more, 2 * this.bytes.length));
    larger.set(this.bytes.subarray(0, this.at));
    this.bytes = larger;
  }

  append(bytes: Uint8Array): void {
    this.bytes.set(bytes, this.at);
    this.at += bytes.length;
  }

  /** Returns the lines, which the next ones replace. */
  take(): Uint8Array {
    const lines = this.bytes.subarray(0, this.at);
    if (this.bytes.length > 16 * LINES_BYTES) this.bytes = new Uint8Array(LINES_BYTES);
    this.at = 0;
    return lines;
  }
}

/**
 * Writes rows as RECORD lines. No object is made for a cell: methods get its number `k` in the row.
 */
export class RecordEncoder {
  readonly plan: RecordPlan;
  /** Number of cells that did not fit, by column of the header. */
  readonly rescuedCells: Float64Array;
  recordCount = 0;
  readonly #head: Uint8Array;
  /** Room (bytes) for a row beside its cells. */
  readonly #room: number;
  readonly #mismatches: number[] = [];
  readonly #text = new CellText();
  readonly #time = new CivilTime();
  readonly #lines: Lines;

  /** `emittedAt` is in ms since 1970; `lines` get the records. */
  constructor(plan: RecordPlan, emittedAt: number, lines: Lines) {
    this.plan = plan;
    this.#lines = lines;
    this.rescuedCells = new Float64Array(plan.columns.length);
    this.#head = Buffer.from(`{"type":"RECORD","record":{"stream":"${plan.stream}","emitted_at":${emittedAt},"data":`);
    // A name stands in a line three times: as the label of its cell, in `_rescued` and in `meta.changes`.
    const names = plan.columns.map((c) => (c === undefined ? 0 : 2 * c.label.length + Buffer.byteLength(c.rescuedAs)));
    this.#room = this.#head.length + FRAME_ROOM + names.reduce((sum, bytes) => sum + bytes, 0);
  }

  /** Appends a row, which has this key. */
  write(row: CsvRow, key: RowKey): void {
    const { filled, contentEnd } = row;
    const { plan } = this;
    const lines = this.#lines;
    const length = filled === 0 ? 0 : contentEnd - row.starts[0];
    lines.reserve(this.#room + filled * CELL_ROOM + length * BYTE_ROOM);
    lines.append(this.#head);
    const dataStart = lines.at;
    if (plan.hasKey) this.#writeKey(KEY_LABEL, key);
    for (let k = 0; k < filled; k++) this.#writeCell(row, k);
    if (plan.hasKeyAsLogId && key.logId === undefined) this.#writeKey(LOG_ID_LABEL, key);
    if (plan.hasPosition && key.positionEnd > key.positionStart) {
      lines.append(POSITION_LABEL);
      lines.at = copyBytes(key.id.bytes, key.positionStart, key.positionEnd, lines.bytes, lines.at);
    }
    // The brace replaces the comma of the first label, if there is any.
    lines.bytes[dataStart] = OPEN_BRACE;
    lines.at = Math.max(lines.at, dataStart + 1);
    if (this.#mismatches.length > 0) this.#writeMismatches(row);
    else lines.append(END);
    this.recordCount++;
  }

  /** Writes a label and its cell; nothing if the column is not sent or the cell is absent. */
  #writeCell(row: CsvRow, k: number): void {
    const column = this.plan.columns[row.columns[k]];
    if (column === undefined) return;
    const lines = this.#lines;
    const start = lines.at;
    lines.append(column.label);
    if (column.encoding === 'copy') lines.at = copyBytes(row.bytes, row.starts[k], row.ends[k], lines.bytes, lines.at);
    else if (column.encoding === 'text') this.#writeText(row, k);
    else if (!this.#writeTyped(column, row, k)) lines.at = start;
  }

  /** Writes the text of a cell as a JSON string, each pair of quotes as one quote. */
  #writeText(row: CsvRow, k: number): void {
    const text = this.#text;
    text.read(row, k);
    this.#lines.at = writeString(text.bytes, text.start, text.end, this.#lines.bytes, this.#lines.at);
  }

  /** Writes a cell of any type; false if it is absent. */
  #writeTyped({ codec, zone, encoding }: RecordColumn, row: CsvRow, k: number): boolean {
    const lines = this.#lines;
    this.#text.read(row, k);
    const { bytes, start, end } = this.#text;
    if (isNull(bytes, start, end)) return false;
    if (encoding !== 'checked' || fits(codec, formsOf(bytes, start, end, zone, this.#time))) {
      lines.at = codec.writeJson(bytes, start, end, lines.bytes, lines.at);
    } else {
      this.#mismatches.push(k);
      this.rescuedCells[row.columns[k]]++;
      lines.append(NULL_JSON);
    }
    return true;
  }

  /** Writes `,"_key":"…"`, with `#n` behind the id for the second and later rows that share it. */
  #writeKey(label: Uint8Array, { id, occurrence }: RowKey): void {
    const lines = this.#lines;
    lines.append(label);
    lines.at = writeString(id.bytes, id.start, id.end, lines.bytes, lines.at);
    if (occurrence === 1) return;
    lines.bytes[lines.at - 1] = NUMBER_SIGN;
    lines.append(Buffer.from(`${occurrence}`));
    lines.bytes[lines.at++] = QUOTE;
  }

  /** Writes `_rescued` and `meta.changes` for the cells that did not fit, and the end of the line. */
  #writeMismatches(row: CsvRow): void {
    const lines = this.#lines;
    const mismatches = this.#mismatches.splice(0);
    const columnAt = (k: number) => this.plan.columns[row.columns[k]];
    if (this.plan.hasRescued) {
      for (const [i, k] of mismatches.entries()) {
        lines.append(Buffer.from(`${i === 0 ? ',"_rescued":{' : ','}${columnAt(k)?.rescuedAs}:`));
        this.#writeText(row, k);
      }
      lines.append(Buffer.from('}'));
    }
    const changes = mismatches.map(
      (k) => `{"field":${columnAt(k)?.field},"change":"NULLED","reason":"SOURCE_SERIALIZATION_ERROR"}`,
    );
    lines.append(Buffer.from(`},"meta":{"changes":[${changes.join(',')}]}}}\n`));
  }
}
