import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Data, type Table, tableFromIPC } from 'apache-arrow';
import { systemClock } from '../../../src/base/clock.ts';
import { createLogger } from '../../../src/base/log.ts';
import type { Window } from '../../../src/extract/window.ts';
import { type ArrowOptions, writeArrow } from '../../../src/sinks/arrow/write-arrow.ts';
import type { Streamed } from '../../../src/sinks/sink.ts';
import { type ColumnType, isColumnType } from '../../../src/types/type.ts';
import { DuckDbFixture } from './duckdb.ts';

/** A file for a stream and the spool files of the windows made here. */
export class ArrowFixture extends DuckDbFixture {
  readonly out = join(this.dir, 'events.arrows');

  write(windows: Iterable<Window> | AsyncIterable<Window>, options: Partial<ArrowOptions> = {}): Promise<Streamed> {
    return writeArrow(each(windows), {
      out: this.out,
      timezone: undefined,
      columnTypes: new Map(),
      schemaMode: 'evolve',
      memoryLimit: '500MB',
      spoolDir: this.dir,
      clock: systemClock,
      logger: createLogger(
        (event) => this.log.push(event),
        'debug',
        (text) => text,
      ),
      signal: this.signal,
      ...options,
    });
  }

  table(): Table {
    return tableFromIPC(readFileSync(this.out));
  }
}

async function* each(windows: Iterable<Window> | AsyncIterable<Window>): AsyncGenerator<Window> {
  yield* windows;
}

/** Rows as plain values: bigints as text, lists as arrays. */
export function plainRows(table: Table): Record<string, unknown>[] {
  return table.toArray().map((row) => JSON.parse(JSON.stringify(row, (_, v) => (typeof v === 'bigint' ? `${v}` : v))));
}

/** A column of a stream: its name in the export, and its values as the cells of its type are written, lists as arrays. */
export interface StreamedColumn {
  readonly name: string;
  readonly source: string | undefined;
  readonly type: ColumnType;
  readonly values: readonly unknown[];
}

/** What a finished stream holds, read from the memory of its vectors: nothing is rounded on the way. */
export function streamedColumns(file: string): StreamedColumn[] {
  const table = tableFromIPC(readFileSync(file));
  return table.schema.fields.map(({ name, metadata }, i) => ({
    name,
    source: metadata.get('source'),
    type: typeOf(metadata),
    values: table.batches.flatMap(({ data }) => valuesOf(data.children[i], typeOf(metadata))),
  }));
}

function typeOf(metadata: ReadonlyMap<string, string>): ColumnType {
  const type = metadata.get('type');
  return isColumnType(type) ? type : 'string';
}

function valuesOf(data: Data | undefined, type: ColumnType): unknown[] {
  if (data === undefined) return [];
  const offsets = data.valueOffsets;
  const items = isScalar(type) ? [] : valuesOf(data.children[0], ITEMS[type]);
  return Array.from({ length: data.length }, (_, row) => {
    if (!data.getValid(row)) return null;
    return isScalar(type) ? valueAt(data, row, type) : items.slice(offsets[row], offsets[row + 1]);
  });
}

type List = Extract<ColumnType, `${string}[]`>;
type Scalar = Exclude<ColumnType, List>;
const isScalar = (type: ColumnType): type is Scalar => !type.endsWith('[]');
const ITEMS: Readonly<Record<List, Scalar>> = { 'string[]': 'string', 'long[]': 'long', 'double[]': 'double' };

function valueAt(data: Data, row: number, type: Scalar): string | number | boolean {
  const offsets = data.valueOffsets;
  switch (type) {
    case 'boolean':
      return (data.values[row >> 3] & (1 << (row & 7))) !== 0;
    case 'date':
      return new Date(data.values[row] * DAY_MS).toISOString().slice(0, 10);
    case 'datetime':
      return instantText(data.values[row]);
    case 'long':
      return `${data.values[row]}`;
    case 'double':
      return data.values[row];
    case 'string':
      // Not by the library's own reading, which takes a U+FEFF at the start of a text away.
      return Buffer.from(data.values.subarray(offsets[row], offsets[row + 1])).toString();
  }
}

const DAY_MS = 86_400_000;

/** Microseconds since 1970 as `2026-01-02T03:04:05.000000`. */
function instantText(micros: bigint): string {
  const rest = ((micros % 1_000_000n) + 1_000_000n) % 1_000_000n;
  const date = new Date(Number((micros - rest) / 1_000n));
  return `${date.toISOString().slice(0, 19)}.${String(rest).padStart(6, '0')}`;
}
