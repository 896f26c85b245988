import { addDays, dayAt } from '../../base/days.ts';
import { editHeader } from '../../cells/columns/column-edits.ts';
import type { ColumnScan } from '../../cells/columns/column-scan.ts';
import {
  type ColumnGroup,
  EVENT_NAME_ALTERNATIVE,
  type HeaderColumn,
  headerColumns,
  KNOWN_COLUMNS,
  nfc,
} from '../../cells/columns/groups.ts';
import type { ColumnType } from '../../cells/types/type.ts';
import { parseSourceConfig, type SourceConfig } from '../../config/source.ts';
import { filtersOf } from '../../extract/export-request.ts';
import { oldestDay } from '../../extract/plan/calendar.ts';
import { sampleColumns, sampledDays } from '../../extract/sample.ts';
import { type ExtractDeps, editsOf, extractDeps, openExportClient } from '../../extract/session.ts';
import { exportHeader } from '../../service/export/header.ts';
import { compareBytes } from '../../table/names.ts';
import { type DiscoverVerb, openConfig } from '../protocol/connector.ts';
import { profileColumns } from './profiles-stream.ts';
import { profilesStream, streamsOf } from './schemas.ts';

/** Longest wait for the quota (ms): who configures a connection waits for its schema. */
const MAX_WAIT_MS = 30_000;

export const discover: DiscoverVerb = async (value, context) => {
  const config = openConfig(parseSourceConfig(value, context.env), context);
  const service = openExportClient(config, context, { maxWaitMs: MAX_WAIT_MS });
  try {
    const deps = extractDeps(config, service, context);
    const asInstants = config.timezone !== undefined;
    const streams = streamsOf(await discoverColumns(config, deps), asInstants);
    if (!config.userProfiles) return { type: 'CATALOG', catalog: { streams } };
    const profiles = profilesStream(await profileColumns(config, service, deps), asInstants);
    return { type: 'CATALOG', catalog: { streams: [...streams, profiles] } };
  } finally {
    await service.close();
  }
};

/** One column of the history, as `discover` finds it: the pinned schema of the command line is a list of these. */
export interface DiscoveredColumn {
  /** The name as the export writes it; the event name's is `df_event_name` always. */
  readonly source: string;
  readonly group: ColumnGroup;
  readonly type: ColumnType;
}

/**
 * Every column of the history with its type, in the byte order of the names. Costs two exports: the header of all days
 * that can be exported, and every cell of the last three days that are over. A custom column that is empty in these is
 * text; `column_types` overrides. Throws a UserError.
 */
export async function discoverColumns(config: SourceConfig, deps: ExtractDeps): Promise<DiscoveredColumn[]> {
  const now = deps.clock.now();
  const { first, last } = sampledDays(config, now);
  // The first day that every service still exports, and the last that has begun everywhere.
  const [from, to] = [addDays(oldestDay(now, config.historyDays), 1), dayAt(now, -12)];
  deps.logger.info(
    'discover.cost',
    `Discovery sends two exports: the header of ${from} to ${to}, and ${first} to ${last} for the types.`,
  );
  const whole = await exportHeader({ ...filtersOf(config), from, to }, deps);
  if (whole === undefined) {
    const why =
      `The service does not export the whole of ${from} to ${to} (history_days) at once: columns that ` +
      `are missing from ${first} to ${last} are not known.`;
    deps.logger.warn('discover.partial', why);
  }
  return joined(whole ?? [], await sampleColumns(config, deps), config);
}

function joined(whole: readonly string[], scans: readonly ColumnScan[], config: SourceConfig): DiscoveredColumn[] {
  const edits = editsOf(config);
  const kept = edits && editHeader(whole, edits).kept;
  const header = kept?.map(({ name }) => name) ?? whole;
  const sampled = headerColumns(scans.map((scan) => scan.source));
  const types = new Map(sampled.map(({ key }, i) => [key, scans[i].type]));
  const columns = [...headerColumns(header), ...sampled, ...headerColumns(standardNames(config))];
  const byKey = new Map(columns.map((column): [string, HeaderColumn] => [column.key, column]));
  return [...byKey.values()]
    .sort((a, b) => compareBytes(a.source, b.source) || a.occurrence - b.occurrence)
    .map(({ key, source, group, declared }) => ({
      source,
      group,
      type: edits?.hash.has(nfc(source))
        ? 'string'
        : (config.columnTypes.get(nfc(source)) ?? declared ?? types.get(key) ?? 'string'),
    }));
}

/** The columns that the service defines, as far as the configured filter includes them. */
function standardNames({ properties, propertiesCondition: condition, columnsDrop }: SourceConfig): string[] {
  const listed = new Set(properties);
  const isLetThrough = (name: string) =>
    condition === 'all' || listed.size === 0 || listed.has(name) === (condition === 'include');
  return [...KNOWN_COLUMNS.values()]
    .filter(
      (column) =>
        column.name !== EVENT_NAME_ALTERNATIVE &&
        !columnsDrop.includes(column.name) &&
        (column.required || isLetThrough(column.name)),
    )
    .map((column) => column.name);
}
