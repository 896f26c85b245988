import type { Day } from '../../base/days.ts';
import { UserError } from '../../base/errors.ts';
import type { SourceConfig } from '../../config/source.ts';
import type { DayResult } from '../../extract/download/day.ts';
import type { Run } from '../../extract/download/run.ts';
import type { DayDownload } from '../../extract/receipt.ts';
import { removeFiles } from '../../extract/spool.ts';
import { type ConfiguredStream, type SavedStates, streamKey } from '../protocol/input.ts';
import { traceOf } from '../protocol/messages.ts';
import { RESCUED } from '../records/property-names.ts';
import { type WrittenRecords, writeRecords } from '../records/record-writer.ts';
import { EventStream, type StreamOutput, writeStatus } from './event-stream.ts';
import { planStream, type StreamPlan } from './stream-plans.ts';

export interface StreamsOutput extends StreamOutput {
  readonly mask: (text: string) => string;
  readonly signal: AbortSignal;
}

/** The streams of one read. Each day goes to those that want it; a failure ends a stream, and leaves the others. */
export class EventStreams {
  /** The streams that could be planned. */
  readonly planned: EventStream[] = [];
  readonly #config: SourceConfig;
  readonly #output: StreamsOutput;
  readonly #failures: { readonly stream: string; readonly error: unknown }[] = [];
  /** Columns that were named as missing from a stream's catalog. */
  readonly #unsent = new Set<string>();

  private constructor(config: SourceConfig, output: StreamsOutput) {
    this.#config = config;
    this.#output = output;
  }

  /** Plans and starts every configured stream. One that cannot be planned ends, and so does one without a day to read. */
  static async open(
    configured: readonly ConfiguredStream[],
    saved: SavedStates,
    config: SourceConfig,
    output: StreamsOutput,
  ): Promise<EventStreams> {
    const streams = new EventStreams(config, output);
    const now = output.clock.now();
    for (const stream of configured) {
      let plan: StreamPlan;
      try {
        plan = planStream(stream, saved.get(streamKey(stream.descriptor)), config, now);
      } catch (error) {
        if (!(error instanceof UserError)) throw error;
        await writeStatus(output, stream.descriptor, 'STARTED');
        await streams.#addFailure(stream.name, error);
        await writeStatus(output, stream.descriptor, 'INCOMPLETE');
        continue;
      }
      streams.planned.push(new EventStream(stream, plan, output));
    }
    for (const stream of streams.planned) await stream.open();
    for (const stream of streams.planned) if (stream.plan.days.length === 0) await stream.close('COMPLETE');
    return streams;
  }

  get open(): EventStream[] {
    return this.planned.filter(({ isOpen }) => isOpen);
  }

  /** Gives a day to the streams that want it, and ends those whose last day it is. */
  async take(result: DayResult, run: Run): Promise<void> {
    const { day } = result;
    const takers = await this.#wanting(day, (stream) => stream.take(result, run));
    if ('download' in result) {
      await this.#write(result.download, takers, run);
      await removeFiles(result.download.files);
    }
    for (const stream of await this.#wanting(day, (last) => last.endsWith(day))) await stream.close('COMPLETE');
  }

  /** Ends failed streams: writes the failure and INCOMPLETE. The last state of each remains valid. */
  async fail(streams: readonly EventStream[], error: unknown): Promise<void> {
    for (const stream of streams) {
      if (!stream.isOpen) continue;
      await this.#addFailure(stream.name, error);
      await stream.close('INCOMPLETE');
    }
  }

  /** Throws when any of `count` streams failed: the exit code alone tells some readers. The first failure says what to do. */
  finish(count: number): void {
    const [first] = this.#failures;
    if (first === undefined) return;
    if (!(first.error instanceof UserError)) throw first.error;
    const names = this.#failures.map(({ stream }) => stream).join(', ');
    const text = `${this.#failures.length} of ${count} streams could not be read to the end (${names}): ${first.error.message}`;
    throw first.error.with({ message: text });
  }

  /** The streams that want a day and meet a condition; one whose condition throws ends. */
  async #wanting(day: Day, condition: (stream: EventStream) => boolean): Promise<EventStream[]> {
    const matching: EventStream[] = [];
    for (const stream of this.planned.filter((candidate) => candidate.wants(day))) {
      try {
        if (condition(stream)) matching.push(stream);
      } catch (error) {
        await this.fail([stream], error);
      }
    }
    return matching;
  }

  /** Writes the records of a day for its streams in one pass, and a state for each. */
  async #write(download: DayDownload, streams: readonly EventStream[], run: Run): Promise<void> {
    const { writer, clock, signal } = this.#output;
    const written = await writeRecords(
      download,
      streams.map((stream) => stream.records),
      (bytes) => writer.writeBytes(bytes),
      { timezone: this.#config.timezone, emittedAt: clock.now(), signal },
    );
    this.#reportCells(download.receipt.day, written, streams);
    for (const stream of streams) await stream.advance(download.receipt, run, written.records.get(stream.name) ?? 0);
  }

  /** Logs the columns that are not sent, once each, and those with cells that did not fit. */
  #reportCells(day: Day, { unsent, rescued }: WrittenRecords, streams: readonly EventStream[]): void {
    const { logger } = this.#output;
    for (const [stream, names] of unsent) {
      const fresh = names.filter((name) => !this.#unsent.has(`${stream} ${name}`));
      if (fresh.length === 0) continue;
      for (const name of fresh) this.#unsent.add(`${stream} ${name}`);
      logger.info('columns.unsent', `${stream}: not in the configured catalog and so not sent: ${fresh.join(', ')}.`);
    }
    const cells = [...rescued].map(([name, count]) => `${name} (${count})`).join(', ');
    if (cells === '') return;
    const without = streams.filter(({ records }) => !Object.hasOwn(records.properties, RESCUED));
    const text =
      without.length === 0
        ? 'their text is in _rescued'
        : `their text is not sent, as the catalog lacks _rescued of ${without.map(({ name }) => name).join(', ')}`;
    logger.warn('cells.rescued', `${day}: cells that do not fit the configured types are null, ${text}: ${cells}.`);
  }

  async #addFailure(stream: string, error: unknown): Promise<void> {
    this.#failures.push({ stream, error });
    const { writer, clock, mask } = this.#output;
    const failure = error instanceof UserError ? error.with({ where: { stream } }) : error;
    await writer.write(traceOf(failure, clock.now(), mask));
  }
}
