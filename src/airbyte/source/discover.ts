import { UserError } from '../../base/errors.ts';
import { EXTERNAL_ID, headerColumns, LOG_ID, nfc, SERVER_DATETIME, UNIFIED_ID } from '../../cells/columns/groups.ts';
import type { ColumnType } from '../../cells/types/codec.ts';
import { TYPES } from '../../cells/types/types.ts';
import { parseSourceConfig, type SourceConfig } from '../../config/source.ts';
import { discoverColumns } from '../../extract/discover.ts';
import { type ExtractDeps, extractDeps, openExportClient } from '../../extract/extract-deps.ts';
import { TimeLimitReached, withinTime } from '../../http/time-limit.ts';
import { ALL_PROPERTIES, downloadProfiles, type ProfileService } from '../../service/export/profiles.ts';
import { ITEM_POSITION } from '../../table/names.ts';
import type { DiscoverVerb } from '../protocol/connector.ts';
import type { AirbyteStream } from '../protocol/messages.ts';
import { openConfig } from '../protocol/open-config.ts';
import { discoveredNames } from '../records/property-names.ts';
import { EVENT_STREAMS, KEY, PROFILE_STREAM, RESCUED, type StreamName } from '../records/streams.ts';

/** Who configures a connection waits for its schema: longest wait for the quota, and for all profiles (ms). */
const MAX_WAIT_MS = 30_000;
const MAX_PROFILES_MS = 120_000;

/** The verb `discover`: the streams with their schemas. Costs two exports, and one more with user profiles. */
export const discover: DiscoverVerb = async (rawConfig, context) => {
  const config = openConfig(parseSourceConfig(rawConfig, context.env), context);
  const service = openExportClient(config, context, { maxWaitMs: MAX_WAIT_MS });
  try {
    const deps = extractDeps(config, service, context);
    const hasZone = config.timezone !== undefined;
    const streams = eventStreams(await discoverColumns(config, deps), hasZone);
    if (config.userProfiles) {
      streams.push(profileStream(await discoverProfileColumns(config, service, deps), hasZone));
    }
    return { type: 'CATALOG', catalog: { streams } };
  } finally {
    await service.close();
  }
};

interface TypedColumn {
  readonly source: string;
  readonly type: ColumnType;
}

const ID_COLUMNS: readonly TypedColumn[] = [UNIFIED_ID, EXTERNAL_ID].map((source) => ({ source, type: 'string' }));

/**
 * The columns of the export of profiles, with the types of all cells. If the export fails, or takes longer than two
 * minutes, the ids alone.
 */
async function discoverProfileColumns(
  { columnTypes }: SourceConfig,
  service: ProfileService,
  { timezone, edits, clock, random, logger, signal }: ExtractDeps,
): Promise<readonly TypedColumn[]> {
  const warn = (why: string) =>
    logger.warn('discover.profiles', `The columns of ${PROFILE_STREAM} but for the ids are not known: ${why}`);
  try {
    const result = await withinTime(MAX_PROFILES_MS, { clock, signal }, (timeLimit) =>
      downloadProfiles(ALL_PROPERTIES, {
        service,
        clock,
        random,
        logger,
        signal: timeLimit,
        open: () => ({ write() {} }),
        scan: { timezone, edits, idColumn: UNIFIED_ID },
      }),
    );
    if (result.kind === 'checked') {
      const columns = result.scan.columns.map(({ name: source, type = 'string' }) => ({
        source,
        type: columnTypes.get(nfc(source)) ?? type,
      }));
      const ids = new Set(ID_COLUMNS.map(({ source }) => source));
      return [...ID_COLUMNS, ...columns.filter(({ source }) => !ids.has(source))];
    }
    warn(result.message);
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof TimeLimitReached) && !(error instanceof UserError)) throw error;
    warn(error.message);
  }
  return ID_COLUMNS;
}

const PRIMARY_KEY = {
  events: KEY,
  event_logs: LOG_ID,
  event_items: KEY,
  user_profiles: UNIFIED_ID,
} as const satisfies Record<StreamName, string>;

/** The streams of events with these columns. `hasZone`: datetimes are instants. */
export function eventStreams(columns: readonly TypedColumn[], hasZone: boolean): AirbyteStream[] {
  return EVENT_STREAMS.map((name) => ({
    ...streamOf(name, columns, hasZone),
    supported_sync_modes: ['full_refresh', 'incremental'],
    source_defined_cursor: true,
    default_cursor_field: [SERVER_DATETIME],
    is_resumable: true,
  }));
}

/** The stream of profiles with these columns: a snapshot, which each sync sends whole. */
const profileStream = (columns: readonly TypedColumn[], hasZone: boolean): AirbyteStream => ({
  ...streamOf(PROFILE_STREAM, columns, hasZone),
  supported_sync_modes: ['full_refresh'],
  is_resumable: false,
});

function streamOf(name: StreamName, columns: readonly TypedColumn[], hasZone: boolean) {
  const names = discoveredNames(name, headerColumns(columns.map((column) => column.source)));
  const properties = columns.flatMap((column, i) => {
    const property = names[i];
    return property === undefined ? [] : [[property.name, schemaOf(column, property.isHashed, hasZone)]];
  });
  return {
    name,
    json_schema: {
      $schema: 'http://json-schema.org/draft-07/schema#',
      type: 'object',
      additionalProperties: true,
      properties: Object.fromEntries([...ownProperties(name), ...properties]),
    },
    source_defined_primary_key: [[PRIMARY_KEY[name]]],
  };
}

/** The schema of a property. If its name got a hash, a description names the column of the export. */
function schemaOf({ source, type }: TypedColumn, isHashed: boolean, hasZone: boolean): object {
  const schema = TYPES[type].jsonSchema(hasZone);
  if (!isHashed) return schema;
  const description = `Column ${JSON.stringify(source)} of the export: another has this name, in upper or lower case.`;
  return { ...schema, description };
}

function ownProperties(stream: StreamName): [string, object][] {
  const rescued: [string, object] = [
    RESCUED,
    {
      type: ['object', 'null'],
      additionalProperties: true,
      description: 'Raw text of the cells that did not fit their type, by the name of their column.',
    },
  ];
  if (stream === 'event_logs') return [rescued];
  const id = stream === PROFILE_STREAM ? 'unified id' : 'detail log id';
  const description = `Key of the row: its ${id}, numbered where that repeats.`;
  const key: [string, object] = [KEY, { ...TYPES.string.jsonSchema(false), description }];
  if (stream === 'events' || stream === PROFILE_STREAM) return [key, rescued];
  const position = 'Position of the item in its event, as exported.';
  return [key, rescued, [ITEM_POSITION, { ...TYPES.long.jsonSchema(false), description: position }]];
}
