import type { Clock } from '../../base/clock.ts';
import { configError } from '../../base/errors.ts';
import { parseSourceConfig, type SourceConfig } from '../../config/source.ts';
import { suppressionOf } from '../../erasure/suppression.ts';
import type { ExtractDeps } from '../../extract/deps.ts';
import { factsIn } from '../../extract/download/service-facts.ts';
import { extractWindows } from '../../extract/extract.ts';
import type { Plan } from '../../extract/plan/plan.ts';
import { extractDeps, openExportSession, waitsAsOne } from '../../extract/session.ts';
import type { ExportState, Window } from '../../extract/window.ts';
import { RESCUED } from '../../targets/records/property-names.ts';
import { type WrittenRecords, writeRecords } from '../../targets/records/record-writer.ts';
import { openConfig, type ReadVerb, type VerbContext } from '../protocol/connector.ts';
import { RepeatedIds } from './repeated-ids.ts';
import { type Segment, segmentPlan, segmentsOf } from './streams/plan.ts';
import { type StreamRun, StreamSet } from './streams/run.ts';

export const readVerb: ReadVerb = async (value, catalog, saved, context) => {
  const config = openConfig(parseSourceConfig(value, context.env), context);
  const { writer, clock, logger, redactor } = context;
  const streams = new StreamSet({ writer, clock, logger, mask: redactor.mask });
  await streams.open(catalog, saved, config);
  if (streams.runs.length > 0) await readAll(streams, config, context);
  streams.finish();
};

async function readAll(streams: StreamSet, config: SourceConfig, context: VerbContext): Promise<void> {
  const heartbeat = new Heartbeat(context.clock, streams);
  const onWait = waitsAsOne(heartbeat.waiting);
  const session = openExportSession(config, context, { onWait });
  try {
    const deps = { ...extractDeps(config, session.service, context, suppressionOf(config)), onWait };
    await readSegments(streams, new Reader({ context, config, extract: deps, heartbeat }), context.signal);
  } catch (error) {
    // Stopped, or stdout was closed: the streams are INCOMPLETE.
    for (const run of streams.runs) await run.close('INCOMPLETE').catch(() => {});
    throw error;
  } finally {
    await session.close();
  }
}

/** Reads the segments in order; a failure ends the streams that need the segment, and the others go on. */
async function readSegments(streams: StreamSet, reader: Reader, signal: AbortSignal): Promise<void> {
  const segments = segmentsOf(streams.runs);
  const left = (run: StreamRun, from: number) => segments.slice(from).some((segment) => segment.streams.includes(run));
  const complete = async (from: number) => {
    for (const run of streams.runs) if (!left(run, from)) await run.close('COMPLETE');
  };
  await complete(0);
  for (const [i, { days, streams: wanted }] of segments.entries()) {
    const open = wanted.filter((run) => run.isOpen);
    try {
      if (open.length > 0) await reader.read({ days, streams: open });
    } catch (error) {
      signal.throwIfAborted();
      await streams.fail(open, error);
    }
    await complete(i + 1);
  }
}

/** Much shorter than the hours without a message after which a platform stops a source. */
const BEAT_MS = 10 * 60_000;

/** Signs of life while a run waits for the next window; none while records are written. */
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

export interface ReaderDeps {
  readonly context: VerbContext;
  readonly config: SourceConfig;
  readonly extract: ExtractDeps;
  readonly heartbeat: Heartbeat;
}

export class Reader {
  readonly #deps: ReaderDeps;
  readonly #named = new Set<string>();
  readonly #ids = new RepeatedIds();
  #found: Partial<ExportState> = {};

  constructor(deps: ReaderDeps) {
    this.#deps = deps;
  }

  /** Reads one segment to its end for the streams that are still open. Throws what the extraction throws. */
  async read(segment: Segment<StreamRun>): Promise<void> {
    const plan = segmentPlan(segment, this.#found);
    const windows = extractWindows(plan, this.#deps.extract);
    try {
      for (;;) {
        const next = await this.#deps.heartbeat.during(windows.next());
        if (next.done) return;
        await this.#writeWindow(next.value, plan, segment);
      }
    } finally {
      await windows.return();
    }
  }

  async #writeWindow(window: Window, plan: Plan, { days, streams }: Segment<StreamRun>): Promise<void> {
    const { context, config } = this.#deps;
    if (days.length === 1) await this.#estimate(window, streams);
    const written = await writeRecords(
      window,
      streams.map((stream) => stream.records),
      (bytes) => context.writer.writeBytes(bytes),
      { timezone: config.timezone, emittedAt: context.clock.now(), signal: context.signal },
    );
    this.#report(window, written, streams);
    this.#warnOfRepeatedIds(window);
    this.#found = { ...this.#found, ...factsIn(window.state) };
    for (const stream of streams) await stream.advance(window, plan, written.records.get(stream.name) ?? 0);
  }

  /** Writes the size of a single window that has already arrived: its rows are counted, so that nothing is guessed. */
  async #estimate(window: Window, streams: readonly StreamRun[]): Promise<void> {
    if (!streams.some((stream) => stream.name === 'events')) return;
    const { rows, bytes } = window.receipt;
    const { writer, clock } = this.#deps.context;
    const estimate = { name: 'events', type: 'STREAM', row_estimate: rows, byte_estimate: bytes } as const;
    await writer.write({ type: 'TRACE', trace: { type: 'ESTIMATE', emitted_at: clock.now(), estimate } });
  }

  /** Logs the columns that are not sent, and those with cells that did not fit, once each. */
  #report(window: Window, written: WrittenRecords, streams: readonly StreamRun[]): void {
    const { logger } = this.#deps.context;
    for (const [stream, names] of written.unsent) {
      const fresh = names.filter((name) => this.#isNew(`${stream} ${name}`));
      if (fresh.length === 0) continue;
      logger.info('columns.unsent', `${stream}: not in the configured catalog and so not sent: ${fresh.join(', ')}.`);
    }
    const cells = [...written.rescued].map(([name, count]) => `${name} (${count})`).join(', ');
    if (cells === '') return;
    const { from } = window.receipt;
    if (this.#deps.config.schemaMode === 'fail') {
      throw configError(
        `${from} has cells that do not fit the configured types, and schema_mode is fail: ${cells}. Refresh the ` +
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
    logger.warn('cells.rescued', `${from}: cells that do not fit the configured types are null, ${lost}: ${cells}.`);
  }

  /** Warns once a read: a destination that merges by the key makes one row of two. */
  #warnOfRepeatedIds(window: Window): void {
    const earlier = this.#ids.add(window);
    if (earlier === undefined || !this.#isNew('ids.repeat')) return;
    const { from } = window.receipt;
    this.#deps.context.logger.warn(
      'ids.repeat',
      `A row of ${from} has the id (df_event_detail_log_id) of a row of another day, ${earlier} or before: _key is unique within one ` +
        'export only, and a destination that merges by it keeps one of such rows. See "Ids that come back" in the README of this source.',
      { window: from },
    );
  }

  #isNew(what: string): boolean {
    if (this.#named.has(what)) return false;
    this.#named.add(what);
    return true;
  }
}
