import type { Clock } from '../../base/clock.ts';
import { configError, UserError } from '../../base/errors.ts';
import { parseSourceConfig, type SourceConfig } from '../../config/source.ts';
import { suppressionOf } from '../../erasure/suppression.ts';
import type { DayResult } from '../../extract/download/day.ts';
import { DayDownloads } from '../../extract/download/downloads.ts';
import { logPlan } from '../../extract/extract.ts';
import type { DayDownload } from '../../extract/receipt.ts';
import { extractDeps, openExportSession, waitsAsOne } from '../../extract/session.ts';
import { RESCUED } from '../../targets/records/property-names.ts';
import { type WrittenRecords, writeRecords } from '../../targets/records/record-writer.ts';
import { openConfig, type ReadVerb, type VerbContext } from '../protocol/connector.ts';
import { planForAll } from './streams/plan.ts';
import { type KnownFacts, type StreamRun, StreamSet } from './streams/run.ts';

export const readVerb: ReadVerb = async (value, catalog, saved, context) => {
  const config = openConfig(parseSourceConfig(value, context.env), context);
  const { writer, clock, logger, redactor } = context;
  const streams = new StreamSet({ writer, clock, logger, mask: redactor.mask });
  await streams.open(catalog, saved, config);
  if (streams.runs.some((run) => run.isOpen)) await readAll(streams, config, context);
  streams.finish();
};

/** Downloads each day that a stream wants once, and writes its records and states. */
async function readAll(streams: StreamSet, config: SourceConfig, context: VerbContext): Promise<void> {
  const heartbeat = new Heartbeat(context.clock, streams);
  const onWait = waitsAsOne(heartbeat.waiting);
  const session = openExportSession(config, context, { onWait });
  try {
    const deps = { ...extractDeps(config, session.service, context, suppressionOf(config)), onWait };
    const plan = planForAll(streams.runs.map((run) => run.plan));
    logPlan(plan, deps);
    const downloads = await DayDownloads.open(plan, deps);
    try {
      await new Reader(streams, downloads, config, context).read(heartbeat);
    } finally {
      await downloads.close();
    }
  } catch (error) {
    // A failure that ends the run ends all streams that still want a day; a stop, or a closed stdout, every stream.
    if (!context.signal.aborted && error instanceof UserError) return await streams.fail(streams.runs, error);
    for (const run of streams.runs) await run.close('INCOMPLETE').catch(() => {});
    throw error;
  } finally {
    await session.close();
  }
}

/** Much shorter than the hours without a message after which a platform stops a source. */
const BEAT_MS = 10 * 60_000;

/** Signs of life while a run waits for the next day; none while records are written. */
export class Heartbeat {
  readonly #clock: Clock;
  readonly #streams: Pick<StreamSet, 'inEachOpen'>;
  #until: number | undefined;
  #isIdle = false;
  #isLimited = false;
  #cancel: (() => void) | undefined;

  constructor(clock: Clock, streams: Pick<StreamSet, 'inEachOpen'>) {
    this.#clock = clock;
    this.#streams = streams;
  }

  /** Called with the end of a wait for the service, and with undefined when it is over. */
  readonly waiting = (until: number | undefined): void => {
    this.#until = until;
    if (!this.#isIdle) return;
    if (until !== undefined) this.#limited(until);
    else this.#resumed();
  };

  /** Beats until `work` has settled. */
  async during<T>(work: Promise<T>): Promise<T> {
    this.#isIdle = true;
    if (this.#until !== undefined) this.#limited(this.#until);
    this.#schedule();
    try {
      return await work;
    } finally {
      this.#isIdle = false;
      this.#cancel?.();
      this.#resumed();
    }
  }

  #schedule(): void {
    this.#cancel = this.#clock.after(BEAT_MS, () => {
      if (this.#until === undefined) this.#streams.inEachOpen((run) => run.repeat());
      else this.#limited(this.#until);
      this.#schedule();
    });
  }

  #limited(until: number): void {
    this.#isLimited = true;
    this.#streams.inEachOpen((run) => run.limited(until));
  }

  #resumed(): void {
    if (this.#isLimited) this.#streams.inEachOpen((run) => run.resumed());
    this.#isLimited = false;
  }
}

class Reader {
  readonly #streams: StreamSet;
  readonly #downloads: DayDownloads;
  readonly #config: SourceConfig;
  readonly #context: VerbContext;
  /** Columns that were named in a log line. */
  readonly #named = new Set<string>();

  constructor(streams: StreamSet, downloads: DayDownloads, config: SourceConfig, context: VerbContext) {
    this.#streams = streams;
    this.#downloads = downloads;
    this.#config = config;
    this.#context = context;
  }

  async read(heartbeat: Heartbeat): Promise<void> {
    const results = this.#downloads.results();
    for (;;) {
      const next = await heartbeat.during(results.next());
      if (next.done === true) return;
      await this.#take(next.value);
      await this.#streams.complete(next.value.day);
      if (!this.#streams.runs.some((run) => run.isOpen)) return;
    }
  }

  async #take(result: DayResult): Promise<void> {
    const { day } = result;
    if (result.kind !== 'gone') await this.#streams.passGaps();
    const wanting = this.#streams.wanting(day);
    switch (result.kind) {
      case 'gone':
        for (const run of wanting) run.addGone(day);
        return;
      case 'failed':
        return this.#streams.fail(wanting, result.error);
      case 'open': {
        const message = `${day} is not over and was not read, the next sync reads it: ${result.error.message}`;
        this.#context.logger.warn('day.open', message, { day });
        for (const run of wanting) run.addOpen(result.error);
        return;
      }
      case 'day':
        await this.#write(result.download, await this.#admitted(wanting, result.download));
        return this.#downloads.remove(result.download);
    }
  }

  /** The streams that may get the day; the others are ended, or read it next time. */
  async #admitted(wanting: readonly StreamRun[], { receipt: { day } }: DayDownload): Promise<StreamRun[]> {
    const admitted: StreamRun[] = [];
    for (const run of wanting) {
      try {
        run.checkDay(day, this.#known());
        admitted.push(run);
      } catch (error) {
        if (error instanceof UserError && error.kind === 'transient') run.addOpen(error);
        else await this.#streams.fail([run], error);
      }
    }
    return admitted;
  }

  #known(): KnownFacts {
    const { facts } = this.#downloads;
    return {
      now: facts.earlierTime(),
      toDateInclusive: this.#config.toDateInclusive === 'auto' ? facts.toDateInclusive : undefined,
      finalNewline: facts.finalNewline,
      isEndDayAsked: facts.isEndDayAsked,
    };
  }

  async #write(download: DayDownload, streams: readonly StreamRun[]): Promise<void> {
    const { writer, clock, signal } = this.#context;
    const written = await writeRecords(
      download,
      streams.map((stream) => stream.records),
      (bytes) => writer.writeBytes(bytes),
      { timezone: this.#config.timezone, emittedAt: clock.now(), signal },
    );
    this.#report(download, written, streams);
    const known = this.#known();
    for (const stream of streams) {
      const found = await stream.advance(download, known, written.records.get(stream.name) ?? 0);
      if (found !== undefined) await this.#streams.addImplausible(stream, found, known.now);
    }
  }

  /** Logs the columns that are not sent, and those with cells that did not fit, once each. */
  #report({ receipt: { day } }: DayDownload, written: WrittenRecords, streams: readonly StreamRun[]): void {
    const { logger } = this.#context;
    for (const [stream, names] of written.unsent) {
      const fresh = names.filter((name) => this.#isNew(`${stream} ${name}`));
      if (fresh.length === 0) continue;
      logger.info('columns.unsent', `${stream}: not in the configured catalog and so not sent: ${fresh.join(', ')}.`);
    }
    const cells = [...written.rescued].map(([name, count]) => `${name} (${count})`).join(', ');
    if (cells === '') return;
    if (this.#config.schemaMode === 'fail') {
      throw configError(
        `${day} has cells that do not fit the configured types, and schema_mode is fail: ${cells}. Refresh the ` +
          "source's schema, or set schema_mode to evolve to keep such cells as text in _rescued.",
      );
    }
    const without = streams
      .filter(({ records }) => !Object.hasOwn(records.properties, RESCUED))
      .map(({ name }) => name);
    const lost =
      without.length === 0
        ? 'their text is in _rescued'
        : `their text is not sent, as the catalog lacks _rescued of ${without.join(', ')}`;
    logger.warn('cells.rescued', `${day}: cells that do not fit the configured types are null, ${lost}: ${cells}.`);
  }

  #isNew(what: string): boolean {
    if (this.#named.has(what)) return false;
    this.#named.add(what);
    return true;
  }
}
