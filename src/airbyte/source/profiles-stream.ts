import { UserError } from '../../base/errors.ts';
import { UNIFIED_ID } from '../../cells/columns/groups.ts';
import type { SourceConfig } from '../../config/source.ts';
import { loadSnapshot, profileFilters } from '../../extract/profiles.ts';
import type { DayDownload } from '../../extract/receipt.ts';
import type { ConfiguredStream } from '../protocol/catalog-and-states.ts';
import type { VerbContext } from '../protocol/connector.ts';
import { type StreamStatus, streamState, streamStatus } from '../protocol/messages.ts';
import { USER_PROFILES } from '../records/property-names.ts';
import { recordStream } from '../records/record-plan.ts';
import { writeRecords } from '../records/record-writer.ts';
import { withService } from './heartbeat.ts';
import type { StreamFailures } from './stream-failures.ts';

/**
 * Reads all profiles by one export. So it does for a client that asks every stream for increments, such as PyAirbyte.
 * A failure is added to `failures`. Throws for a stop, and for defects.
 */
export async function readProfiles(
  stream: ConfiguredStream,
  config: SourceConfig,
  context: VerbContext,
  failures: StreamFailures,
): Promise<void> {
  const { writer, clock, signal } = context;
  const { descriptor } = stream;
  const writeStatus = (status: StreamStatus, until?: number) =>
    writer.write(streamStatus(descriptor, status, clock.now(), until));
  const write = async (snapshot: DayDownload) => {
    await writeStatus('RUNNING');
    const options = { timezone: config.timezone, emittedAt: clock.now(), signal, idColumn: UNIFIED_ID };
    const streams = [recordStream(USER_PROFILES, stream)];
    const { records } = await writeRecords(snapshot, streams, (bytes) => writer.writeBytes(bytes), options);
    const { requested_at, filters } = snapshot.receipt;
    const count = records.get(USER_PROFILES) ?? 0;
    await writer.write(streamState(descriptor, { version: 1, requested_at, filters }, count));
  };
  await writeStatus('STARTED');
  try {
    const beat = (until: number | undefined) => writeStatus('RUNNING', until);
    await withService(config, context, beat, async (deps, heartbeat) => {
      const due = { stored: undefined, filters: profileFilters(config) };
      const failure = await heartbeat.during(loadSnapshot(due, deps, write));
      if (failure !== undefined) throw failure;
    });
  } catch (error) {
    const isFailure = !signal.aborted && error instanceof UserError;
    if (isFailure) await failures.add(USER_PROFILES, error);
    // After a stop, or with a closed stdout, the first error is the one to report.
    await writeStatus('INCOMPLETE').catch(() => {});
    if (isFailure) return;
    throw error;
  }
  await writeStatus('COMPLETE');
}
