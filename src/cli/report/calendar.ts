import { type Day, startOf } from '../../base/days.ts';
import { count } from '../../base/quantities.ts';
import { DAY_STATES, type ReportedDay } from './days.ts';
import { type Html, html } from './html.ts';

const WEEKDAYS = ['Mo', 'Tu', 'We', 'Th', 'Fr', 'Sa', 'Su'];
const MEANINGS = {
  loaded: 'loaded',
  'read again': 'loaded and read again',
  'so far': 'read so far, not over yet: the next run reads it again',
  gap: 'gap: the service no longer had it',
  'not there yet': 'not there yet',
  'lost soon': 'not loaded, and soon lost at the service (days left)',
} as const satisfies Record<(typeof DAY_STATES)[number], string>;

/** A table a month, a cell a day; what a cell says is also in its text, not in its colour alone. */
export function calendar(days: readonly ReportedDay[]): Html {
  const months = new Map<string, ReportedDay[]>();
  for (const day of days) {
    const month = day.day.slice(0, 7);
    months.set(month, [...(months.get(month) ?? []), day]);
  }
  const legend = DAY_STATES.map(
    (state) => html`<li><span class="swatch ${classOf(state)}"></span>${MEANINGS[state]}</li>`,
  );
  return html`<ul class="legend">${legend}</ul><div class="months">${[...months].map(([month, own]) => monthTable(month, own))}</div>`;
}

const classOf = (state: string): string => state.replaceAll(' ', '-');

function monthTable(month: string, days: readonly ReportedDay[]): Html {
  const cells: Html[] = Array.from({ length: weekdayOf(days[0].day) }, () => html`<td></td>`);
  for (const day of days) cells.push(cell(day));
  const weeks = Array.from({ length: Math.ceil(cells.length / 7) }, (_, i) => cells.slice(i * 7, i * 7 + 7));
  const heads = WEEKDAYS.map((name) => html`<th scope="col">${name}</th>`);
  return html`<table class="month"><caption>${month}</caption><thead><tr>${heads}</tr></thead>
<tbody>${weeks.map((week) => html`<tr>${week}</tr>`)}</tbody></table>`;
}

function cell({ day, state, rows, daysLeft }: ReportedDay): Html {
  const said = daysLeft === undefined ? state : `lost in ${count(daysLeft, 'day')}`;
  const about = rows === undefined ? said : `${said}, ${count(rows, 'row')}`;
  const shown = daysLeft === undefined ? html`` : html`<b>${daysLeft}d</b>`;
  return html`<td class="${classOf(state)}" title="${day}: ${about}"><time datetime="${day}">${Number(day.slice(8))}</time>${shown}<span class="hidden">: ${about}</span></td>`;
}

/** 0 for a Monday. */
const weekdayOf = (day: Day): number => (new Date(startOf(day)).getUTCDay() + 6) % 7;
