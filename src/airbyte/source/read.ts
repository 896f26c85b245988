import type { UserError } from '../../base/errors.ts';
import { parseSourceConfig } from '../../config/source.ts';
import { suppressionOf } from '../../erasure/suppression.ts';
import { extractDeps, openExportClient } from '../../extract/extract-deps.ts';
import { openConfig, type ReadVerb } from '../protocol/connector.ts';
import { PROFILE_STREAM } from '../records/streams.ts';
import { Heartbeat } from './heartbeat.ts';
import { readEvents } from './read-events.ts';
import { readProfiles } from './read-profiles.ts';
import { StreamOutput } from './stream-output.ts';

/** The verb `read`: the profiles, then the days of all streams of events. */
export const read: ReadVerb = async (value, catalog, saved, context) => {
  const config = openConfig(parseSourceConfig(value, context.env), context);
  const outputs = catalog.streams.map((stream) => new StreamOutput(stream, context));
  const heartbeat = new Heartbeat(context.clock, (waitingUntil) => {
    // Nobody waits for these writes: if one fails, the next write of a record does, too.
    for (const output of outputs) if (output.isRunning) output.beat(waitingUntil).catch(() => {});
  });
  const service = openExportClient(config, context, { onWait: heartbeat.waiting });
  try {
    const extract = extractDeps(config, service, context, suppressionOf(config));
    const deps = { ...extract, config, heartbeat, writer: context.writer };
    const profiles = outputs.find(
      ({ configured: { name, namespace } }) =>
        config.userProfiles && namespace === undefined && name === PROFILE_STREAM,
    );
    if (profiles !== undefined) await readProfiles(profiles, deps);
    const events = outputs.filter((output) => output !== profiles);
    await readEvents(events, saved, deps);
  } catch (error) {
    // After a stop, or with a closed stdout, the first error is the one to report.
    for (const output of outputs) if (output.isRunning) await output.status('INCOMPLETE').catch(() => {});
    throw error;
  } finally {
    await service.close();
  }
  throwFailures(outputs);
};

/** Some readers look at the exit code alone, so one failed stream fails the run. The first failure says what to do. */
function throwFailures(outputs: readonly StreamOutput[]): void {
  const failures: UserError[] = outputs.flatMap(({ failure }) => failure ?? []);
  const [first] = failures;
  if (first === undefined) return;
  const names = outputs.flatMap(({ failure, configured }) => (failure === undefined ? [] : [configured.name]));
  const message =
    `${failures.length} of ${outputs.length} streams could not be read to the end (${names.join(', ')}): ` +
    first.platformMessage;
  throw first.with({ message });
}
