import { UserError } from '../../base/errors.ts';
import type { Logger, LogLevel } from '../../base/log.ts';
import { parseSourceConfig, type SourceConfig } from '../../config/source.ts';
import { suppressionOf } from '../../erasure/suppression.ts';
import { Downloads, logPlan } from '../../extract/extract.ts';
import type { Plan } from '../../extract/plan/which-days.ts';
import { editsOf, extractDeps, newExtractCounts, openExportClient } from '../../extract/session.ts';
import { openConfig, type ReadVerb, type VerbContext } from '../protocol/connector.ts';
import { USER_PROFILES } from '../records/property-names.ts';
import { EventStreams } from './event-streams.ts';
import { Heartbeat } from './heartbeat.ts';
import { readProfiles } from './profiles-stream.ts';
import { planForAll } from './stream-plans.ts';

/** The verb `read`: downloads each day that a stream wants once, and writes its records and states. */
export const read: ReadVerb = async (value, catalog, saved, context) => {
  const config = openConfig(parseSourceConfig(value, context.env), context);
  const { writer, clock, redactor, signal } = context;
  const profiles = catalog.streams.find(
    ({ name, namespace }) => config.userProfiles && namespace === undefined && name === USER_PROFILES,
  );
  const failure = profiles && (await readProfiles(profiles, config, context));
  const ofEvents = catalog.streams.filter((stream) => stream !== profiles);
  const streams = await EventStreams.open(ofEvents, saved, config, {
    ...{ writer, clock, signal, mask: redactor.mask },
    ...{ logger: loggedOnce(context.logger), counts: newExtractCounts(), edits: editsOf(config) },
  });
  if (streams.all.length > 0) {
    const plan = planForAll(streams.all.map((stream) => stream.plan));
    logPlan(plan, context);
    if (plan.days.length > 0) await readDays(plan, streams, config, context);
  }
  streams.finish(ofEvents.length);
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

async function readDays(plan: Plan, streams: EventStreams, config: SourceConfig, context: VerbContext): Promise<void> {
  const heartbeat = new Heartbeat(context.clock, (until) => {
    // Nobody waits for these writes: if one fails, the next write of a record does, too.
    for (const stream of streams.open) stream.signal(until).catch(() => {});
  });
  const service = openExportClient(config, context, { onWait: heartbeat.waiting });
  try {
    const deps = extractDeps(config, service, context, suppressionOf(config));
    const downloads = await Downloads.open(plan, deps);
    try {
      const results = downloads.results();
      while (streams.open.length > 0) {
        const { value, done } = await heartbeat.during(results.next());
        if (done === true) break;
        await streams.take(value, downloads.run);
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
