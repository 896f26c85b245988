import { addDays, type Day } from '../../base/days.ts';
import type { ColumnScan } from '../../cells/columns/column-scanner.ts';
import { CORRECTION_DATETIME, SERVER_DATETIME } from '../../cells/header.ts';
import type { EventRequest } from '../../service/export/export-service.ts';
import { type ExportSettings, keepsColumn } from '../export-settings.ts';
import type { ExtractDeps } from '../extract-deps.ts';
import { removeFiles, type SpooledDownload } from '../spool.ts';

const HOUR_S = 3600;
/** The service may select by this column, the only one of them that a configuration can leave out. */
const EVENT_DATETIME = 'df_event_datetime';
const DATETIME_COLUMNS = new Set([SERVER_DATETIME, CORRECTION_DATETIME, EVENT_DATETIME]);
/** The kinds of a download that another `to_date` may change. */
const MAY_DEPEND_ON_END = new Set<SpooledDownload['kind']>(['checked', 'empty', 'invalid', 'too_large']);

/**
 * Finds out whether an export includes its `to_date`, with four exports of one day D at most, and tells `service`.
 * Returns the download of D under the rule that holds then. Rows prove it only if they have every column by which the
 * service may select.
 *
 *   [D,D] spans an hour                                                       the end is included
 *   [D,D+1] has rows, [D,D] (twice) and [D+1,D+1] were answered without any   the end is excluded
 *   anything else; a refusal is no observation                                nothing is known yet
 */
export async function proveEndDay(
  day: Day,
  download: (overrides: Partial<EventRequest>) => Promise<SpooledDownload>,
  service: ExtractDeps['service'],
  settings: ExportSettings,
): Promise<SpooledDownload> {
  const nextDay = addDays(day, 1);
  const dayAlone = await download({ to: day });
  if (!MAY_DEPEND_ON_END.has(dayAlone.kind)) return dayAlone;
  if (dayAlone.kind === 'checked' && keepsColumn(EVENT_DATETIME, settings) && spansAnHour(dayAlone.scan.columns)) {
    service.learnFromProof(day, true);
    return dayAlone;
  }
  const bothDays = await download({ to: nextDay });
  const singleDays = [dayAlone];
  if (hasNoRows(dayAlone) && bothDays.kind === 'checked' && bothDays.scan.rows > 0) {
    singleDays.push(await download({ from: nextDay, to: nextDay }));
    // The provider may have loaded the rows of D after its first export.
    if (singleDays.every(hasNoRows)) singleDays.push(await download({ to: day }));
    if (singleDays.every(hasNoRows)) service.learnFromProof(day, false);
  }
  for (const singleDay of singleDays) if (singleDay.kind === 'checked') await removeFiles([singleDay.output]);
  return bothDays;
}

/** True for an export without any row; false for another failure. */
const hasNoRows = (download: SpooledDownload): boolean =>
  download.kind === 'checked' ? download.scan.rows === 0 : download.kind === 'empty';

/**
 * True if at least one datetime system column has values, and each that has some spans an hour. One column is not
 * enough: a service may compare it with midnight, and then returns only the rows of that instant.
 */
function spansAnHour(columns: readonly ColumnScan[]): boolean {
  const filled = columns.filter(({ headerName, type }) => DATETIME_COLUMNS.has(headerName) && type !== undefined);
  return filled.length > 0 && filled.every(({ earliestTime, latestTime }) => latestTime - earliestTime >= HOUR_S);
}
