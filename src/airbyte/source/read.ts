import { parseSourceConfig } from '../../config/source.ts';
import { suppressionOf } from '../../erasure/suppression.ts';
import type { DayDownload } from '../../extract/checked-day.ts';
import { extractDeps, openExportClient } from '../../extract/extract-deps.ts';
import { loadSnapshot, profileFilters } from '../../extract/profile-snapshot.ts';
import type { ReadVerb } from '../protocol/connector.ts';
import { openConfig } from '../protocol/open-config.ts';
import { recordStream } from '../records/record-plan.ts';
import { writeRecords } from '../records/record-writer.ts';
import { PROFILE_STREAM } from '../records/streams.ts';
import { Heartbeat } from './heartbeat.ts';
import type { ReadDeps } from './read-deps.ts';
import { readEvents } from './read-events.ts';
import { StreamOutput } from './stream-output.ts';

/** The verb `read`: the profiles, then the days of all streams of events. */
export const read: ReadVerb = async (rawConfig, catalog, saved, context) => {
  const config = openConfig(parseSourceConfig(rawConfig, context.env), context);
  const outputs = catalog.streams.map((stream) => new StreamOutput(stream, context));
  const heartbeat = new Heartbeat(context.clock, (waitEnd) => {
    // Nobody waits for these writes: if one fails, the next write of a record does, too.
    for (const output of outputs) if (output.isRunning) output.beat(waitEnd).catch(() => {});
  });
  const service = openExportClient(config, context, { onWait: heartbeat.setWaitEnd });
  try {
    const extract = extractDeps(config, service, context, suppressionOf(config));
    const deps = { ...extract, config, heartbeat, writer: context.writer };
    const profileOutput = outputs.find(({ configured: { descriptor } }) => {
      const isProfileStream = descriptor.namespace === undefined && descriptor.name === PROFILE_STREAM;
      return config.userProfiles && isProfileStream;
    });
    if (profileOutput !== undefined) await readProfiles(profileOutput, deps);
    const eventOutputs = outputs.filter((output) => output !== profileOutput);
    await readEvents(eventOutputs, saved, deps);
  } catch (error) {
    // After a stop, or with a closed stdout, the first error is the one to report.
    for (const output of outputs) if (output.isRunning) await output.writeStatus('INCOMPLETE').catch(() => {});
    throw error;
  } finally {
    await service.close();
  }
  throwFailures(outputs);
};

/**
 * Reads all profiles by one export, whatever the sync mode: PyAirbyte asks every stream for increments. Throws for a
 * stop, and for defects.
 */
async function readProfiles(output: StreamOutput, deps: ReadDeps): Promise<void> {
  const { config, writer, clock, signal, heartbeat } = deps;
  const write = async (snapshot: DayDownload) => {
    await output.writeStatus('RUNNING');
    const options = { timezone: config.timezone, emittedAt: clock.now(), signal };
    const streams = [recordStream(PROFILE_STREAM, output.configured)];
    const { recordCounts } = await writeRecords(snapshot, streams, (bytes) => writer.writeBytes(bytes), options);
    const { requested_at, filters } = snapshot.receipt;
    await output.writeState({ version: 1, requested_at, filters }, recordCounts.get(PROFILE_STREAM) ?? 0);
  };
  await output.writeStatus('STARTED');
  try {
    const due = { stored: undefined, filters: profileFilters(config) };
    const failure = await heartbeat.beatWhile(loadSnapshot(due, deps, write));
    if (failure !== undefined) throw failure;
    await output.writeStatus('COMPLETE');
  } catch (error) {
    await output.fail(error);
  }
}

/** Some readers look at the exit code alone, so one failed stream fails the run. The first failure says what to do. */
function throwFailures(outputs: readonly StreamOutput[]): void {
  const failed = outputs.filter(({ failure }) => failure !== undefined);
  const first = failed[0]?.failure;
  if (first === undefined) return;
  const names = failed.map(({ configured }) => configured.descriptor.name).join(', ');
  const message = `${failed.length} of ${outputs.length} streams could not be read to the end (${names}): `;
  throw first.with({ message: message + first.platformMessage });
}
