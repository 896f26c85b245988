import { parseSourceConfig } from '../../config/source.ts';
import { suppressionOf } from '../../erasure/suppression.ts';
import { extractDeps, openExportClient } from '../../extract/extract-deps.ts';
import type { ReadVerb } from '../protocol/connector.ts';
import { openConfig } from '../protocol/open-config.ts';
import { PROFILE_STREAM } from '../records/streams.ts';
import { Heartbeat } from './heartbeat.ts';
import { readEvents } from './read-events.ts';
import { readProfiles } from './read-profiles.ts';
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

/** Some readers look at the exit code alone, so one failed stream fails the run. The first failure says what to do. */
function throwFailures(outputs: readonly StreamOutput[]): void {
  const failed = outputs.filter(({ failure }) => failure !== undefined);
  const first = failed[0]?.failure;
  if (first === undefined) return;
  const names = failed.map(({ configured }) => configured.descriptor.name).join(', ');
  const message = `${failed.length} of ${outputs.length} streams could not be read to the end (${names}): `;
  throw first.with({ message: message + first.platformMessage });
}
