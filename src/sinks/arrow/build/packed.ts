// This folder: the columns of record batches, built from the bytes of rows, without Arrow and without an object a cell.

import type { ArrowType } from '../../../types/face.ts';

/** How the values of a column lie in memory; plain data. */
export interface Shape {
  /** `fixed`: `width` bytes a value. `dictionary`: four bytes a value, and its texts as `item`. */
  readonly kind: 'bit' | 'fixed' | 'text' | 'list' | 'dictionary';
  readonly width: number;
  readonly item?: Shape;
}

/** A record batch on its way from a worker: the buffers of all its columns, one behind the other. */
export interface PackedBatch {
  readonly rows: number;
  /** May be longer than the batch. */
  readonly buffer: ArrayBuffer;
  readonly bytes: number;
  /** `NODE` numbers per column, each followed by those of its items. */
  readonly nodes: Float64Array;
}

/** Numbers per node: values, of them nulls, bytes of text. */
export const NODE = 3;
const ALIGNED = 8;
const OFFSET_BYTES = 4;
const CODE_BYTES = 4;

export const TEXT_SHAPE: Shape = { kind: 'text', width: 0 };
export const DICTIONARY_SHAPE: Shape = { kind: 'dictionary', width: CODE_BYTES, item: TEXT_SHAPE };

const WIDTHS = { int64: 8, float64: 8, timestamp: 8, date32: 4 } as const;

export function shapeOf(type: ArrowType): Shape {
  if (type.kind === 'bool') return { kind: 'bit', width: 0 };
  if (type.kind === 'utf8') return TEXT_SHAPE;
  if (type.kind === 'list') return { kind: 'list', width: 0, item: shapeOf(type.item) };
  return { kind: 'fixed', width: WIDTHS[type.kind] };
}

/** Bytes that a row takes in a column of this shape, texts and elements left out. */
export function rowBytes({ kind, width }: Shape): number {
  if (kind === 'bit') return 1;
  return kind === 'text' || kind === 'list' ? OFFSET_BYTES + 1 : width + 1;
}

/** Where the buffers of a node begin, and where the next node does. */
export interface NodeAt {
  readonly bits: number;
  readonly offsets: number;
  readonly data: number;
  readonly dataBytes: number;
  readonly end: number;
}

/** The place of a node of `length` values that begins at `at`; the buffers are aligned to eight bytes. */
export function nodeAt({ kind, width }: Shape, at: number, length: number, textBytes: number): NodeAt {
  const offsets = at + aligned(bitBytes(length));
  const data = offsets + (kind === 'text' || kind === 'list' ? aligned((length + 1) * OFFSET_BYTES) : 0);
  const dataBytes = kind === 'bit' ? bitBytes(length) : kind === 'text' ? textBytes : length * width;
  return { bits: at, offsets, data, dataBytes, end: data + aligned(dataBytes) };
}

export const bitBytes = (length: number): number => (length + 7) >> 3;
const aligned = (bytes: number): number => Math.ceil(bytes / ALIGNED) * ALIGNED;
