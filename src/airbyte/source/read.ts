import type { Day } from '../../base/days.ts';
import { UserError } from '../../base/errors.ts';
import type { Logger, LogLevel } from '../../base/log.ts';
import { parseSourceConfig, type SourceConfig } from '../../config/source.ts';
import { suppressionOf } from '../../erasure/suppression.ts';
import type { DayResult } from '../../extract/download/day.ts';
import { DayDownloads, logPlan } from '../../extract/extract.ts';
import type { Plan } from '../../extract/plan/which-days.ts';
import type { DayDownload } from '../../extract/receipt.ts';
import { editsOf, extractDeps, newExtractCounts, openExportClient } from '../../extract/session.ts';
import { removeFiles } from '../../extract/spool.ts';
import { openConfig, type ReadVerb, type VerbContext } from '../protocol/connector.ts';
import type { ConfiguredStream } from '../protocol/input.ts';
import { RESCUED, USER_PROFILES } from '../records/property-names.ts';
import { type WrittenRecords, writeRecords } from '../records/record-writer.ts';
import { Heartbeat } from './heartbeat.ts';
import { readProfiles } from './profiles.ts';
import type { Stream } from './stream.ts';
import { planForAll } from './stream-plans.ts';
import { Streams } from './streams.ts';

/** The verb `read`: downloads each day that a stream wants once, and writes its records and states. */
export const read: ReadVerb = async (value, catalog, saved, context) => {
  const config = openConfig(parseSourceConfig(value, context.env), context);
  const { writer, clock, redactor } = context;
  const logger = loggedOnce(context.logger);
  const counts = newExtractCounts();
  const output = { writer, clock, logger, counts, edits: editsOf(config), mask: redactor.mask };
  const isProfiles = ({ name, namespace }: ConfiguredStream) =>
    config.userProfiles && namespace === undefined && name === USER_PROFILES;
  const snapshot = catalog.streams.find(isProfiles);
  const failure = snapshot && (await readProfiles(snapshot, config, context));
  const days = { streams: catalog.streams.filter((stream) => !isProfiles(stream)) };
  const streams = await Streams.open(days, saved, config, output);
  if (streams.all.length > 0) {
    const plan = planForAll(streams.all.map((stream) => stream.plan));
    logPlan(plan, context);
    if (plan.days.length > 0) await readDays(plan, streams, config, context);
  }
  streams.finish();
  if (failure !== undefined) throw failure;
};

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

async function readDays(plan: Plan, streams: Streams, config: SourceConfig, context: VerbContext): Promise<void> {
  const heartbeat = new Heartbeat(context.clock, (until) => {
    // Nobody waits for these writes: if one fails, the next write of a record does, too.
    for (const stream of streams.open) stream.signal(until).catch(() => {});
  });
  const service = openExportClient(config, context, { onWait: heartbeat.waiting });
  try {
    const deps = extractDeps(config, service, context, suppressionOf(config));
    const downloads = await DayDownloads.open(plan, deps);
    try {
      const reader = new Reader(streams, downloads, config, context);
      const results = downloads.results();
      while (streams.open.length > 0) {
        const { value, done } = await heartbeat.during(results.next());
        if (done === true) break;
        await reader.take(value);
      }
    } finally {
      await downloads.close();
    }
  } catch (error) {
    // A failure that ends the run ends all streams that still want a day; a stop, or a closed stdout, every stream.
    if (!context.signal.aborted && error instanceof UserError) return await streams.fail(streams.all, error);
    for (const stream of streams.all) await stream.close('INCOMPLETE').catch(() => {});
    throw error;
  } finally {
    await service.close();
  }
}

/** Gives each day to the streams that want it. */
class Reader {
  readonly #streams: Streams;
  readonly #downloads: DayDownloads;
  readonly #config: SourceConfig;
  readonly #context: VerbContext;
  /** Columns that were named as missing from a stream's catalog. */
  readonly #named = new Set<string>();

  constructor(streams: Streams, downloads: DayDownloads, config: SourceConfig, context: VerbContext) {
    this.#streams = streams;
    this.#downloads = downloads;
    this.#config = config;
    this.#context = context;
  }

  async take(result: DayResult): Promise<void> {
    const { day } = result;
    const takers = await this.#those(day, (stream) => stream.take(result, this.#downloads.run));
    if ('download' in result) {
      await this.#write(result.download, takers);
      await removeFiles(result.download.files);
    }
    for (const stream of await this.#those(day, (reader) => reader.endsWith(day))) await stream.close('COMPLETE');
  }

  /** The streams that want a day and meet a condition; one whose condition throws ends. */
  async #those(day: Day, condition: (stream: Stream) => boolean): Promise<Stream[]> {
    const matching: Stream[] = [];
    for (const stream of this.#streams.wanting(day)) {
      try {
        if (condition(stream)) matching.push(stream);
      } catch (error) {
        await this.#streams.fail([stream], error);
      }
    }
    return matching;
  }

  /** Writes the records of a day for all streams in one pass, and a state for each. */
  async #write(download: DayDownload, streams: readonly Stream[]): Promise<void> {
    const { writer, clock, signal } = this.#context;
    const written = await writeRecords(
      download,
      streams.map((stream) => stream.records),
      (bytes) => writer.writeBytes(bytes),
      { timezone: this.#config.timezone, emittedAt: clock.now(), signal },
    );
    this.#reportCells(download.receipt.day, written, streams);
    for (const stream of streams) {
      await stream.advance(download.receipt, this.#downloads.run, written.records.get(stream.name) ?? 0);
    }
  }

  /** Logs the columns that are not sent, once each, and those with cells that did not fit. */
  #reportCells(day: Day, { unsent, rescued }: WrittenRecords, streams: readonly Stream[]): void {
    const { logger } = this.#context;
    for (const [stream, names] of unsent) {
      const fresh = names.filter((name) => !this.#named.has(`${stream} ${name}`));
      if (fresh.length === 0) continue;
      for (const name of fresh) this.#named.add(`${stream} ${name}`);
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
}
