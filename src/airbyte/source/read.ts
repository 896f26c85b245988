import { UserError } from '../../base/errors.ts';
import type { Logger, LogLevel } from '../../base/log.ts';
import { UNIFIED_ID } from '../../cells/columns/groups.ts';
import { parseSourceConfig, type SourceConfig } from '../../config/source.ts';
import { suppressionOf } from '../../erasure/suppression.ts';
import { Downloads, logPlan } from '../../extract/extract.ts';
import { editsOf, extractDeps, newExtractCounts, openExportClient } from '../../extract/extract-deps.ts';
import type { Plan } from '../../extract/plan/which-days.ts';
import { loadSnapshot, profileFilters } from '../../extract/profiles.ts';
import type { DayDownload } from '../../extract/receipt.ts';
import { openConfig, type ReadVerb, type VerbContext } from '../protocol/connector.ts';
import type { ConfiguredStream } from '../protocol/input.ts';
import { streamState, traceOf } from '../protocol/messages.ts';
import { USER_PROFILES } from '../records/property-names.ts';
import { writeRecords } from '../records/record-writer.ts';
import { recordsOf, writeStatus } from './event-stream.ts';
import { EventStreams } from './event-streams.ts';
import { Heartbeat } from './heartbeat.ts';
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
  if (streams.planned.length > 0) {
    const plan = planForAll(streams.planned.map((stream) => stream.plan));
    logPlan(plan, context);
    if (plan.days.length > 0) await readDays(plan, streams, config, context);
  }
  streams.finish(ofEvents.length);
  if (failure !== undefined) throw failure;
};

/**
 * Reads the stream of profiles by one export: always all of them, also for a client such as PyAirbyte, which asks every
 * stream for increments. Returns why it failed. Throws for a stop, and for defects.
 */
async function readProfiles(
  stream: ConfiguredStream,
  config: SourceConfig,
  context: VerbContext,
): Promise<UserError | undefined> {
  const { writer, clock, redactor, signal } = context;
  const { descriptor } = stream;
  const status = (name: 'STARTED' | 'RUNNING' | 'COMPLETE' | 'INCOMPLETE', until?: number) =>
    writeStatus({ writer, clock }, descriptor, name, until);
  await status('STARTED');
  // Nobody waits for these writes: if one fails, the next write of a record does, too.
  const heartbeat = new Heartbeat(clock, (until) => void status('RUNNING', until).catch(() => {}));
  const service = openExportClient(config, context, { onWait: heartbeat.waiting });
  const records = recordsOf(USER_PROFILES, stream);
  const write = async (snapshot: DayDownload) => {
    await status('RUNNING');
    const options = { timezone: config.timezone, emittedAt: clock.now(), signal, idColumn: UNIFIED_ID };
    const written = await writeRecords(snapshot, [records], (bytes) => writer.writeBytes(bytes), options);
    const { requested_at, filters } = snapshot.receipt;
    const count = written.records.get(USER_PROFILES) ?? 0;
    await writer.write(streamState(descriptor, { version: 1, requested_at, filters }, count));
  };
  try {
    const deps = extractDeps(config, service, context, suppressionOf(config));
    const due = { stored: undefined, filters: profileFilters(config) };
    const failure = await heartbeat.during(loadSnapshot(due, deps, write));
    if (failure !== undefined) throw failure;
    await status('COMPLETE');
    return undefined;
  } catch (error) {
    if (!signal.aborted && error instanceof UserError) {
      const failure = error.with({ where: { stream: USER_PROFILES } });
      await writer.write(traceOf(failure, clock.now(), redactor.mask));
      await status('INCOMPLETE');
      return failure;
    }
    // A stop, or a closed stdout, leaves the stream unfinished, too.
    await status('INCOMPLETE').catch(() => {});
    signal.throwIfAborted();
    throw error;
  } finally {
    await service.close();
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
    if (!context.signal.aborted && error instanceof UserError) return await streams.fail(streams.planned, error);
    for (const stream of streams.planned) await stream.close('INCOMPLETE').catch(() => {});
    throw error;
  } finally {
    await service.close();
  }
}
