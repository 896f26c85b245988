import { addDays, type Day, daysBetween, daysOf } from '../../base/days.ts';
import { groupBy } from '../../base/group.ts';
import { count } from '../../base/quantities.ts';
import type { TargetReport } from '../../targets/maintenance-contract.ts';
import { barChart } from './charts.ts';
import type { ReportedDay } from './day-calendar.ts';
import { type Html, html, table } from './html.ts';

const REST = 'all others';
/** Maximum length of a name in legends and tables of charts (characters). */
const MAX_NAME_LENGTH = 60;
/** Approximate number of days that have a label below a chart. */
const DAY_LABELS = 5;
/** Minimum length (days) of a span whose labels are months and years. */
const LONG_SPAN_DAYS = 300;

export function eventSections(report: TargetReport, days: readonly ReportedDay[]): Html {
  if (report.events.length === 0) return html``;
  return html`${receivedSection(days)}<div class="beside">${eventNameSection(report)}${hourSection(report)}</div>`;
}

function receivedSection(days: readonly ReportedDay[]): Html {
  const exported = days.filter(({ rows }) => rows !== undefined);
  if (exported.length === 0) return html``;
  const [first, last] = [exported[0].day, exported[exported.length - 1].day];
  const shown = days.filter(({ day }) => day >= first && day <= last);
  const chart = barChart({
    description: `Rows a day, ${first} to ${last}; the numbers are in the table below.`,
    unit: 'rows',
    series: [{ name: 'rows', values: shown.map((day) => day.rows ?? 0) }],
    labels: dayLabels(first, last),
  });
  const numbers = table(
    'Rows and bytes a day',
    { day: ({ day }) => day, rows: (day) => day.rows ?? 0, MB: (day) => ((day.bytes ?? 0) / 1e6).toFixed(1) },
    exported,
  );
  return html`<section><h2>Received a day</h2>${chart}<details><summary>Numbers</summary>${numbers}</details></section>`;
}

function eventNameSection(report: TargetReport): Html {
  const days = report.events.map(({ day }) => day).sort();
  const [first, last] = [days[0], days[days.length - 1]];
  const named = [...groupBy(report.events, ({ name }) => name)].map(([name, counts]) => {
    const values = daysOf(first, last).map(() => 0);
    for (const { day, events } of counts) values[daysBetween(first, day)] += events;
    return { name, values, total: counts.reduce((sum, { events }) => sum + events, 0) };
  });
  const series = named
    .sort((a, b) => Number(a.name === null) - Number(b.name === null) || b.total - a.total)
    .map(({ name, ...counts }) => ({ ...counts, name: shownName(name) }));
  const chart = barChart({
    description: 'Events a day by name; the totals are in the table below.',
    unit: 'events',
    series,
    labels: dayLabels(first, last),
  });
  const numbers = table('Events by name', { event: ({ name }) => name, events: ({ total }) => total }, series);
  return html`<section><h2>Events by name</h2>${chart}<details><summary>Totals</summary>${numbers}</details></section>`;
}

function hourSection({ hours, state }: TargetReport): Html {
  const busiest = hours.indexOf(Math.max(...hours));
  const chart = barChart({
    description: `Events by hour of the day; most at ${twoDigits(busiest)}:00, ${count(hours[busiest], 'event')}.`,
    unit: `events by hour, ${state.timezone ?? 'as the export writes it'}`,
    series: [{ name: 'events', values: hours }],
    labels: [0, 3, 6, 9, 12, 15, 18, 21].map((at) => ({ at, text: twoDigits(at) })),
  });
  return html`<section><h2>Hours of the day</h2>${chart}</section>`;
}

/** Labels for some days of a span: `01-02`, or `2026-01` in a long span. */
function dayLabels(first: Day, last: Day) {
  const span = daysBetween(first, last);
  const step = Math.max(1, Math.ceil((span + 1) / DAY_LABELS));
  const labelOf = (day: Day) => (span >= LONG_SPAN_DAYS ? day.slice(0, 7) : day.slice(5));
  return Array.from({ length: Math.floor(span / step) + 1 }, (_, i) => i * step).map((at) => ({
    at,
    text: labelOf(addDays(first, at)),
  }));
}

function shownName(name: string | null): string {
  if (name === null) return REST;
  return name.length > MAX_NAME_LENGTH ? `${name.slice(0, MAX_NAME_LENGTH)}…` : name;
}

const twoDigits = (n: number): string => String(n).padStart(2, '0');
