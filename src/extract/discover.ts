import { addDays, type Day, dayAt } from '../base/days.ts';
import { configError, transientError } from '../base/errors.ts';
import { editHeader } from '../cells/columns/column-edits.ts';
import type { ColumnScan } from '../cells/columns/column-scan.ts';
import {
  type ColumnGroup,
  compareBytes,
  EVENT_NAME_ALTERNATIVE,
  type HeaderColumn,
  headerColumns,
  KNOWN_COLUMNS,
  nfc,
} from '../cells/columns/groups.ts';
import type { ColumnType } from '../cells/types/codec.ts';
import type { SourceConfig } from '../config/source.ts';
import { downloadChecked } from '../service/export/download.ts';
import { exportHeader } from '../service/export/header.ts';
import { filtersOf } from './export-request.ts';
import { type ExtractDeps, editsOf } from './extract-deps.ts';
import { lastDayOver, oldestDay } from './plan/calendar.ts';

/** One column of the history, as `discover` finds it: the pinned schema of the command line is a list of these. */
interface DiscoveredColumn {
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
  const header = edits === undefined ? whole : editHeader(whole, edits).kept;
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

/** Number of days whose cells show the types. */
const SAMPLED_DAYS = 3;

/** The last `count` days that are over. One more is asked for while it is not known whether the last is included. */
function sampledDays({ toDateInclusive }: Pick<SourceConfig, 'toDateInclusive'>, now: number, count = SAMPLED_DAYS) {
  const last = lastDayOver(now);
  const first = addDays(last, 1 - count - (toDateInclusive === 'auto' ? 1 : 0));
  return { first, last, to: toDateInclusive === 'false' ? addDays(last, 1) : last };
}

/**
 * The columns of the last days that are over, from all of their cells, by one export. If the service cannot export so
 * many at once, fewer days are asked for, twice at most. Throws a UserError.
 */
async function sampleColumns(config: SourceConfig, deps: ExtractDeps): Promise<readonly ColumnScan[]> {
  const { service, timezone, edits } = deps;
  const now = deps.clock.now();
  const { first, last, to } = sampledDays(config, now);
  const scan = (from: Day) =>
    downloadChecked({
      ...deps,
      label: from === last ? from : `${from} to ${last}`,
      send: (signal) => service.exportEvents({ ...filtersOf(config), from, to }, signal),
      open: () => ({ write() {} }),
      scan: { timezone, requireSystem: true, edits },
    });
  let result = await scan(first);
  for (const from of new Set([sampledDays(config, now, 1).first, last])) {
    if (['retry_or_split', 'invalid', 'gone'].includes(result.kind)) result = await scan(from);
  }
  if (result.kind === 'checked') return result.scan.columns;
  if (result.emptyAs !== undefined) return [];
  const failure = result.kind === 'config' || result.kind === 'unreadable' ? configError : transientError;
  throw failure(`The service does not export ${first} to ${last}: ${result.message}`);
}
