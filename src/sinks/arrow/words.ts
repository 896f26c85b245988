import { type Data, Dictionary, Int32, makeData, makeVector, Utf8, type Vector } from 'apache-arrow';
import { Validity } from './bits.ts';
import { type ColumnBuilder, FIRST_ROWS, withRows } from './builders.ts';
import { readTexts } from './texts.ts';
import type { RawVector } from './vectors.ts';

/**
 * Texts of which there are few: numbers into one dictionary. A batch that needs a new text brings the whole dictionary
 * again, which every reader of a stream takes for a replacement; deltas some do not know.
 */
export class WordBuilder implements ColumnBuilder {
  readonly type = new Dictionary(new Utf8(), new Int32(), 0);
  readonly #validity = new Validity(FIRST_ROWS);
  readonly #words: Uint8Array[] = [];
  /** Numbers of the words of each hash. */
  readonly #numbers = new Map<number, number[]>();
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
      codes[first + row] = this.#number(bytes, start, end);
    });
    this.#validity.append(mask, from, count);
  }

  take(): Data<Dictionary<Utf8, Int32>> {
    const length = this.#validity.length;
    const data = this.#codes.subarray(0, length);
    this.#codes = new Int32Array(this.#codes.length);
    this.#dictionary ??= makeVector(textsOf(this.#words));
    return makeData({ type: this.type, length, data, dictionary: this.#dictionary, ...this.#validity.take() });
  }

  #number(bytes: Uint8Array, start: number, end: number): number {
    let hash = 0x811c9dc5;
    for (let i = start; i < end; i++) hash = Math.imul(hash ^ bytes[i], 0x01000193);
    const numbers = this.#numbers.get(hash);
    const known = numbers?.find((number) => isSame(this.#words[number], bytes, start, end));
    if (known !== undefined) return known;
    const number = this.#words.push(bytes.slice(start, end)) - 1;
    this.#numbers.set(hash, [...(numbers ?? []), number]);
    this.#dictionary = undefined;
    return number;
  }
}

function isSame(word: Uint8Array, bytes: Uint8Array, start: number, end: number): boolean {
  if (word.length !== end - start) return false;
  for (let i = 0; i < word.length; i++) if (word[i] !== bytes[start + i]) return false;
  return true;
}

function textsOf(words: readonly Uint8Array[]): Data<Utf8> {
  const valueOffsets = new Int32Array(words.length + 1);
  words.forEach((word, i) => {
    valueOffsets[i + 1] = valueOffsets[i] + word.length;
  });
  const data = new Uint8Array(valueOffsets[words.length]);
  words.forEach((word, i) => {
    data.set(word, valueOffsets[i]);
  });
  return makeData({ type: new Utf8(), length: words.length, nullCount: 0, valueOffsets, data });
}
