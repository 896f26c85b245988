import { printable } from '../../base/printable.ts';
import { count } from '../../base/quantities.ts';
import type { TargetReport } from '../../sinks/report.ts';
import { draw } from './charts.ts';
import type { ReportedDay } from './days.ts';
import { type Html, html } from './html.ts';
import { list } from './list.ts';

const REST = 'all others';
/** Names are cut in legends and tables of charts. */
const LONGEST_NAME = 60;

/** Rows and bytes a day, events by name, and the hours of the day. */
export async function eventSections(report: TargetReport, days: readonly ReportedDay[]): Promise<Html> {
  if (report.events.length === 0) return html``;
  return html`${await received(days)}${await byName(report)}${await byHour(report)}`;
}

async function received(days: readonly ReportedDay[]): Promise<Html> {
  const known = days.filter((day) => day.rows !== undefined);
  if (known.length === 0) return html``;
  const values = known.map(({ day, rows = 0, bytes = 0 }) => ({ day, rows, megabytes: bytes / 1e6 }));
  const x = { field: 'day', type: 'temporal', title: '' } as const;
  const rows = await draw({
    description: `Rows a day, ${values[0].day} to ${values.at(-1)?.day}; the numbers are in the table below.`,
    values,
    mark: 'bar',
    x,
    y: { field: 'rows', type: 'quantitative', title: 'rows' },
  });
  const bytes = await draw({
    description: 'Megabytes of CSV a day; the numbers are in the table below.',
    values,
    mark: 'bar',
    x,
    y: { field: 'megabytes', type: 'quantitative', title: 'MB of CSV' },
  });
  const table = list(
    'Rows and bytes a day',
    [
      { title: 'day', cell: ({ day }) => day },
      { title: 'rows', isNumber: true, cell: (value) => value.rows.toLocaleString('en-US') },
      { title: 'MB', isNumber: true, cell: (value) => value.megabytes.toFixed(1) },
    ],
    values,
  );
  return html`<section><h2>Received a day</h2>${rows}${bytes}<details><summary>Numbers</summary>${table}</details></section>`;
}

async function byName(report: TargetReport): Promise<Html> {
  const totals = new Map<string, number>();
  const values = report.events.map(({ day, name, events }) => {
    const shown = name === null ? REST : short(name);
    totals.set(shown, (totals.get(shown) ?? 0) + events);
    return { day, name: shown, events };
  });
  const names = [...totals].filter(([name]) => name !== REST).sort(([, a], [, b]) => b - a);
  const rest = totals.get(REST);
  const order = [...names, ...(rest === undefined ? [] : [[REST, rest] as const])];
  const chart = await draw({
    description: 'Events a day by name; the totals are in the table below.',
    values,
    mark: 'bar',
    x: { field: 'day', type: 'temporal', title: '' },
    y: { field: 'events', type: 'quantitative', title: 'events' },
    series: { field: 'name', order: order.map(([name]) => name) },
  });
  const table = list(
    'Events by name',
    [
      { title: 'event', cell: ([name]) => name },
      { title: 'events', isNumber: true, cell: ([, events]) => events.toLocaleString('en-US') },
    ],
    order,
  );
  return html`<section><h2>Events by name</h2>${chart}<details><summary>Totals</summary>${table}</details></section>`;
}

async function byHour({ hours, timezone }: TargetReport): Promise<Html> {
  const values = hours.map((events, hour) => ({ hour: String(hour).padStart(2, '0'), events }));
  const busiest = values.reduce((most, value) => (value.events > most.events ? value : most));
  const chart = await draw({
    description: `Events by hour of the day; most at ${busiest.hour}:00, ${count(busiest.events, 'event')}.`,
    values,
    mark: 'bar',
    x: {
      field: 'hour',
      type: 'ordinal',
      title: timezone === null ? 'hour, as the export writes it' : `hour, ${timezone}`,
    },
    y: { field: 'events', type: 'quantitative', title: 'events' },
  });
  return html`<section><h2>Hours of the day</h2>${chart}</section>`;
}

const short = (name: string): string =>
  printable(name.length > LONGEST_NAME ? `${name.slice(0, LONGEST_NAME)}…` : name);
