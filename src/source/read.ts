import type { ReadVerb, VerbContext } from '../airbyte/connector.ts';
import type { SourceConfig } from '../config/source.ts';
import { extractDeps, openExportSession } from '../extract/session.ts';
import { RecordWriter } from '../sinks/records/record-writer.ts';
import type { WorkerOptions } from '../sinks/records/worker-pool.ts';
import { openConfig } from './config.ts';
import { Heartbeat, type HeartbeatListener } from './heartbeat.ts';
import { Reader } from './reader.ts';
import type { StreamRun } from './streams/run.ts';
import { segmentsOf } from './streams/segments.ts';
import { StreamSet } from './streams/set.ts';

/** The `read` verb; `threads` says how workers are started. */
export const readVerb =
  (threads: WorkerOptions): ReadVerb =>
  async (value, catalog, saved, context) => {
    const config = openConfig(value, context);
    const { writer, clock, logger, redactor } = context;
    const streams = new StreamSet({ writer, clock, logger, mask: redactor.mask });
    await streams.open(catalog, saved, config);
    if (streams.runs.length > 0) await readAll(streams, config, context, threads);
    streams.finish();
  };

async function readAll(
  streams: StreamSet,
  config: SourceConfig,
  context: VerbContext,
  threads: WorkerOptions,
): Promise<void> {
  const heartbeat = new Heartbeat(context.clock, listenerFor(streams));
  const session = openExportSession(config, context);
  session.quota.onWait(heartbeat.waiting);
  const { timezone } = config;
  const writer = new RecordWriter({ timezone, clock: context.clock, threads });
  try {
    const deps = extractDeps(config, session.service, context);
    await readSegments(streams, new Reader({ context, config, extract: deps, heartbeat, writer }), context.signal);
  } catch (error) {
    // Stopped, or stdout was closed: the streams are INCOMPLETE.
    for (const run of streams.runs) await run.close('INCOMPLETE').catch(() => {});
    throw error;
  } finally {
    await writer.close();
    await session.close();
  }
}

/** One after the other; what fails ends the streams that need it, and the others go on (S25). */
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

/** Repeats each sign of life in every stream that is still being read; these writes are not waited for. */
function listenerFor(streams: StreamSet): HeartbeatListener {
  const each = (say: (run: StreamRun) => Promise<void>) => {
    for (const run of streams.runs) if (run.isOpen) say(run).catch(() => {});
  };
  return {
    limited: (until) => each((run) => run.limited(until)),
    resumed: () => each((run) => run.status('RUNNING')),
    alive: () => each((run) => run.repeat()),
  };
}
