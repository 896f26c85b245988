import { addDays, type Day } from '../base/days.ts';
import { UserError } from '../base/errors.ts';
import { compareUtf8, nfc } from '../base/text.ts';
import { editHeader } from '../cells/columns/column-edits.ts';
import type { ColumnScan } from '../cells/columns/column-scanner.ts';
import { type ColumnGroup, headerColumns, KNOWN_COLUMNS, settingOf } from '../cells/header.ts';
import type { ColumnType } from '../cells/types/column-types.ts';
import { LIST_EMPTY, NULL_TEXT } from '../cells/types/forms.ts';
import type { SourceConfig } from '../config/source.ts';
import { downloadChecked, downloadError } from '../service/export/download.ts';
import { downloadHeader } from '../service/export/export-header.ts';
import { lastDayBegunEverywhere, lastDayOver, oldestExportedDay } from './calendar.ts';
import { editsOf, filtersOf, keepsColumn } from './export-settings.ts';
import type { ExtractDeps } from './extract-deps.ts';

/** The number of days whose cells show the types. */
const SAMPLED_DAYS = 3;

/** One column of the history. The pinned schema of the command line is a list of these. */
export interface DiscoveredColumn {
  /** The name as the export writes it; the event name's is `df_event_name` always. */
  readonly source: string;
  readonly group: ColumnGroup;
  readonly type: ColumnType;
}

/**
 * Every column of the history with its type, in the byte order of the names. It exports the header of `history_days`,
 * and the last three days that are over, or fewer if the service refuses these. A custom column without a value in
 * these is text; `column_types` overrides. Throws a UserError.
 */
export async function discoverColumns(config: SourceConfig, deps: ExtractDeps): Promise<DiscoveredColumn[]> {
  const now = deps.clock.now();
  const lastDay = lastDayOver(now);
  const sampledSpan = `${addDays(lastDay, 1 - SAMPLED_DAYS)} to ${lastDay}`;
  // The first day that every service still exports, and the last that has begun everywhere.
  const [from, to] = [addDays(oldestExportedDay(now, config.historyDays), 1), lastDayBegunEverywhere(now)];
  const costMessage = `Discovery sends two exports, more if the service refuses one: the header of ${from} to ${to}, and ${sampledSpan} for the types.`;
  deps.logger.info('discover.cost', costMessage);
  const header = await downloadHeader({ ...filtersOf(config), from, to }, deps).catch((error: unknown) => {
    if (!(error instanceof UserError && error.kind === 'transient')) throw error;
    const message =
      `The header of ${from} to ${to} (history_days) was not exported: columns that are missing from ` +
      `${sampledSpan} are not known. ${error.message}`;
    deps.logger.warn('discover.partial', message);
    return [];
  });
  const scans = await scanSample(lastDay, config, deps);
  return joinColumns(header, scans, config);
}

/** The type of a column by its cells. Later ones do not widen it: lists without values are taken for lists of texts. */
export const discoveredType = ({ declaredType, forms, type = 'string' }: ColumnScan): ColumnType =>
  declaredType === undefined && (forms & ~NULL_TEXT) === LIST_EMPTY ? 'string[]' : type;

/** The columns of a header, of a sample, and those of the service that the configuration keeps, each once. */
function joinColumns(
  header: readonly string[],
  scans: readonly ColumnScan[],
  config: SourceConfig,
): DiscoveredColumn[] {
  const edits = editsOf(config);
  const scannedTypes = new Map(scans.map((scan) => [scan.key, discoveredType(scan)]));
  const configuredHeader = [...KNOWN_COLUMNS.values()]
    .filter(({ name, required }) => required || keepsColumn(name, config))
    .map(({ name }) => name);
  const keptOfHeader = editHeader(header, edits).columns.filter((column) => column !== undefined);
  // A column may be in several of these lists: the last one counts.
  const columns = [...keptOfHeader, ...scans, ...headerColumns(configuredHeader)];
  const sortedColumns = [...new Map(columns.map((column) => [column.key, column])).values()].sort(
    (a, b) => compareUtf8(a.source, b.source) || a.occurrence - b.occurrence,
  );
  return sortedColumns.map(({ key, source, group, declaredType }) => {
    if (edits.hash.has(nfc(source))) return { source, group, type: 'string' };
    const configuredType = settingOf(config.columnTypes, nfc(source), sortedColumns);
    return { source, group, type: configuredType ?? declaredType ?? scannedTypes.get(key) ?? 'string' };
  });
}

/** The columns of the last days, from all cells; of fewer days if the service refuses them. Throws a UserError. */
async function scanSample(lastDay: Day, config: SourceConfig, deps: ExtractDeps): Promise<readonly ColumnScan[]> {
  const to = config.toDateInclusive === 'false' ? addDays(lastDay, 1) : lastDay;
  for (let dayCount = SAMPLED_DAYS; ; dayCount--) {
    const from = addDays(lastDay, 1 - dayCount);
    const label = from === lastDay ? lastDay : `${from} to ${lastDay}`;
    const download = await downloadChecked({
      ...deps,
      label,
      request: { ...filtersOf(config), from, to },
      openOutput: () => ({ write() {} }),
    });
    if (download.kind === 'checked') return download.scan.columns;
    if (download.kind === 'empty') return [];
    const mayBeTooMany = ['too_large', 'invalid', 'gone'].includes(download.kind);
    if (dayCount === 1 || !mayBeTooMany) throw downloadError(label, download);
  }
}
