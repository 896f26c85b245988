import { transientError, UserError } from '../../base/errors.ts';
import { createLogger, type Logger, type LogSink } from '../../base/log.ts';
import { parseSourceConfig, type SourceConfig } from '../../config/source.ts';
import { SuppressionList } from '../../erasure/suppression-list.ts';
import type { CheckedDay } from '../../extract/checked-day.ts';
import type { DayResult } from '../../extract/download/day-download.ts';
import { DownloadQueue } from '../../extract/download/download-queue.ts';
import { type ExtractDeps, extractDeps } from '../../extract/extract-deps.ts';
import { loadSnapshot } from '../../extract/profile-snapshot.ts';
import { removeFiles } from '../../extract/spool.ts';
import { logNotes } from '../../extract/which-days.ts';
import { openExportClient } from '../../service/export/client.ts';
import { EVENTS, type Table, USER_PROFILES } from '../../table/tables.ts';
import { type SavedStates, streamKey } from '../protocol/catalog-and-states.ts';
import { readConfig, type Verb } from '../protocol/connector.ts';
import type { MessageWriter } from '../protocol/message-writer.ts';
import { writeRecords } from '../records/record-writer.ts';
import { PROFILE_STREAM, type StreamSchemas } from '../records/streams.ts';
import { Heartbeat } from './heartbeat.ts';
import { StreamOutput } from './stream-output.ts';
import { planStream, requireUsableSchema } from './stream-plans.ts';
import { StreamProgress } from './stream-progress.ts';

interface ReadDeps extends ExtractDeps {
  readonly config: SourceConfig;
  readonly writer: MessageWriter;
  readonly heartbeat: Heartbeat;
}

/** The verb `read`: the profiles, then the days of all streams of events. */
export const read: Verb = async (context) => {
  const config = readConfig(parseSourceConfig, context);
  const outputs = context.catalog.map((configuredStream) => new StreamOutput(configuredStream, context));
  const heartbeat = new Heartbeat(context.clock, (waitingUntil) => {
    // Nobody waits for these writes: if one fails, the next write of a record does, too.
    for (const output of outputs) if (output.isRunning) output.beat(waitingUntil).catch(() => {});
  });
  const service = openExportClient(config, context, { onWait: heartbeat.setWaitingUntil });
  try {
    const suppression = SuppressionList.of(config)?.readFilter(config);
    const deps = { ...extractDeps(config, service, context, suppression), config, heartbeat, writer: context.writer };
    for (const output of outputs) await output.writeStatus('STARTED');
    const profileOutput = config.userProfiles ? outputs.find(isOfProfiles) : undefined;
    if (profileOutput !== undefined) await readProfiles(profileOutput, deps);
    const eventOutputs = outputs.filter((output) => output !== profileOutput);
    await readEvents(eventOutputs, context.states, deps);
  } catch (error) {
    // The write fails if stdout is closed. Then this error, which came first, is the one to report.
    for (const output of outputs) if (output.isRunning) await output.writeStatus('INCOMPLETE').catch(() => {});
    throw error;
  } finally {
    await service.close();
  }
  throwFailures(outputs);
};

const isOfProfiles = ({ descriptor: { name, namespace } }: StreamOutput): boolean =>
  name === PROFILE_STREAM && namespace === undefined;

/**
 * Reads all profiles by one export, whatever the sync mode: PyAirbyte asks every stream for increments. Throws for a
 * stop, and for defects.
 */
async function readProfiles(output: StreamOutput, deps: ReadDeps): Promise<void> {
  const write = (snapshot: CheckedDay) => writeProfiles(snapshot, output, deps);
  try {
    requireUsableSchema(PROFILE_STREAM, output.configuredStream, deps.config);
    // It beats between records, too: without a state before them, a beat is a status alone.
    await deps.heartbeat.beatWhile(loadSnapshot(undefined, deps.config, deps, write));
    await output.writeStatus('COMPLETE');
  } catch (error) {
    await output.failOrThrow(error);
  }
}

async function writeProfiles(snapshot: CheckedDay, output: StreamOutput, deps: ReadDeps): Promise<void> {
  const { day, requested_at, filters, rows } = snapshot.receipt;
  if (rows === 0) {
    const remedy = 'Run again later; leave the stream out if the service has no profiles.';
    throw transientError(`The export of profiles has no row: the destination keeps its profiles. ${remedy}`);
  }
  await output.writeStatus('RUNNING');
  const [stats] = await writeDay(snapshot, USER_PROFILES, [{ name: PROFILE_STREAM, schemas: output.schemas }], deps);
  output.logStats(day, stats);
  await output.writeState({ version: 1, requested_at, filters }, stats.recordCount);
}

/**
 * Plans and starts the streams of events, and reads each day once for all of them. A failure ends its stream. Throws for
 * a stop, and for defects.
 */
async function readEvents(outputs: readonly StreamOutput[], states: SavedStates, deps: ReadDeps): Promise<void> {
  const logger = withoutRepeats(deps.logger);
  const now = deps.clock.now();
  const streams: StreamProgress[] = [];
  for (const output of outputs) {
    const state = states.get(streamKey(output.descriptor));
    try {
      const plan = planStream(output.configuredStream, state, deps.config, now);
      streams.push(new StreamProgress(output, plan, { ...deps, logger }));
    } catch (error) {
      await output.failOrThrow(error);
    }
  }
  for (const stream of streams) await stream.start();
  for (const { plan } of streams) logNotes(plan, logger);
  try {
    if (streams.some(isRunning)) await deliverDays(streams, deps);
  } catch (error) {
    // Once all streams have ended, no stream is left that could be told of the failure.
    if (!streams.some(isRunning)) throw error;
    for (const stream of streams.filter(isRunning)) await stream.failOrThrow(error);
  }
}

/** Downloads the days and delivers them in order, as long as a stream wants more. */
async function deliverDays(streams: readonly StreamProgress[], deps: ReadDeps): Promise<void> {
  const plans = streams.map(({ plan }) => plan);
  const downloads = await DownloadQueue.open(plans, deps);
  try {
    const dayResults = downloads.dayResults();
    while (streams.some(isRunning)) {
      const nextResult = await deps.heartbeat.beatWhile(dayResults.next());
      if (nextResult.done === true) break;
      await deliverDay(nextResult.value, streams, deps);
    }
  } finally {
    await downloads.close();
  }
}

/**
 * Delivers the result of the next day to those of `streams` that read it. They get its records, in one pass for all.
 * Behind them comes the state of each, and COMPLETE behind its last day. Removes the files of the day.
 */
async function deliverDay(result: DayResult, streams: readonly StreamProgress[], deps: ReadDeps): Promise<void> {
  const readers = streams.filter(({ output, plan }) => output.isRunning && plan.days.includes(result.day));
  const recipients: StreamProgress[] = [];
  for (const stream of readers) if (await stream.accept(result)) recipients.push(stream);
  if (result.kind === 'downloaded') {
    const { checkedDay } = result;
    const schemas = recipients.map(({ plan, output }) => ({ name: plan.name, schemas: output.schemas }));
    const stats = await writeDay(checkedDay, EVENTS, schemas, deps);
    for (const [i, stream] of recipients.entries()) await stream.finishDay(checkedDay.receipt, stats[i]);
    await removeFiles(checkedDay.files);
  }
  for (const stream of readers)
    if (stream.plan.days.at(-1) === result.day && isRunning(stream)) await stream.complete();
}

const isRunning = ({ output }: StreamProgress): boolean => output.isRunning;

function writeDay(day: CheckedDay, table: Table, streams: readonly StreamSchemas[], deps: ReadDeps) {
  const { config, writer, clock, signal } = deps;
  const options = { table, timezone: config.timezone, emittedAt: clock.now(), signal };
  return writeRecords(day, streams, (lines) => writer.queueAndDrain(lines), options);
}

/** A logger that logs each message once: streams that read the same days warn of the same things. */
function withoutRepeats(logger: Logger): Logger {
  const logged = new Set<string>();
  const logOnce: LogSink = ({ level, event, message, fields }) => {
    if (!logged.has(message)) logger[level](event, message, fields);
    logged.add(message);
  };
  return createLogger(logOnce, 'debug', (text) => text);
}

/** Some readers look at the exit code alone, so one failed stream fails the run. The first failure says what to do. */
function throwFailures(outputs: readonly StreamOutput[]): void {
  const failedOutputs = outputs.filter((output) => output.failure !== undefined);
  const failure = failedOutputs[0]?.failure;
  if (failure === undefined) return;
  const names = failedOutputs.map(({ descriptor }) => descriptor.name).join(', ');
  const message = `${failedOutputs.length} of ${outputs.length} streams could not be read to the end (${names}): `;
  const { kind, detail, where } = failure;
  throw new UserError(kind, message + failure.platformMessage, { detail, where, cause: failure });
}
