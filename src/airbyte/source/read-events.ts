import type { Logger, LogLevel } from '../../base/log.ts';
import type { DayResult, ServiceBehaviour } from '../../extract/download/day.ts';
import { Downloads } from '../../extract/download/downloads.ts';
import { removeFiles } from '../../extract/spool.ts';
import { logNotes } from '../../extract/which-days.ts';
import { type SavedStates, streamKey } from '../protocol/catalog-and-states.ts';
import { hasRescued } from '../records/record-plan.ts';
import { type WrittenRecords, writeRecords } from '../records/record-writer.ts';
import { EventStream } from './event-stream.ts';
import type { ReadDeps } from './read-deps.ts';
import type { StreamOutput } from './stream-output.ts';
import { downloadPlan, planStream } from './stream-plans.ts';

/**
 * Reads the streams of events. Each day is downloaded once, and goes to the streams that want it. A failure ends a
 * stream, and leaves the others. Throws for a stop, and for defects.
 */
export async function readEvents(outputs: readonly StreamOutput[], saved: SavedStates, deps: ReadDeps): Promise<void> {
  const logger = loggedOnce(deps.logger);
  const streams = await planStreams(outputs, saved, { ...deps, logger });
  for (const stream of streams) await stream.start();
  for (const { plan } of streams) logNotes(plan, logger);
  const running = () => streams.filter(({ output }) => output.isRunning);
  if (running().length === 0) return;
  try {
    const downloads = await Downloads.open(downloadPlan(streams.map(({ plan }) => plan)), deps);
    try {
      const results = downloads.results();
      while (running().length > 0) {
        const { value: result, done } = await deps.heartbeat.beatWhile(results.next());
        if (done === true) break;
        await takeDay(result, downloads.behaviour, streams, deps);
      }
    } finally {
      await downloads.close();
    }
  } catch (error) {
    for (const { output } of running()) await output.fail(error);
  }
}

/** A stream that cannot be planned ends. */
async function planStreams(outputs: readonly StreamOutput[], saved: SavedStates, deps: ReadDeps) {
  const now = deps.clock.now();
  const streams: EventStream[] = [];
  for (const output of outputs) {
    const state = saved.get(streamKey(output.configured.descriptor));
    try {
      streams.push(new EventStream(output, planStream(output.configured, state, deps.config, now), deps));
    } catch (error) {
      await output.writeStatus('STARTED');
      await output.fail(error);
    }
  }
  return streams;
}

/** Gives a day to the streams that want it: its records in one pass, and a state for each. */
async function takeDay(
  result: DayResult,
  behaviour: ServiceBehaviour,
  streams: readonly EventStream[],
  { config, writer, clock, signal, logger }: ReadDeps,
): Promise<void> {
  const { day } = result;
  const takers: EventStream[] = [];
  for (const stream of streams) if (stream.wants(day) && (await stream.take(result, behaviour))) takers.push(stream);
  if ('download' in result) {
    const { download } = result;
    const written = await writeRecords(
      download,
      takers.map(({ recordStream }) => recordStream),
      (bytes) => writer.writeBytes(bytes),
      { timezone: config.timezone, emittedAt: clock.now(), signal },
    );
    const warning = rescuedWarning(written, takers);
    if (warning !== undefined) logger.warn('cells.rescued', `${day}: ${warning}`);
    for (const stream of takers) await stream.advance(download.receipt, behaviour, written);
    await removeFiles(download.files);
  }
  for (const stream of streams) if (stream.wants(day)) await stream.completeAfter(day);
}

/** Which cells did not fit, and where their text is; undefined if all did. */
function rescuedWarning({ rescuedCells }: WrittenRecords, streams: readonly EventStream[]): string | undefined {
  if (rescuedCells.size === 0) return undefined;
  const counts = [...rescuedCells].map(([name, count]) => `${name} (${count})`).join(', ');
  const streamsWithout = streams.filter(({ recordStream }) => !hasRescued(recordStream));
  const whereTextIs =
    streamsWithout.length === 0
      ? 'their text is in _rescued'
      : `their text is not sent, as the catalog lacks _rescued of ${streamsWithout.map(({ name }) => name).join(', ')}`;
  return `cells that do not fit the configured types are null, ${whereTextIs}: ${counts}.`;
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
