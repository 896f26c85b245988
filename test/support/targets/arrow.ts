import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Table, tableFromIPC } from 'apache-arrow';
import { systemClock } from '../../../src/base/clock.ts';
import { createLogger } from '../../../src/base/log.ts';
import type { Window } from '../../../src/extract/window.ts';
import { type ArrowOptions, type ArrowResult, writeArrow } from '../../../src/sinks/arrow/write-arrow.ts';
import { DuckBench } from './duckdb.ts';

/** A file for a stream and the spool files of the windows made here. */
export class ArrowBench extends DuckBench {
  readonly out = join(this.dir, 'events.arrows');

  write(windows: Iterable<Window> | AsyncIterable<Window>, options: Partial<ArrowOptions> = {}): Promise<ArrowResult> {
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
