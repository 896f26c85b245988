import { addDays, type Day } from '../base/days.ts';
import { sentenceOf } from '../base/visible-text.ts';
import { type ColumnEdits, editHeader } from '../cells/columns/column-edits.ts';
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
import { downloadChecked, downloadError } from '../service/export/download.ts';
import { exportHeader } from '../service/export/header.ts';
import { firstToday, lastDayOver, oldestDay } from './calendar.ts';
import { filtersOf, isFilter } from './export-request.ts';
import type { ExtractDeps } from './extract-deps.ts';

/** One column of the history. The pinned schema of the command line is a list of these. */
interface DiscoveredColumn {
  /** The name as the export writes it; the event name's is `df_event_name` always. */
  readonly source: string;
  readonly group: ColumnGroup;
  readonly type: ColumnType;
}

/**
 * Every column of the history with its type, in the byte order of the names. It exports the header of all days. It
 * also exports the last three days that are over, or fewer if the service refuses these. A custom column that is
 * empty in the sample is text; `column_types` overrides. Throws a UserError.
 */
export async function discoverColumns(config: SourceConfig, deps: ExtractDeps): Promise<DiscoveredColumn[]> {
  const now = deps.clock.now();
  const sample = sampleOf(config, now);
  const sampledDays = `${sample.starts[0]} to ${sample.last}`;
  // The first day that every service still exports, and the last that has begun everywhere.
  const [from, to] = [addDays(oldestDay(now, config.historyDays), 1), firstToday(now)];
  deps.logger.info(
    'discover.cost',
    `Discovery sends two exports: the header of ${from} to ${to}, and ${sampledDays} for the types.`,
  );
  const { header, reason } = await exportHeader({ ...filtersOf(config), from, to }, deps);
  if (reason !== undefined) {
    const message =
      `The header of ${from} to ${to} (history_days) was not exported: columns that are missing from ` +
      `${sampledDays} are not known. ${sentenceOf(reason)}`;
    deps.logger.warn('discover.partial', message);
  }
  return joinColumns(header, await scanSample(sample, config, deps), config, deps.edits);
}

/** The columns of a header, of a sample and of the service, each once. */
function joinColumns(
  header: readonly string[],
  scans: readonly ColumnScan[],
  config: SourceConfig,
  edits: ColumnEdits,
): DiscoveredColumn[] {
  const keptHeader = editHeader(header, edits).kept;
  const sampled = headerColumns(scans.map(({ name }) => name));
  const types = new Map(sampled.map(({ key }, i) => [key, scans[i].type]));
  const columns = [...headerColumns(keptHeader), ...sampled, ...headerColumns(standardNames(config))];
  const byKey = new Map(columns.map((column): [string, HeaderColumn] => [column.key, column]));
  return [...byKey.values()]
    .sort((a, b) => compareBytes(a.source, b.source) || a.occurrence - b.occurrence)
    .map(({ key, source, group, declared }) => ({
      source,
      group,
      type: edits.hash.has(nfc(source))
        ? 'string'
        : (config.columnTypes.get(nfc(source)) ?? declared ?? types.get(key) ?? 'string'),
    }));
}

/** The columns that the service defines, as far as the configured filter includes them. */
function standardNames({ properties, propertiesCondition: condition, columnsDrop }: SourceConfig): string[] {
  const listed = new Set(properties);
  const isLetThrough = (name: string) =>
    !isFilter(properties, condition) || listed.has(name) === (condition === 'include');
  return [...KNOWN_COLUMNS.values()]
    .filter(
      (column) =>
        column.name !== EVENT_NAME_ALTERNATIVE &&
        !columnsDrop.includes(column.name) &&
        (column.required || isLetThrough(column.name)),
    )
    .map((column) => column.name);
}

/** The number of days whose cells show the types. */
const SAMPLED_DAYS = 3;

/** The days whose cells show the types. */
interface Sample {
  /** First days, from the longest sample to the shortest: a service may not export so many days at once. */
  readonly starts: readonly Day[];
  readonly last: Day;
  readonly to: Day;
}

/** The last days that are over. One more is asked for while it is not known whether the last one is included. */
function sampleOf({ toDateInclusive }: SourceConfig, now: number): Sample {
  const last = lastDayOver(now);
  const extraDays = toDateInclusive === 'auto' ? 1 : 0;
  const starts = new Set([SAMPLED_DAYS - 1 + extraDays, extraDays, 0].map((days) => addDays(last, -days)));
  return { starts: [...starts], last, to: toDateInclusive === 'false' ? addDays(last, 1) : last };
}

/** The columns of a sample, from all of its cells. Throws a UserError. */
async function scanSample(
  { starts: [first, ...shorter], last, to }: Sample,
  config: SourceConfig,
  deps: ExtractDeps,
): Promise<readonly ColumnScan[]> {
  const { service, timezone, edits } = deps;
  const daysFrom = (from: Day) => (from === last ? from : `${from} to ${last}`);
  const scan = (from: Day) =>
    downloadChecked({
      ...deps,
      label: daysFrom(from),
      send: (signal) => service.exportEvents({ ...filtersOf(config), from, to }, signal),
      open: () => ({ write() {} }),
      scan: { timezone, requireColumns: true, edits },
    });
  let start = first;
  let result = await scan(start);
  for (const from of shorter) {
    if (!['too_large', 'invalid', 'gone'].includes(result.kind)) break;
    start = from;
    result = await scan(start);
  }
  if (result.kind === 'checked') return result.scan.columns;
  if (result.kind === 'empty') return [];
  throw downloadError(daysFrom(start), result);
}
