import { UNIFIED_ID } from '../../cells/columns/groups.ts';
import type { DayDownload } from '../../extract/checked-day.ts';
import { loadSnapshot, profileFilters } from '../../extract/profile-snapshot.ts';
import { recordStream } from '../records/record-plan.ts';
import { writeRecords } from '../records/record-writer.ts';
import { PROFILE_STREAM } from '../records/streams.ts';
import type { ReadDeps, StreamOutput } from './stream-output.ts';

/**
 * Reads all profiles by one export. So it does for a client that asks every stream for increments, such as PyAirbyte.
 * Throws for a stop, and for defects.
 */
export async function readProfiles(output: StreamOutput, deps: ReadDeps): Promise<void> {
  const { config, writer, clock, signal, heartbeat } = deps;
  const write = async (snapshot: DayDownload) => {
    await output.status('RUNNING');
    const options = { timezone: config.timezone, emittedAt: clock.now(), signal, idColumn: UNIFIED_ID };
    const streams = [recordStream(PROFILE_STREAM, output.configured)];
    const { recordCounts } = await writeRecords(snapshot, streams, (bytes) => writer.writeBytes(bytes), options);
    const { requested_at, filters } = snapshot.receipt;
    await output.state({ version: 1, requested_at, filters }, recordCounts.get(PROFILE_STREAM) ?? 0);
  };
  await output.status('STARTED');
  try {
    const due = { stored: undefined, filters: profileFilters(config) };
    const failure = await heartbeat.during(loadSnapshot(due, deps, write));
    if (failure !== undefined) throw failure;
    await output.status('COMPLETE');
  } catch (error) {
    await output.fail(error);
  }
}
