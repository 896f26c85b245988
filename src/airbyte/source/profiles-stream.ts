import { UserError } from '../../base/errors.ts';
import { EXTERNAL_ID, UNIFIED_ID } from '../../cells/columns/groups.ts';
import type { SourceConfig } from '../../config/source.ts';
import { suppressionOf } from '../../erasure/suppression.ts';
import { loadSnapshot, profileFilters } from '../../extract/profiles.ts';
import type { DayDownload } from '../../extract/receipt.ts';
import { type ExtractDeps, extractDeps, openExportClient } from '../../extract/session.ts';
import { ALL_PROPERTIES, downloadProfiles, type ProfileService } from '../../service/export/profiles.ts';
import { TimeLimitReached, withinTime } from '../../service/http/abort.ts';
import type { VerbContext } from '../protocol/connector.ts';
import type { ConfiguredStream } from '../protocol/input.ts';
import { streamState, traceOf } from '../protocol/messages.ts';
import { USER_PROFILES } from '../records/property-names.ts';
import { writeRecords } from '../records/record-writer.ts';
import { recordsOf, writeStatus } from './event-stream.ts';
import { Heartbeat } from './heartbeat.ts';
import type { TypedColumn } from './schemas.ts';

/** Who configures a connection waits for its schema (ms). */
const MAX_DISCOVER_MS = 120_000;
const IDS: readonly TypedColumn[] = [UNIFIED_ID, EXTERNAL_ID].map((source) => ({ source, type: 'string' }));

/**
 * The columns of the export of profiles, with the types of all cells; the ids alone if it takes longer than two minutes,
 * or fails.
 */
export async function profileColumns(
  { columnTypes }: SourceConfig,
  service: ProfileService,
  { timezone, edits, clock, random, logger, signal }: ExtractDeps,
): Promise<readonly TypedColumn[]> {
  const warn = (why: string) =>
    logger.warn('discover.profiles', `The columns of ${USER_PROFILES} but for the ids are not known: ${why}`);
  try {
    const result = await withinTime(MAX_DISCOVER_MS, { clock, signal }, (limited) =>
      downloadProfiles(ALL_PROPERTIES, {
        ...{ service, clock, random, logger, signal: limited },
        open: () => ({ write() {} }),
        scan: { timezone, edits, idColumn: UNIFIED_ID },
      }),
    );
    if (result.kind === 'checked') {
      const columns = result.scan.columns.map(({ source, type = 'string' }) => ({
        source,
        type: columnTypes.get(source) ?? type,
      }));
      const ids = new Set(IDS.map(({ source }) => source));
      return [...IDS, ...columns.filter(({ source }) => !ids.has(source))];
    }
    warn(result.message);
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof TimeLimitReached) && !(error instanceof UserError)) throw error;
    warn(error.message);
  }
  return IDS;
}

/**
 * Reads the stream of profiles by one export: always all of them, also for a client such as PyAirbyte, which asks every
 * stream for increments. Returns why it failed. Throws for a stop, and for defects.
 */
export async function readProfiles(
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
    const deps = { ...extractDeps(config, service, context, suppressionOf(config)), profiles: service };
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
