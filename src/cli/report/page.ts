// This folder: the page that `report` writes, one file of HTML without a script or a request. It shows names of events and
// columns, counts and dates, but no values of people.

import type { Day } from '../../base/days.ts';
import { count, megabytes } from '../../base/quantities.ts';
import type { TargetReport } from '../../sinks/report.ts';
import { calendar } from './calendar.ts';
import { columnSection } from './columns.ts';
import { type ReportedDay, reportedDays } from './days.ts';
import { deletionSection, type ReportedDeletions } from './deletions.ts';
import { eventSections } from './events.ts';
import { type Html, html } from './html.ts';
import { runSection } from './runs.ts';
import { STYLE } from './style.ts';

export interface PageOptions {
  /** What is reported on, as the command line names it. */
  readonly target: string;
  /** Instant at which the report is made, ISO, UTC. */
  readonly madeAt: string;
  readonly today: Day;
  /** How many days back the service exports. */
  readonly historyDays: number;
  readonly version: string;
  /** Counts from a ledger of deletions, where one was given. */
  readonly deletions?: ReportedDeletions | undefined;
}

/** The whole page. */
export async function reportPage(report: TargetReport, options: PageOptions): Promise<string> {
  const days = reportedDays(report, options.today, options.historyDays);
  const policy = "default-src 'none'; style-src 'unsafe-inline'";
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="generator" content="dfinery-elt ${options.version}">
<title>Events in ${options.target}</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<header>
<h1>Events in ${options.target}</h1>
<p class="quiet">Made at ${options.madeAt} by dfinery-elt ${options.version}. Names, counts and dates only.</p>
${facts(report, days)}
</header>
<section><h2>Days</h2>${days.length === 0 ? html`<p>Nothing was loaded yet.</p>` : calendar(days)}</section>
${await eventSections(report, days)}
${runSection(report)}
${columnSection(report)}
${deletionSection(options.deletions)}
</main>
</body>
</html>
`.text;
}

function facts(report: TargetReport, days: readonly ReportedDay[]): Html {
  const { state } = report;
  const ofState = (wanted: string) => days.filter((day) => day.state === wanted).length;
  const loaded = ofState('loaded') + ofState('read again');
  const facts: readonly (readonly [string, string])[] = [
    ['Rows', report.rows.toLocaleString('en-US')],
    [
      'Newest event',
      report.lastEventAt === null ? 'none' : `${report.lastEventAt.slice(0, 16)} ${report.timezone ?? ''}`,
    ],
    ['Next run starts at', state?.from_date ?? 'the first day'],
    ['Days loaded', count(loaded, 'day')],
    ['Days lost', count(ofState('gap'), 'day')],
    ['Soon lost, not loaded', count(ofState('lost soon'), 'day')],
    ['Size', megabytes(report.sizeBytes)],
    ['to_date', inclusive(state?.to_date_inclusive)],
  ];
  return html`<dl class="facts">${facts.map(([term, value]) => html`<div><dt>${term}</dt><dd>${value}</dd></div>`)}</dl>`;
}

function inclusive(proved: boolean | undefined): string {
  if (proved === undefined) return 'not proved yet';
  return proved ? 'proved inclusive' : 'proved exclusive';
}
