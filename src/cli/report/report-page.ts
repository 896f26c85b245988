// This folder: the pages that `report` and `forget --proof` write. Each is a file of HTML without script or request.
// This page shows names of events and columns, counts and dates. It says why runs failed, and shows
// no value of a person.

import { formatMinute, formatSecond } from '../../base/clock.ts';
import { formatBytes, formatCount, formatPercent, withSeparators } from '../../base/quantities.ts';
import { VERSION } from '../../base/version.ts';
import type { ExportedDays } from '../../extract/calendar.ts';
import type { ColumnChange, RunRecord } from '../../table/place-state.ts';
import type { PlaceReport } from '../../targets/contract.ts';
import { dayCalendar, type ReportedDay, reportedDays } from './day-calendar.ts';
import { eventSection } from './events-chart.ts';
import { type Html, html, htmlTable } from './html.ts';
import { pageOf } from './page.ts';
import { REPORT_STYLE } from './report-style.ts';

/** Maximum number of runs, and of column changes, that the page shows: the latest ones. */
const MAX_RECORDS = 100;

/** `placeName`: target and place, as on the command line. `now`: the instant at which the report is made (ms). */
export function reportPage(
  report: PlaceReport,
  { placeName, now, ...exportedDays }: { readonly placeName: string; readonly now: number } & ExportedDays,
): string {
  const days = reportedDays(report, now, exportedDays);
  const content = html`<header>
<h1>Events in ${placeName}</h1>
<p class="quiet">Made at ${new Date(now).toISOString()} by dfinery-elt ${VERSION}. It shows no value of a person.</p>
${keyFigures(report, days)}
</header>
<section><h2>Days</h2>${days.length === 0 ? html`<p>Nothing was loaded yet.</p>` : dayCalendar(days)}</section>
${eventSection(report)}
${runSection(report)}
${columnSection(report)}
${changeSection(report)}`;
  return pageOf(`Events in ${placeName}`, REPORT_STYLE, content);
}

function keyFigures(report: PlaceReport, days: readonly ReportedDay[]): Html {
  const { exportState, timezone } = report.state.events;
  const [snapshot] = report.state.user_profiles?.receipts.values() ?? [];
  const countDays = (state: ReportedDay['state']) => days.filter((day) => day.state === state).length;
  const snapshotText = (rows: number, asOf: string) => `${withSeparators(rows)}, as of ${formatMinute(asOf)} UTC`;
  const figures: Readonly<Record<string, string>> = {
    Rows: withSeparators(report.rows),
    'Newest event': report.lastEventAt === null ? 'none' : `${formatMinute(report.lastEventAt)} ${timezone ?? ''}`,
    ...(snapshot && { 'User profiles': snapshotText(snapshot.rows_stored, snapshot.requested_at) }),
    'Next run starts at': exportState?.from_date ?? 'the first day',
    'Days loaded and over': formatCount(countDays('loaded') + countDays('read-again'), 'day'),
    'Days lost': formatCount(countDays('lost'), 'day'),
    'Soon lost, not loaded': formatCount(countDays('lost-soon'), 'day'),
    Size: formatBytes(report.sizeBytes),
  };
  const entries = Object.entries(figures).map(([term, value]) => html`<div><dt>${term}</dt><dd>${value}</dd></div>`);
  return html`<dl class="figures" style="--columns:${Math.ceil(entries.length / 2)}">${entries}</dl>`;
}

/** The runs that opened the target, the latest first, with what they cost and how they ended. */
function runSection({ runs }: PlaceReport): Html {
  if (runs.length === 0) return html``;
  const failedCount = runs.filter(({ exitCode }) => exitCode !== 0).length;
  const runsText = formatCount(runs.length, 'run');
  const outcomeText = failedCount === 0 ? `${runsText}, none failed` : `${failedCount} of ${runsText} failed`;
  const exports = runs.reduce((sum, run) => sum + run.exports, 0);
  const runTable = htmlTable<RunRecord>(
    'Runs',
    {
      'began (UTC)': ({ began }) => formatSecond(began),
      outcome: ({ exitCode, cause }) => (exitCode === 0 ? 'done' : [`exit ${exitCode}`, cause ?? []].flat().join(': ')),
      rows: ({ rows }) => rows,
      days: (run) => run.days,
      exports: (run) => run.exports,
      received: ({ bytes }) => formatBytes(bytes),
      version: ({ version }) => version,
    },
    runs.slice(-MAX_RECORDS).reverse(),
  );
  return html`<section><h2>Runs</h2>
<p>${outcomeText}; ${formatCount(exports, 'export')} spent.</p>${runTable}</section>`;
}

function columnSection({ columns, rows }: PlaceReport): Html {
  const columnTable = htmlTable(
    'Columns',
    {
      column: ({ name }) => name,
      type: ({ type }) => type ?? 'no value yet',
      filled: ({ filledRows, rescuedCells }) => formatPercent(filledRows + rescuedCells, rows),
      rescued: ({ rescuedCells }) => rescuedCells,
      group: ({ group }) => group.replaceAll('_', ' '),
    },
    columns,
  );
  return html`<section><h2>Columns</h2>${columnTable}</section>`;
}

/** What changed after the first commit, which brought the first columns. */
function changeSection({ state }: PlaceReport): Html {
  const changes = state.events.changes.filter(({ changedAt }) => changedAt !== state.events.changes[0].changedAt);
  if (changes.length === 0) return html``;
  const changeTable = htmlTable<ColumnChange>(
    'Changes of columns',
    {
      'when (UTC)': ({ changedAt }) => formatSecond(changedAt),
      column: ({ sourceName }) => sourceName,
      change: ({ change, fromType, toType }) => `${change} ${fromType === null ? 'as' : `${fromType} →`} ${toType}`,
      day: ({ day }) => day,
    },
    changes.slice(-MAX_RECORDS).reverse(),
  );
  return html`<section><h2>Changes of columns</h2>
<p>${formatCount(changes.length, 'change')} since the first load, the latest first.</p>${changeTable}</section>`;
}
