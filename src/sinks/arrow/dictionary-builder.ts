import { type Data, Dictionary, Int32, makeData, makeVector, Utf8, type Vector } from 'apache-arrow';
import { type ColumnBuilder, FIRST_ROWS } from './column-builders.ts';
import type { RawVector } from './duckdb-vectors.ts';
import { withRows } from './grow.ts';
import { Validity } from './validity.ts';
import { readTexts } from './vector-texts.ts';

/**
 * A column of few distinct texts, as indices into one dictionary. A batch that needs a new text sends the whole dictionary
 * again, which replaces the earlier one; not every reader supports delta dictionaries.
 */
export class DictionaryBuilder implements ColumnBuilder {
  readonly type = new Dictionary(new Utf8(), new Int32(), 0);
  readonly #validity = new Validity(FIRST_ROWS);
  readonly #texts: Uint8Array[] = [];
  /** Indices of the texts of each hash. */
  readonly #indices = new Map<number, number[]>();
  #codes = new Int32Array(FIRST_ROWS);
  #dictionary: Vector<Utf8> | undefined;

  get bytes(): number {
    return this.#validity.length * 4;
  }

  append(vector: RawVector, from: number, count: number): void {
    const first = this.#validity.length - from;
    this.#codes = withRows(this.#codes, this.#validity.length + count);
    const codes = this.#codes;
    const mask = readTexts(vector, from, count, (row, bytes, start, end) => {
      codes[first + row] = this.#indexOf(bytes, start, end);
    });
    this.#validity.append(mask, from, count);
  }

  take(): Data<Dictionary<Utf8, Int32>> {
    const length = this.#validity.length;
    const data = this.#codes.subarray(0, length);
    this.#codes = new Int32Array(this.#codes.length);
    this.#dictionary ??= makeVector(textsOf(this.#texts));
    return makeData({ type: this.type, length, data, dictionary: this.#dictionary, ...this.#validity.take() });
  }

  #indexOf(bytes: Uint8Array, start: number, end: number): number {
    let hash = 0x811c9dc5;
    for (let i = start; i < end; i++) hash = Math.imul(hash ^ bytes[i], 0x01000193);
    const indices = this.#indices.get(hash);
    const known = indices?.find((index) => isSame(this.#texts[index], bytes, start, end));
    if (known !== undefined) return known;
    const index = this.#texts.push(bytes.slice(start, end)) - 1;
    this.#indices.set(hash, [...(indices ?? []), index]);
    this.#dictionary = undefined;
    return index;
  }
}

function isSame(text: Uint8Array, bytes: Uint8Array, start: number, end: number): boolean {
  if (text.length !== end - start) return false;
  for (let i = 0; i < text.length; i++) if (text[i] !== bytes[start + i]) return false;
  return true;
}

function textsOf(texts: readonly Uint8Array[]): Data<Utf8> {
  const valueOffsets = new Int32Array(texts.length + 1);
  texts.forEach((text, i) => {
    valueOffsets[i + 1] = valueOffsets[i] + text.length;
  });
  const data = new Uint8Array(valueOffsets[texts.length]);
  texts.forEach((text, i) => {
    data.set(text, valueOffsets[i]);
  });
  return makeData({ type: new Utf8(), length: texts.length, nullCount: 0, valueOffsets, data });
}
