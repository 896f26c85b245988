import { UNIFIED_ID } from '../../cells/columns/groups.ts';
import type { DayDownload } from '../../extract/checked-day.ts';
import { loadSnapshot, profileFilters } from '../../extract/profile-snapshot.ts';
import { recordStream } from '../records/record-plan.ts';
import { writeRecords } from '../records/record-writer.ts';
import { PROFILE_STREAM } from '../records/streams.ts';
import type { ReadDeps } from './read-deps.ts';
import type { StreamOutput } from './stream-output.ts';

/**
 * Reads all profiles by one export, whatever the sync mode: PyAirbyte asks every stream for increments. Throws for a
 * stop, and for defects.
 */
export async function readProfiles(output: StreamOutput, deps: ReadDeps): Promise<void> {
  const { config, writer, clock, signal, heartbeat } = deps;
  const write = async (snapshot: DayDownload) => {
    await output.writeStatus('RUNNING');
    const options = { timezone: config.timezone, emittedAt: clock.now(), signal, idColumn: UNIFIED_ID };
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
