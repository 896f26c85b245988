import { COLUMN_SHIFT, DOUBLED, type RowTokenizer, STRIDE } from '../../../csv/tokenizer.ts';
import { Unquoter } from '../../../csv/unquote.ts';
import { civilSeconds, DAY, FIELDS, MONTH, OFFSET, parseTime, setCivil, YEAR } from '../../../types/calendar.ts';
import { classify } from '../../../types/classify.ts';
import { acceptedBy, DATETIME_ZONED } from '../../../types/evidence.ts';
import { isNull } from '../../../types/list-text.ts';
import { COLUMN_TYPES } from '../../../types/type.ts';
import type { Zone } from '../../../types/zone.ts';
import { hashBytes } from '../../rows/keys/hash-bytes.ts';
import type { RowKey } from '../../rows/keys/row-key.ts';
import type { FilePlan } from './task.ts';
import { textOf, widenedText } from './widened-text.ts';

/** Of a text that is no datetime so much counts as its date. */
const DATE_CHARACTERS = 10;
/** Room for them in UTF-8. */
const DATE_BYTES = 40;
const SEPARATOR = 0;
const encoder = new TextEncoder();

/** Hashes the base id of a row together with its date: on another date an id is another row (S13). */
export class RowIdentity {
  readonly #plan: FilePlan;
  readonly #zone: Zone | undefined;
  readonly #unquoter = new Unquoter();
  #bytes = new Uint8Array(256);

  constructor(plan: FilePlan, zone: Zone | undefined) {
    this.#plan = plan;
    this.#zone = zone;
  }

  /** Leaves the hash in WORDS. */
  hash(b: Uint8Array<ArrayBuffer>, tokenizer: RowTokenizer, key: RowKey): void {
    const length = key.end - key.start;
    if (this.#bytes.length < length + DATE_BYTES + 1) this.#bytes = new Uint8Array(length * 2 + DATE_BYTES + 1);
    const bytes = this.#bytes;
    for (let i = 0; i < length; i++) bytes[i] = key.bytes[key.start + i];
    bytes[length] = SEPARATOR;
    hashBytes(bytes, 0, this.#writeDate(b, tokenizer, length + 1));
  }

  /** Writes the date of the row and returns where it ends: at once for a row without one. */
  #writeDate(b: Uint8Array<ArrayBuffer>, { cells, used }: RowTokenizer, at: number): number {
    for (const column of this.#plan.dates) {
      for (let k = 0; k < used; k += STRIDE) {
        if (cells[k] >> COLUMN_SHIFT !== column) continue;
        const end = this.#writeCell(b, cells, k, at);
        if (end > at) return end;
      }
    }
    return at;
  }

  #writeCell(b: Uint8Array<ArrayBuffer>, cells: Int32Array, k: number, at: number): number {
    let [bytes, start, end] = [b, cells[k + 1], cells[k + 2]];
    if ((cells[k] & DOUBLED) !== 0) {
      end = this.#unquoter.unquote(b, start, end);
      bytes = this.#unquoter.text;
      start = 0;
    }
    const type = COLUMN_TYPES[this.#plan.readAs[cells[k] >> COLUMN_SHIFT] - 1];
    if (type === undefined) return at;
    if (type !== 'string') {
      const zone = this.#zone;
      if (isNull(bytes, start, end)) return at;
      if ((classify(bytes, start, end, zone) & ~acceptedBy(type, zone !== undefined)) !== 0) return at;
      if (type === 'datetime' || type === 'date') return this.#writeDay(bytes, start, end, at, type === 'datetime');
    }
    const text = type === 'string' ? textOf(bytes, start, end) : widenedText(bytes, start, end, type, this.#zone);
    const { written } = encoder.encodeInto(text.slice(0, DATE_CHARACTERS), this.#bytes.subarray(at));
    return at + written;
  }

  /** The day of the wall clock; of a time with a zone of its own that of the configured zone. */
  #writeDay(b: Uint8Array, start: number, end: number, at: number, isDatetime: boolean): number {
    const form = parseTime(b, start, end);
    const zone = this.#zone;
    if (zone !== undefined && isDatetime && (form & DATETIME_ZONED) !== 0) {
      const instant = civilSeconds() - FIELDS[OFFSET];
      setCivil(instant + zone.offsetAt(instant));
    }
    let day = (FIELDS[YEAR] * 100 + FIELDS[MONTH]) * 100 + FIELDS[DAY];
    for (let i = at + 7; i >= at; i--, day = Math.floor(day / 10)) this.#bytes[i] = 48 + (day % 10);
    return at + 8;
  }
}
