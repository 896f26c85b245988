import { COLUMN_SHIFT, DOUBLED, type RowTokenizer, STRIDE } from '../../../csv/tokenizer.ts';
import { Unquoter } from '../../../csv/unquote.ts';
import { classify } from '../../../types/classify.ts';
import { acceptedBy } from '../../../types/evidence.ts';
import { isNull } from '../../../types/list-text.ts';
import { COLUMN_TYPES } from '../../../types/type.ts';
import type { Zone } from '../../../types/zone.ts';
import type { RowKey } from '../../rows/keys/row-key.ts';
import type { BatchBuilder } from './batch-builder.ts';
import { ColumnWriter, OTHER, SKIP } from './column-writer.ts';
import { CHECKED, type FilePlan, KEEPS_NULLS, NULLS, REFUSED, type StreamColumn } from './task.ts';
import { jsonText, textOf } from './widened-text.ts';

/** In assembly/columns.ts: beside a way, the text `null` is no value. */
const WITHOUT_NULLS = 16;
const encoder = new TextEncoder();

/** Appends the rows of one file to the current batch. */
export class RowBuilder {
  readonly #plan: FilePlan;
  readonly #batch: BatchBuilder;
  readonly #zone: Zone | undefined;
  /** Per column of the header; none for one of which nothing is stored. */
  readonly #writers: readonly (ColumnWriter | undefined)[];
  /** Per column: the evidence that fits. */
  readonly #accepted: Int32Array;
  readonly #unquoter = new Unquoter();
  readonly #misfits: string[] = [];
  /** Cells in `_rescued`, by name; the caller empties it. */
  readonly rescued = new Map<string, number>();

  constructor(plan: FilePlan, columns: readonly StreamColumn[], batch: BatchBuilder, zone: Zone | undefined) {
    this.#plan = plan;
    this.#batch = batch;
    this.#zone = zone;
    const types = Array.from(plan.readAs, (n) => COLUMN_TYPES[n - 1]);
    this.#accepted = Int32Array.from(types, (type) => (type === undefined ? 0 : acceptedBy(type, zone !== undefined)));
    this.#writers = types.map((from, i) => {
      const target = plan.targets[i];
      return from === undefined || target < 0
        ? undefined
        : new ColumnWriter(batch.columns[target], from, columns[target].type, zone);
    });
    const ways = Uint8Array.from(this.#writers, (writer, i) => wayOf(writer, plan.flags[i]));
    const states = Int32Array.from(this.#writers, (writer) => writer?.state ?? 0);
    batch.memory.setColumns(ways, states, zone !== undefined);
  }

  /** Appends the tokenizer's last row. `number`: of its key, if it is not the first row that has it. */
  add(b: Uint8Array<ArrayBuffer>, tokenizer: RowTokenizer, key: RowKey, number: number): void {
    const batch = this.#batch;
    const { memory, keys } = batch;
    const { cells, used, contentEnd } = tokenizer;
    const isListed = memory.lists(cells);
    const isOwnKey = key.bytes === b;
    batch.bytes += (used === 0 ? 0 : contentEnd - cells[1]) + key.end - key.start;
    // From here on the memory may grow: then neither `b` nor `cells` may be used any more.
    const row = batch.addRow();
    keys.setText(row, isOwnKey ? memory.bytes : key.bytes, key.start, key.end);
    if (number > 1) keys.appendText(encoder.encode(`#${number}`));
    for (let k = 0; k < used; k += STRIDE) {
      if (isListed) k = memory.addCells(k, used, row);
      if (k < used) this.#addCell(memory.bytes, isListed && memory.simd ? memory.simd.cells : cells, k, row);
    }
    if (this.#misfits.length > 0) this.#addMisfits(row);
  }

  /** Bytes that elements of lists and widened texts took since the last call. */
  takeExtraBytes(): number {
    let bytes = 0;
    for (const writer of this.#writers) {
      if (writer === undefined) continue;
      bytes += writer.extraBytes;
      writer.extraBytes = 0;
    }
    return bytes;
  }

  #addCell(b: Uint8Array<ArrayBuffer>, cells: Int32Array, k: number, row: number): void {
    const head = cells[k];
    const column = head >> COLUMN_SHIFT;
    if (this.#plan.flags[column] !== 0 || (head & DOUBLED) !== 0) this.#addOther(b, cells, k, row);
    else this.#writers[column]?.write(row, b, cells[k + 1], cells[k + 2]);
  }

  /** A cell that must be looked at before it is written. */
  #addOther(b: Uint8Array<ArrayBuffer>, cells: Int32Array, k: number, row: number): void {
    const column = cells[k] >> COLUMN_SHIFT;
    const flags = this.#plan.flags[column];
    let [bytes, start, end] = [b, cells[k + 1], cells[k + 2]];
    if ((cells[k] & DOUBLED) !== 0) {
      end = this.#unquoter.unquote(b, start, end);
      bytes = this.#unquoter.text;
      start = 0;
    }
    const writer = this.#writers[column];
    if ((flags & (NULLS | KEEPS_NULLS)) !== 0 && isNull(bytes, start, end)) {
      if ((flags & KEEPS_NULLS) !== 0) writer?.writeAsText(row, bytes, start, end);
      return;
    }
    if (writer === undefined || !this.#fits(bytes, start, end, column)) {
      if ((flags & (REFUSED | CHECKED)) !== 0) this.#addMisfit(column, textOf(bytes, start, end));
    } else writer.write(row, bytes, start, end);
  }

  #fits(b: Uint8Array, start: number, end: number, column: number): boolean {
    if ((this.#plan.flags[column] & CHECKED) === 0) return true;
    return (classify(b, start, end, this.#zone) & ~this.#accepted[column]) === 0;
  }

  #addMisfit(column: number, text: string): void {
    const name = this.#plan.rescueNames.get(column) ?? '';
    this.#misfits.push(`${JSON.stringify(name)}:${jsonText(text)}`);
    this.rescued.set(name, (this.rescued.get(name) ?? 0) + 1);
  }

  #addMisfits(row: number): void {
    const bytes = encoder.encode(`{${this.#misfits.join(',')}}`);
    this.#misfits.length = 0;
    this.#batch.bytes += bytes.length;
    this.#batch.rescued.setText(row, bytes, 0, bytes.length);
  }
}

/** How SIMD writes the cells of a column with these flags. */
function wayOf(writer: ColumnWriter | undefined, flags: number): number {
  if (writer === undefined) return flags === 0 ? SKIP : OTHER;
  const way = writer.plainWay;
  if (flags === 0 || way === OTHER) return way;
  return flags === NULLS ? way | WITHOUT_NULLS : OTHER;
}
