import type { VerbContext } from '../airbyte/connector.ts';
import { estimate } from '../airbyte/messages.ts';
import { configFailure } from '../base/errors.ts';
import type { SourceConfig } from '../config/source.ts';
import { extractWindows } from '../extract/extract.ts';
import type { Plan } from '../extract/plan/plan.ts';
import type { ExtractDeps } from '../extract/ports.ts';
import type { KnownState } from '../extract/state.ts';
import type { Window } from '../extract/window.ts';
import { RESCUED } from '../sinks/records/property-names.ts';
import type { RecordWriter, WrittenWindow } from '../sinks/records/record-writer.ts';
import { knowledgeIn } from './cursor.ts';
import type { Heartbeat } from './heartbeat.ts';
import { RepeatedIds } from './repeated-ids.ts';
import type { StreamRun } from './streams/run.ts';
import { type Segment, segmentPlan } from './streams/segments.ts';

export interface ReaderDeps {
  readonly context: VerbContext;
  readonly config: SourceConfig;
  readonly extract: ExtractDeps;
  readonly heartbeat: Heartbeat;
  readonly writer: RecordWriter;
}

/** Reads segments: writes the records and states of their windows. */
export class Reader {
  readonly #deps: ReaderDeps;
  readonly #named = new Set<string>();
  readonly #ids = new RepeatedIds();
  #known: Partial<KnownState> = {};

  constructor(deps: ReaderDeps) {
    this.#deps = deps;
  }

  /** Reads one segment to its end for the streams that are still open. Throws what the extraction throws. */
  async read(segment: Segment<StreamRun>): Promise<void> {
    const plan = segmentPlan(segment, this.#known);
    const windows = extractWindows(plan, this.#deps.extract);
    try {
      for (;;) {
        const next = await this.#deps.heartbeat.during(windows.next());
        if (next.done) return;
        await this.#take(next.value, plan, segment);
      }
    } finally {
      await windows.return();
    }
  }

  async #take(window: Window, plan: Plan, { days, streams }: Segment<StreamRun>): Promise<void> {
    const { context, writer } = this.#deps;
    if (days.length === 1) await this.#estimate(window, streams);
    const written = await writer.write(
      window,
      streams.map((stream) => stream.records),
      (bytes) => context.writer.writeBytes(bytes),
      context.signal,
    );
    this.#report(window, written, streams);
    this.#warnOfRepeatedIds(window);
    this.#known = { ...this.#known, ...knowledgeIn(window.state) };
    for (const stream of streams) await stream.advance(window, plan, written.records.get(stream.name) ?? 0);
  }

  /** A single window that is here already: its rows are counted, nothing is guessed. */
  async #estimate(window: Window, streams: readonly StreamRun[]): Promise<void> {
    if (!streams.some((stream) => stream.name === 'events')) return;
    const { rows, bytes } = window.receipt;
    const { writer, clock } = this.#deps.context;
    const value = { name: 'events', type: 'STREAM', row_estimate: rows, byte_estimate: bytes } as const;
    await writer.write(estimate(value, clock.now()));
  }

  /** Names columns that are not sent, and those with cells that did not fit, once each. */
  #report(window: Window, written: WrittenWindow, streams: readonly StreamRun[]): void {
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
      throw configFailure(
        `${from} has cells that do not fit the configured types, and schema_mode is fail: ${cells}. Refresh the source's schema, or set schema_mode to evolve to keep such cells as text in _rescued.`,
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

  /** Once a read (S66): a destination that merges by the key makes one row of two that share an id on different days. */
  #warnOfRepeatedIds(window: Window): void {
    const earlier = this.#ids.take(window);
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
