// This folder: Airbyte records. The bytes of CSV become the bytes of JSON without an object or a string for each cell,
// a block of whole rows at a time, on threads where there is enough to do.

import { statSync } from 'node:fs';
import type { Clock } from '../../base/clock.ts';
import { hasDuplicateOrMissingIds, type SpoolFile, type Window } from '../../extract/window.ts';
import type { StreamName } from './property-names.ts';
import { planRecords, type RecordStream } from './record-plan.ts';
import type { EncodedBlock, FileJob, RowBlock, Task } from './record-runner.ts';
import { WindowKeys } from './window-keys.ts';
import { type WorkerOptions, WorkerPool } from './worker-pool.ts';

export interface RecordWriterOptions {
  readonly timezone: string | undefined;
  readonly clock: Clock;
  readonly threads: WorkerOptions;
}

export interface WrittenWindow {
  readonly records: ReadonlyMap<StreamName, number>;
  /** Number of cells that did not fit, by column of the export; one that several streams show counts once. */
  readonly rescued: ReadonlyMap<string, number>;
  /** Columns that a stream would have but that its catalog lacks. */
  readonly unsent: ReadonlyMap<StreamName, readonly string[]>;
}

/** Takes whole lines in order; their bytes may be used again once it resolves. */
export type WriteBytes = (bytes: Uint8Array) => Promise<void>;

export class RecordWriter {
  readonly #options: RecordWriterOptions;
  readonly #pool: WorkerPool;

  constructor(options: RecordWriterOptions) {
    this.#options = options;
    this.#pool = new WorkerPool(options.threads);
  }

  /** Starts the threads if so many bytes of CSV need them, so that they are ready when a window is verified. */
  readonly prepare = (bytes: number): void => {
    this.#pool.prepare(bytes);
  };

  close(): Promise<void> {
    return this.#pool.close();
  }

  /** Writes the records of `streams`; stops between two blocks when the signal aborts. */
  async write(
    window: Window,
    streams: readonly RecordStream[],
    write: WriteBytes,
    signal: AbortSignal,
  ): Promise<WrittenWindow> {
    const emittedAt = this.#options.clock.now();
    const { timezone } = this.#options;
    const jobs = window.files.map((file): FileJob => {
      const plans = streams.map((stream) => planRecords(stream, file, timezone !== undefined));
      return { path: file.path, header: file.header, streams: plans, timezone, emittedAt };
    });
    const written = emptyWindow(jobs, streams);
    if (streams.length === 0) return written;
    const blocks = window.files.flatMap(blocksOf);
    const run = <T extends Task>(tasks: readonly T[]) => this.#pool.run(jobs, window.receipt.bytes, tasks);
    const keys = keysFor(window, streams);
    if (keys !== undefined) {
      for await (const result of run(blocks.map((block) => ({ kind: 'hash' as const, ...block })))) {
        signal.throwIfAborted();
        keys.add(result);
      }
      keys.finish();
    }
    for await (const result of run(blocks.map((block, i) => ({ kind: 'encode' as const, ...block, ...keys?.of(i) })))) {
      signal.throwIfAborted();
      // A whole block is written at once: smaller pieces would each wait for other work of the main thread.
      await write(new Uint8Array(result.buffer, 0, result.length));
      addBlock(written, jobs[result.fileIndex], result);
    }
    return written;
  }
}

interface Counts {
  readonly records: Map<StreamName, number>;
  readonly rescued: Map<string, number>;
}

function emptyWindow(jobs: readonly FileJob[], streams: readonly RecordStream[]): WrittenWindow & Counts {
  const unsent = streams.map(({ name }, i) => {
    const names = jobs.flatMap((job) => job.streams[i].unsent);
    return [name, [...new Set(names)]] as const;
  });
  return { records: new Map(streams.map(({ name }) => [name, 0])), rescued: new Map(), unsent: new Map(unsent) };
}

function addBlock({ records, rescued }: Counts, { streams, header }: FileJob, block: EncodedBlock): void {
  for (const [i, { name }] of streams.entries()) records.set(name, (records.get(name) ?? 0) + block.records[i]);
  const cells = new Map<number, number>();
  for (const [column, count] of block.rescued.flat()) cells.set(column, Math.max(cells.get(column) ?? 0, count));
  for (const [column, count] of cells) rescued.set(header[column], (rescued.get(header[column]) ?? 0) + count);
}

/** The rows of a file in blocks, cut at the row ends that the scan recorded. */
export function blocksOf({ path, rowEnds }: Pick<SpoolFile, 'path' | 'rowEnds'>, fileIndex: number): RowBlock[] {
  const ends = [...rowEnds, statSync(path).size];
  const blocks = ends.map((to, i) => ({ fileIndex, from: i === 0 ? 0 : ends[i - 1], to }));
  return blocks.filter(({ from, to }) => from < to);
}

/** The keys that need one more pass over the window; undefined if each row alone shows its own. */
function keysFor(window: Window, streams: readonly RecordStream[]): WindowKeys | undefined {
  const events = streams.some((stream) => stream.name === 'event_logs');
  const keys = hasDuplicateOrMissingIds(window);
  const rows = window.files.reduce((sum, file) => sum + file.rows, 0);
  return events || keys ? new WindowKeys(rows, { events, keys }) : undefined;
}
