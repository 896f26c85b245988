// This folder: Airbyte records. The bytes of CSV become the bytes of JSON without an object or a string for each cell, a
// block of whole rows at a time, on threads where there is enough to do.

import type { Clock } from '../../base/clock.ts';
import type { SpoolFile, Window } from '../../extract/window.ts';
import type { StreamName } from './property-names.ts';
import { planRecords, type RecordStream } from './record-plan.ts';
import { fileBlocks } from './row-blocks.ts';
import type { EncodedBlock, FileJob, Task } from './tasks.ts';
import { hasDuplicateOrMissingIds, type WindowKeys, WindowKeysBuilder } from './window-keys.ts';
import { type JobTasks, type WorkerOptions, WorkerPool } from './worker-pool.ts';

export interface RecordWriterOptions {
  readonly timezone: string | undefined;
  readonly clock: Clock;
  readonly threads: WorkerOptions;
}

/** What the records of one window were. */
export interface WrittenWindow {
  /** RECORD lines per stream. */
  readonly records: ReadonlyMap<StreamName, number>;
  /** Cells that did not fit, by column as the export names it; a cell counts once however many streams show it. */
  readonly rescued: ReadonlyMap<string, number>;
  /** Columns that a stream would have and its catalog lacks. */
  readonly unsent: ReadonlyMap<StreamName, readonly string[]>;
}

/** Takes whole lines, in order; their bytes may be used again once it resolves. */
export type WriteBytes = (bytes: Uint8Array) => Promise<void>;

/**
 * Writes the rows of verified windows as Airbyte RECORD lines.
 */
export class RecordWriter {
  readonly #options: RecordWriterOptions;
  readonly #pool: WorkerPool;

  constructor(options: RecordWriterOptions) {
    this.#options = options;
    this.#pool = new WorkerPool(options.threads);
  }

  /** Ends the threads; safe at any time. */
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
    const jobs = window.files.map((file) => jobOf(file, streams, this.#options.timezone, emittedAt));
    const totals = new WindowTotals(jobs, streams);
    if (streams.length === 0) return totals.result();
    const tasks = this.#pool.open(jobs, window.receipt.bytes);
    try {
      const keys = await readWindowKeys(tasks, window.files, streams, signal);
      for await (const result of tasks.run(encodeTasks(window.files, keys, signal))) {
        if (result.kind !== 'encode') continue;
        signal.throwIfAborted();
        // A block whole: a piece at a time waits for whatever the main thread does meanwhile, once a piece.
        await write(new Uint8Array(result.buffer, 0, result.length));
        totals.add(result);
      }
    } finally {
      tasks.close();
    }
    return totals.result();
  }
}

function jobOf(
  file: SpoolFile,
  streams: readonly RecordStream[],
  timezone: string | undefined,
  emittedAt: number,
): FileJob {
  const plans = streams.map((stream) => planRecords(stream, file, timezone !== undefined));
  return { path: file.path, header: file.header, streams: plans, timezone, emittedAt };
}

/** Reads the keys of all rows, where a stream needs more than each row by itself tells: one more pass over the files. */
async function readWindowKeys(
  tasks: JobTasks,
  files: readonly SpoolFile[],
  streams: readonly RecordStream[],
  signal: AbortSignal,
): Promise<WindowKeys> {
  const events = streams.some((stream) => stream.name === 'event_logs');
  const keys = hasDuplicateOrMissingIds(files);
  const rows = files.reduce((sum, file) => sum + file.rows, 0);
  const builder = new WindowKeysBuilder(events || keys ? rows : 0, { events, keys });
  if (!events && !keys) return builder;
  for await (const result of tasks.run(hashTasks(files, signal))) {
    if (result.kind === 'hash') builder.add(result);
  }
  return builder.finish();
}

async function* hashTasks(files: readonly SpoolFile[], signal: AbortSignal): AsyncGenerator<Task> {
  for await (const { fileIndex, from, to } of fileBlocks(files, signal)) yield { kind: 'hash', fileIndex, from, to };
}

async function* encodeTasks(files: readonly SpoolFile[], keys: WindowKeys, signal: AbortSignal): AsyncGenerator<Task> {
  let number = 0;
  for await (const { fileIndex, from, to } of fileBlocks(files, signal)) {
    yield {
      kind: 'encode',
      fileIndex,
      from,
      to,
      events: keys.eventsOf(number),
      ordinals: keys.ordinals.get(number),
      reserved: keys.reserved.size > 0 && keys.ordinals.has(number) ? keys.reserved : undefined,
    };
    number++;
  }
}

/** Adds up the results of the blocks of a window. */
class WindowTotals {
  readonly #jobs: readonly FileJob[];
  readonly #records = new Map<StreamName, number>();
  readonly #rescued = new Map<string, number>();
  readonly #streams: readonly RecordStream[];

  constructor(jobs: readonly FileJob[], streams: readonly RecordStream[]) {
    this.#jobs = jobs;
    this.#streams = streams;
    for (const stream of streams) this.#records.set(stream.name, 0);
  }

  add(result: EncodedBlock): void {
    result.records.forEach((count, i) => {
      const { name } = this.#streams[i];
      this.#records.set(name, (this.#records.get(name) ?? 0) + count);
    });
    const cells = new Map<number, number>();
    for (const [column, count] of result.rescued.flat()) cells.set(column, Math.max(cells.get(column) ?? 0, count));
    const { header } = this.#jobs[result.fileIndex];
    for (const [column, count] of cells) {
      this.#rescued.set(header[column], (this.#rescued.get(header[column]) ?? 0) + count);
    }
  }

  result(): WrittenWindow {
    const unsent = this.#streams.map(({ name }, i) => {
      const names = this.#jobs.flatMap((job) => job.streams[i].unsent);
      return [name, [...new Set(names)]] as const;
    });
    return { records: this.#records, rescued: this.#rescued, unsent: new Map(unsent) };
  }
}
