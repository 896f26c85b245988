import type { ReadVerb, VerbContext } from '../airbyte/connector.ts';
import type { SourceConfig } from '../config/source.ts';
import { RecordWriter } from '../sinks/records/record-writer.ts';
import type { WorkerOptions } from '../sinks/records/workers/worker-pool.ts';
import { Reader } from './reader.ts';
import { segmentsOf } from './segments.ts';
import { Session } from './session.ts';
import type { StreamRun } from './stream-run.ts';
import { Vigil, type Voice } from './vigil.ts';
import { depsOf, openConfig, openService } from './world.ts';

/** The `read` verb; `threads` says how workers are started. */
export const readVerb =
  (threads: WorkerOptions): ReadVerb =>
  async (value, catalog, saved, context) => {
    const config = openConfig(value, context);
    const { writer, clock, logger, redactor } = context;
    const session = new Session({ writer, clock, logger, mask: redactor.mask });
    await session.open(catalog, saved, config);
    if (session.runs.length > 0) await readAll(session, config, context, threads);
    session.finish();
  };

async function readAll(
  session: Session,
  config: SourceConfig,
  context: VerbContext,
  threads: WorkerOptions,
): Promise<void> {
  const vigil = new Vigil(context.clock, voiceOf(session));
  const service = openService(config, context, vigil.waiting);
  const { timezone } = config;
  const writer = new RecordWriter({ timezone, clock: context.clock, threads });
  try {
    const deps = depsOf(config, context, service);
    await readSegments(session, new Reader({ context, config, deps, vigil, writer }), context.signal);
  } catch (error) {
    // Stopped, or nobody listens any more: what can still be said is that nothing is complete.
    for (const run of session.runs) await run.close('INCOMPLETE').catch(() => {});
    throw error;
  } finally {
    await service.close();
  }
}

/** One after the other; what fails ends the streams that need it, and the others go on (S25). */
async function readSegments(session: Session, reader: Reader, signal: AbortSignal): Promise<void> {
  const segments = segmentsOf(session.runs);
  const left = (run: StreamRun, from: number) => segments.slice(from).some(({ streams }) => streams.includes(run));
  const complete = async (from: number) => {
    for (const run of session.runs) if (!left(run, from)) await run.close('COMPLETE');
  };
  await complete(0);
  for (const [i, { days, streams }] of segments.entries()) {
    const open = streams.filter((run) => run.isOpen);
    try {
      if (open.length > 0) await reader.read({ days, streams: open });
    } catch (error) {
      signal.throwIfAborted();
      await session.fail(open, error);
    }
    await complete(i + 1);
  }
}

/** To every stream that is still being read; nobody waits for these. */
function voiceOf(session: Session): Voice {
  const each = (say: (run: StreamRun) => Promise<void>) => {
    for (const run of session.runs) if (run.isOpen) say(run).catch(() => {});
  };
  return {
    limited: (until) => each((run) => run.limited(until)),
    resumed: () => each((run) => run.status('RUNNING')),
    alive: () => each((run) => run.repeat()),
  };
}
