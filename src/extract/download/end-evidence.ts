import { daysBetween } from '../../base/days.ts';
import { HOUR_MS } from '../../base/durations.ts';
import type { ColumnScan } from '../../schema/scan.ts';
import type { Download } from './download.ts';
import type { Run } from './run.ts';

// What the rows of an export show of its days. Two rows are apart only if they are in every datetime system column that has
// values: in whichever of them the service selects, an end that is not included, or that means midnight (server BETWEEN 'D' AND
// 'D'), leaves an instant of that day at most; the columns that it does not select on may show hours all the same.

/** Less than the shortest day, which has 23 hours. */
const NEARLY_A_DAY_MS = 22 * HOUR_MS;
const EVENT_DATETIME = 'df_event_datetime';
const DATETIMES = new Set(['df_server_datetime', 'df_correction_datetime', EVENT_DATETIME]);

/** Without `df_event_datetime`, the one such column that can be dropped, nothing is proved. */
export const canProve = ({ deps }: Run): boolean => deps.options.edits?.drop.has(EVENT_DATETIME) !== true;

/** True if the export of a single day has rows an hour apart: it contains more of the day than an instant. */
export const provesSingleDays = (run: Run, { files }: Download): boolean =>
  canProve(run) && files.some(({ scan }) => spans(scan.columns, 1));

/** True if the export of several days has rows so far apart that some are of its last day: a day has 25 hours at most. */
export const provesRange = (run: Run, { from, to, files }: Download): boolean =>
  canProve(run) && from < to && files.some(({ scan }) => spans(scan.columns, daysBetween(from, to) * 24 + 2));

/** True when every datetime system column that has values, one at least, shows rows that many hours or more apart. */
export function spans(columns: readonly ColumnScan[], hours: number): boolean {
  const filled = filledDatetimes(columns);
  return filled.length > 0 && filled.every(({ first, last }) => msOf(last) - msOf(first) >= hours * HOUR_MS);
}

/** True when in no datetime system column a whole day fits between the last row of one download and the first of the other. */
export function followsClosely(before: Download, after: Download): boolean {
  const scansOf = ({ files }: Download, source: string) =>
    files.flatMap(({ scan }) => filledDatetimes(scan.columns).filter((column) => column.source === source));
  const gaps = [...DATETIMES].flatMap((source) => {
    const last = scansOf(before, source).map((column) => msOf(column.last));
    const first = scansOf(after, source).map((column) => msOf(column.first));
    return last.length + first.length === 0 ? [] : [Math.min(...first) - Math.max(...last)];
  });
  return gaps.length > 0 && gaps.every((gap) => gap < NEARLY_A_DAY_MS);
}

const filledDatetimes = (columns: readonly ColumnScan[]): ColumnScan[] =>
  columns.filter(({ source, type }) => DATETIMES.has(source) && type !== undefined);

/** Milliseconds of an ISO text without a zone; micros are cut. NaN for none, which no comparison holds for. */
const msOf = (text: string | undefined): number =>
  text === undefined ? Number.NaN : Date.parse(`${text.slice(0, 23)}Z`);
