import duckdb from '@duckdb/node-bindings';

/** A column of a DuckDB chunk, in DuckDB's own memory: valid as long as the chunk. */
export type RawVector = duckdb.Vector;

const WORD_BYTES = 8;
const WORD_ROWS = 64;
/** A string in a vector: its length, then itself when it is this short, else four bytes of it and where it is. */
export const TEXT_BYTES = 16;
/** The longest string that lies in the vector itself. */
export const INLINE_BYTES = 12;
export const INLINE_AT = 4;
const POINTER_AT = 8;
/** Of each list in a vector: where its elements start and how many it has, 64 bits each. */
const ENTRY_BYTES = 16;

/** The column `index` of a chunk. */
export function vectorOf(chunk: duckdb.DataChunk, index: number): RawVector {
  return duckdb.data_chunk_get_vector(chunk, index);
}

/** The first `bytes` of a vector's values. */
export function valuesOf(vector: RawVector, bytes: number): Uint8Array {
  return duckdb.vector_get_data(vector, bytes);
}

/** Which of the first `rows` have a value; null: all of them. */
export function maskOf(vector: RawVector, rows: number): Uint8Array | null {
  return duckdb.vector_get_validity(vector, Math.ceil(rows / WORD_ROWS) * WORD_BYTES) ?? null;
}

/** `bytes` of the text that the long string in row `row` begins. DuckDB keeps those of a vector one behind the other. */
export function textAt(values: Uint8Array, row: number, bytes: number): Uint8Array {
  const { buffer, byteOffset } = values;
  if (!(buffer instanceof ArrayBuffer)) throw new TypeError('a vector in shared memory');
  return duckdb.get_data_from_pointer(buffer, byteOffset + row * TEXT_BYTES + POINTER_AT, bytes);
}

/** The lists of the first `rows`, and the vector of all their elements. */
export function listsOf(vector: RawVector, rows: number): { readonly entries: DataView; readonly child: RawVector } {
  const values = valuesOf(vector, rows * ENTRY_BYTES);
  return {
    entries: new DataView(values.buffer, values.byteOffset, values.byteLength),
    child: duckdb.list_vector_get_child(vector),
  };
}

/** Where the elements of list `row` start among all, and how many it has. */
export function listAt(entries: DataView, row: number): { readonly start: number; readonly length: number } {
  const at = row * ENTRY_BYTES;
  return {
    start: Number(entries.getBigUint64(at, true)),
    length: Number(entries.getBigUint64(at + WORD_BYTES, true)),
  };
}
