import type { Day } from '../../base/days.ts';
import { UserError } from '../../base/errors.ts';
import type { Logger, LogLevel } from '../../base/log.ts';
import type { SourceConfig } from '../../config/source.ts';
import type { DayResult } from '../../extract/download/day.ts';
import type { Run } from '../../extract/download/run.ts';
import { editsOf, newExtractCounts } from '../../extract/extract-deps.ts';
import type { DayDownload } from '../../extract/receipt.ts';
import { removeFiles } from '../../extract/spool.ts';
import { type ConfiguredStream, type SavedStates, streamKey } from '../protocol/catalog-and-states.ts';
import type { VerbContext } from '../protocol/connector.ts';
import { type StreamStatus, streamStatus } from '../protocol/messages.ts';
import { RESCUED } from '../records/property-names.ts';
import { type WrittenRecords, writeRecords } from '../records/record-writer.ts';
import { EventStream, type StreamOutput } from './event-stream.ts';
import type { StreamFailures } from './stream-failures.ts';
import { planStream, type StreamPlan } from './stream-plans.ts';

/** The streams of one read. Each day goes to those that want it; a failure ends a stream, and leaves the others. */
export class EventStreams {
  /** The streams that could be planned. */
  readonly planned: EventStream[] = [];
  readonly #config: SourceConfig;
  readonly #signal: AbortSignal;
  readonly #output: StreamOutput;
  readonly #failures: StreamFailures;
  /** Columns that were named as missing from a stream's catalog. */
  readonly #unsent = new Set<string>();

  constructor(config: SourceConfig, { writer, clock, logger, signal }: VerbContext, failures: StreamFailures) {
    this.#config = config;
    this.#signal = signal;
    const counts = newExtractCounts();
    this.#output = { writer, clock, logger: loggedOnce(logger), counts, edits: editsOf(config) };
    this.#failures = failures;
  }

  /**
   * Plans and starts every configured stream. One that cannot be planned ends, and so does one without a day to read.
   */
  async start(configured: readonly ConfiguredStream[], saved: SavedStates): Promise<void> {
    const { writer, clock } = this.#output;
    const now = clock.now();
    for (const stream of configured) {
      let plan: StreamPlan;
      try {
        plan = planStream(stream, saved.get(streamKey(stream.descriptor)), this.#config, now);
      } catch (error) {
        if (!(error instanceof UserError)) throw error;
        const writeStatus = (status: StreamStatus) => writer.write(streamStatus(stream.descriptor, status, now));
        await writeStatus('STARTED');
        await this.#failures.add(stream.name, error);
        await writeStatus('INCOMPLETE');
        continue;
      }
      this.planned.push(new EventStream(stream, plan, this.#output));
    }
    for (const stream of this.planned) await stream.start();
    for (const stream of this.planned) if (stream.plan.days.length === 0) await stream.end('COMPLETE');
  }

  get unfinished(): EventStream[] {
    return this.planned.filter(({ isFinished }) => !isFinished);
  }

  /** Writes a sign of life of each stream. */
  readonly beat = (until: number | undefined): Promise<unknown> =>
    Promise.all(this.unfinished.map((stream) => stream.beat(until)));

  /** Gives a day to the streams that want it, and ends those whose last day it is. */
  async take(result: DayResult, run: Run): Promise<void> {
    const { day } = result;
    const takers: EventStream[] = [];
    await this.#each(day, (stream) => {
      if (stream.take(result, run)) takers.push(stream);
    });
    if ('download' in result) {
      await this.#write(result.download, takers, run);
      await removeFiles(result.download.files);
    }
    await this.#each(day, async (stream) => {
      if (stream.isLast(day)) await stream.complete();
    });
  }

  /** Ends failed streams: writes the failure and INCOMPLETE. The last state of each remains valid. */
  async fail(streams: readonly EventStream[], error: unknown): Promise<void> {
    for (const stream of streams) {
      await this.#failures.add(stream.name, error);
      await stream.end('INCOMPLETE');
    }
  }

  /** Does a step for each stream that wants a day; a stream whose step throws ends. */
  async #each(day: Day, step: (stream: EventStream) => void | Promise<void>): Promise<void> {
    for (const stream of this.planned) {
      if (!stream.wants(day)) continue;
      try {
        await step(stream);
      } catch (error) {
        await this.fail([stream], error);
      }
    }
  }

  /** Writes the records of a day for its streams in one pass, and a state for each. */
  async #write(download: DayDownload, streams: readonly EventStream[], run: Run): Promise<void> {
    const { writer, clock } = this.#output;
    const written = await writeRecords(
      download,
      streams.map((stream) => stream.records),
      (bytes) => writer.writeBytes(bytes),
      { timezone: this.#config.timezone, emittedAt: clock.now(), signal: this.#signal },
    );
    this.#reportCells(download.receipt.day, written, streams);
    for (const stream of streams) await stream.advance(download.receipt, run, written.records.get(stream.name) ?? 0);
  }

  /** Logs the columns that are not sent, once each, and those with cells that did not fit. */
  #reportCells(day: Day, { unsent, rescuedCells }: WrittenRecords, streams: readonly EventStream[]): void {
    const { logger } = this.#output;
    for (const [stream, names] of unsent) {
      const fresh = names.filter((name) => !this.#unsent.has(`${stream} ${name}`));
      if (fresh.length === 0) continue;
      for (const name of fresh) this.#unsent.add(`${stream} ${name}`);
      logger.info('columns.unsent', `${stream}: not in the configured catalog and so not sent: ${fresh.join(', ')}.`);
    }
    const cells = [...rescuedCells].map(([name, count]) => `${name} (${count})`).join(', ');
    if (cells === '') return;
    const without = streams.filter(({ records }) => !Object.hasOwn(records.properties, RESCUED));
    const text =
      without.length === 0
        ? 'their text is in _rescued'
        : `their text is not sent, as the catalog lacks _rescued of ${without.map(({ name }) => name).join(', ')}`;
    logger.warn('cells.rescued', `${day}: cells that do not fit the configured types are null, ${text}: ${cells}.`);
  }
}

/** Streams that read the same days warn of the same things: a logger that gives each message on once. */
function loggedOnce(logger: Logger): Logger {
  const logged = new Set<string>();
  const once =
    (level: LogLevel): Logger[LogLevel] =>
    (event, message, fields) => {
      if (logged.has(message)) return;
      logged.add(message);
      logger[level](event, message, fields);
    };
  return { debug: once('debug'), info: once('info'), warn: once('warn'), error: once('error') };
}
