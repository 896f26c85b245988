import { open } from 'node:fs/promises';
import type { Clock } from '../../base/clock.ts';
import type { SpoolFile, Window } from '../../extract/window.ts';
import { assemble, type Crew, type WorkerOptions } from './crew.ts';
import type { StreamName } from './names.ts';
import { partsOf } from './parts.ts';
import { planStream, type RecordStream } from './plan.ts';
import { type Survey, SurveyBuilder } from './survey.ts';
import type { FileJob, Task, Written } from './task.ts';

/** Bytes handed to `write` at a time. */
const CHUNK_BYTES = 128 * 1024;
const LF = 10;

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

/** Writes the rows of verified windows as Airbyte RECORD lines, bytes to bytes. */
export class RecordWriter {
  readonly #options: RecordWriterOptions;

  constructor(options: RecordWriterOptions) {
    this.#options = options;
  }

  /** Writes the records of `streams`; stops between two chunks when the signal aborts. */
  async write(
    window: Window,
    streams: readonly RecordStream[],
    write: WriteBytes,
    signal: AbortSignal,
  ): Promise<WrittenWindow> {
    const emittedAt = this.#options.clock.now();
    const jobs = window.files.map((file) => jobOf(file, streams, this.#options.timezone, emittedAt));
    const tally = new Tally(jobs, streams);
    if (streams.length === 0) return tally.result();
    const crew = assemble(jobs, window.receipt.bytes, this.#options.threads);
    try {
      const survey = await surveyWindow(crew, window.files, streams, signal);
      for await (const done of crew.run(writeTasks(window.files, survey, signal))) {
        if (done.kind !== 'write') continue;
        await writeLines(done, write, signal);
        tally.add(done);
      }
    } finally {
      await crew.close();
    }
    return tally.result();
  }
}

function jobOf(
  file: SpoolFile,
  streams: readonly RecordStream[],
  timezone: string | undefined,
  emittedAt: number,
): FileJob {
  const { path, header } = file;
  const plans = streams.map((stream) => planStream(stream, header));
  return { path, header, evidence: file.columns.map((c) => c.evidence), streams: plans, timezone, emittedAt };
}

/** Which row stands for its event, and which keys repeat; asked only where it matters, for it reads the file once more. */
async function surveyWindow(
  crew: Crew,
  files: readonly SpoolFile[],
  streams: readonly RecordStream[],
  signal: AbortSignal,
): Promise<Survey> {
  const events = streams.some((stream) => stream.name === 'event_logs');
  const keys = files.length > 1 || files.some((file) => file.keysNeedWork);
  const rows = files.reduce((sum, file) => sum + file.rows, 0);
  const builder = new SurveyBuilder(events || keys ? rows : 0, { events, keys });
  if (!events && !keys) return builder;
  for await (const done of crew.run(surveyTasks(files, signal))) {
    if (done.kind === 'survey') builder.add(done);
  }
  return builder.finish();
}

async function* surveyTasks(files: readonly SpoolFile[], signal: AbortSignal): AsyncGenerator<Task> {
  for await (const { job, from, to } of piecesOf(files, signal))
    yield { kind: 'survey', job, from, to, spare: undefined };
}

async function* writeTasks(files: readonly SpoolFile[], survey: Survey, signal: AbortSignal): AsyncGenerator<Task> {
  let number = 0;
  for await (const { job, from, to } of piecesOf(files, signal)) {
    yield {
      kind: 'write',
      job,
      from,
      to,
      spare: undefined,
      events: survey.eventsOf(number),
      ordinals: survey.ordinals.get(number),
      taken: survey.taken.size > 0 && survey.ordinals.has(number) ? survey.taken : undefined,
    };
    number++;
  }
}

interface FilePiece {
  readonly job: number;
  readonly from: number;
  readonly to: number;
}

async function* piecesOf(files: readonly SpoolFile[], signal: AbortSignal): AsyncGenerator<FilePiece> {
  for (let job = 0; job < files.length; job++) {
    const file = await open(files[job].path, 'r');
    try {
      for await (const part of partsOf(file)) {
        signal.throwIfAborted();
        yield { job, ...part };
      }
    } finally {
      await file.close();
    }
  }
}

/** Hands on whole lines, about a chunk at a time. */
async function writeLines(done: Written, write: WriteBytes, signal: AbortSignal): Promise<void> {
  const lines = new Uint8Array(done.buffer, 0, done.length);
  for (let from = 0; from < lines.length; ) {
    signal.throwIfAborted();
    const to = lineEnd(lines, from);
    await write(lines.subarray(from, to));
    from = to;
  }
}

function lineEnd(lines: Uint8Array, from: number): number {
  if (lines.length - from <= CHUNK_BYTES) return lines.length;
  const last = lines.lastIndexOf(LF, from + CHUNK_BYTES - 1);
  return (last >= from ? last : lines.indexOf(LF, from + CHUNK_BYTES)) + 1;
}

/** Adds up what the parts of a window were. */
class Tally {
  readonly #jobs: readonly FileJob[];
  readonly #records = new Map<StreamName, number>();
  readonly #rescued = new Map<string, number>();
  readonly #streams: readonly RecordStream[];

  constructor(jobs: readonly FileJob[], streams: readonly RecordStream[]) {
    this.#jobs = jobs;
    this.#streams = streams;
    for (const stream of streams) this.#records.set(stream.name, 0);
  }

  add(done: Written): void {
    done.records.forEach((count, i) => {
      const { name } = this.#streams[i];
      this.#records.set(name, (this.#records.get(name) ?? 0) + count);
    });
    const cells = new Map<number, number>();
    for (const [column, count] of done.rescued.flat()) cells.set(column, Math.max(cells.get(column) ?? 0, count));
    const { header } = this.#jobs[done.job];
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
