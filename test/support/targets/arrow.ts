import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Data, type Table, tableFromIPC } from 'apache-arrow';
import { systemClock } from '../../../src/base/clock.ts';
import { createLogger } from '../../../src/base/log.ts';
import { type ColumnType, isColumnType } from '../../../src/cells/types/type.ts';
import type { Window } from '../../../src/extract/window.ts';
import { type ArrowOptions, writeArrow } from '../../../src/targets/arrow/write-arrow.ts';
import type { Streamed } from '../../../src/targets/sink.ts';
import { arrowAt } from '../column-types.ts';
import { DuckDbFixture } from './duckdb.ts';

/** A file for a stream, a database to compare it with, and the spool files of the windows made here. */
export class ArrowFixture extends DuckDbFixture {
  readonly out = join(this.dir, 'events.arrows');

  /** Writes a stream; `rows` are those of the windows that its reader has taken. */
  async write(
    windows: Iterable<Window> | AsyncIterable<Window>,
    options: Partial<ArrowOptions> = {},
  ): Promise<Streamed & { readonly rows: number }> {
    let rows = 0;
    const onSent = (_: Window, sent: number) => {
      rows += sent;
    };
    const streamed = await writeArrow(each(windows), {
      onSent,
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
    return { ...streamed, rows };
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

/** Reads a finished stream from the memory of its vectors, so that nothing is rounded on the way. */
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
  return data === undefined ? [] : Array.from({ length: data.length }, (_, row) => arrowAt(type, data, row));
}
