import { transientError, UserError } from '../../base/errors.ts';
import { nfc, sentenceOf } from '../../base/text.ts';
import type { ColumnScan } from '../../cells/columns/column-scanner.ts';
import { EXTERNAL_ID, headerColumns, UNIFIED_ID } from '../../cells/header.ts';
import { codecOf } from '../../cells/types/column-types.ts';
import { type Zone, zoneOf } from '../../cells/types/zone.ts';
import { parseSourceConfig, type SourceConfig } from '../../config/source.ts';
import { type DiscoveredColumn, discoverColumns, discoveredType } from '../../extract/discover-columns.ts';
import { type ExtractDeps, extractDeps } from '../../extract/extract-deps.ts';
import { requireWithin } from '../../http/time-limit.ts';
import { openExportClient } from '../../service/export/client.ts';
import { ALL_PROPERTIES, downloadProfiles } from '../../service/export/profiles.ts';
import { readConfig, type Verb } from '../protocol/connector.ts';
import type { AirbyteStream } from '../protocol/messages.ts';
import { discoveredProperties } from '../records/properties.ts';
import { EVENT_STREAMS, PROFILE_STREAM, STREAMS, type StreamName } from '../records/streams.ts';

/** Longest waits (ms) for the quota, the columns of the events, and all profiles. A platform waits nine minutes. */
const MAX_QUOTA_WAIT_MS = 30_000;
const MAX_EVENTS_MS = 300_000;
const MAX_PROFILES_MS = 120_000;

/** The verb `discover`: the streams with their schemas. Costs two exports, and one more with user profiles. */
export const discover: Verb = async (context) => {
  const config = readConfig(parseSourceConfig, context);
  const service = openExportClient(config, context, { maxWaitMs: MAX_QUOTA_WAIT_MS });
  try {
    const deps = extractDeps(config, service, context);
    const zone = zoneOf(config.timezone);
    const columns = await requireWithin('The columns of the events', MAX_EVENTS_MS, deps, (signal) =>
      discoverColumns(config, { ...deps, signal }),
    );
    const streams = EVENT_STREAMS.map((name) => discoveredStream(name, columns, zone));
    if (config.userProfiles) {
      const profileColumns = await discoverProfileColumns(config, deps);
      streams.push(discoveredStream(PROFILE_STREAM, profileColumns, zone));
    }
    return { type: 'CATALOG', catalog: { streams } };
  } finally {
    await service.close();
  }
};

/** A column by its name in the export, with its type. */
type SchemaColumn = Pick<DiscoveredColumn, 'source' | 'type'>;

const ID_NAMES: readonly string[] = [UNIFIED_ID, EXTERNAL_ID];

/** The columns of the profiles, typed by all cells; the ids alone if the export fails or takes two minutes. */
async function discoverProfileColumns(
  { columnTypes, columnsDrop }: SourceConfig,
  deps: ExtractDeps,
): Promise<readonly SchemaColumn[]> {
  const keptIds = ID_NAMES.filter((name) => !columnsDrop.includes(name));
  const idColumns = keptIds.map((source): SchemaColumn => ({ source, type: 'string' }));
  const isId = ({ headerName, occurrence }: ColumnScan) => occurrence === 1 && ID_NAMES.includes(headerName);
  try {
    const download = await requireWithin('The export', MAX_PROFILES_MS, deps, (signal) =>
      downloadProfiles(ALL_PROPERTIES, { ...deps, signal, openOutput: () => ({ write() {} }) }),
    );
    if (download.kind !== 'checked') throw transientError(sentenceOf(download.clause));
    const attributes = download.scan.columns.filter((scan) => !isId(scan));
    const typeOf = (scan: ColumnScan) => columnTypes.get(nfc(scan.headerName)) ?? discoveredType(scan);
    return [...idColumns, ...attributes.map((scan) => ({ source: scan.headerName, type: typeOf(scan) }))];
  } catch (error) {
    deps.signal.throwIfAborted();
    if (!(error instanceof UserError)) throw error;
    const message = `The columns of ${PROFILE_STREAM} but for the ids are not known: ${error.message}`;
    deps.logger.warn('discover.profiles', message);
    return idColumns;
  }
}

/** A stream of an export with these columns. With a zone datetimes are instants. */
export function discoveredStream(
  name: StreamName,
  columns: readonly SchemaColumn[],
  zone: Zone | undefined,
): AirbyteStream {
  const { addedProperties, primaryKey, syncCapabilities } = STREAMS[name];
  const properties = discoveredProperties(name, headerColumns(columns.map(({ source }) => source)));
  const schemas = properties.map((property) => [property.name, codecOf(columns[property.index].type, zone).jsonSchema]);
  return {
    name,
    json_schema: {
      $schema: 'http://json-schema.org/draft-07/schema#',
      type: 'object',
      additionalProperties: true,
      properties: { ...addedProperties, ...Object.fromEntries(schemas) },
    },
    source_defined_primary_key: [[primaryKey]],
    ...syncCapabilities,
  };
}
