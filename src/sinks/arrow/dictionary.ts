import { type Data, makeData, makeVector, Utf8, type Vector } from 'apache-arrow';
import { TextCodes } from './build/text-codes.ts';

/**
 * The texts of a dictionary column over a whole stream. A batch that needs a new text sends the whole dictionary again,
 * which replaces the earlier one; not every reader supports delta dictionaries.
 */
export class StreamDictionary {
  readonly #codes = new TextCodes();
  #vector: Vector<Utf8> | undefined;

  get vector(): Vector<Utf8> {
    this.#vector ??= makeVector(textsOf(this.#codes.texts));
    return this.#vector;
  }

  /** Replaces the codes of a batch, which count its own texts, by those of the stream. A null keeps the code 0. */
  recode(codes: Int32Array, nullBitmap: Uint8Array, { values, valueOffsets, length }: Data<Utf8>): void {
    const before = this.#codes.texts.length;
    const own = new Int32Array(length);
    let isSame = true;
    for (let i = 0; i < length; i++) {
      own[i] = this.#codes.codeOf(values, valueOffsets[i], valueOffsets[i + 1]);
      isSame &&= own[i] === i;
    }
    if (this.#codes.texts.length > before) this.#vector = undefined;
    if (isSame) return;
    for (let i = 0; i < codes.length; i++) {
      if ((nullBitmap[i >> 3] & (1 << (i & 7))) !== 0) codes[i] = own[codes[i]];
    }
  }
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
