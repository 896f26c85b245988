import { type Day, dayAt, daysOf, earlierOf, laterOf, startOf } from '../../base/days.ts';
import { groupBy } from '../../base/group.ts';
import { formatCount } from '../../base/quantities.ts';
import { daysUntilLost, type ExportedDays, LOST_SOON_DAYS } from '../../extract/calendar.ts';
import { emptyOrImplausibleDays } from '../../extract/which-days.ts';
import type { PlaceReport } from '../../targets/contract.ts';
import { type Html, html } from './html.ts';

/** Each state of a day, which is also the class of its cell, with its meaning in the legend. */
export const DAY_STATES = {
  loaded: 'loaded',
  'read-again': 'loaded with no rows or few: the next run reads it again',
  pruned: 'loaded, its rows were removed since',
  'so-far': 'read so far, not over yet: the next run reads it again',
  lost: 'lost: not loaded whole, and the service no longer has it',
  'not-there-yet': 'not there yet',
  'lost-soon': 'not loaded whole, and soon lost at the service (days left)',
};

type DayState = keyof typeof DAY_STATES;

/** What became of a day. `rows` are those of its latest export. `daysLeft`: until the service drops it. */
export interface ReportedDay {
  readonly day: Day;
  readonly state: DayState;
  readonly rows: number | undefined;
  readonly daysLeft: number;
}

/** Every day from the first that was wanted through the last one, or today; also later ones that were loaded. */
export function reportedDays(report: PlaceReport, now: number, settings: ExportedDays): ReportedDay[] {
  const { historyDays, endDate } = settings;
  const today = dayAt(now);
  const { exportState, receipts } = report.state.events;
  const recordedDays = [...receipts.keys(), ...(exportState?.gaps ?? [])].sort();
  const firstDay = [exportState?.start_date, recordedDays[0]].filter((day) => day !== undefined).sort()[0];
  if (firstDay === undefined) return [];
  const lastWantedDay = earlierOf(endDate ?? today, today);
  const lastDay = laterOf(lastWantedDay, recordedDays.at(-1) ?? lastWantedDay);
  const daysReadAgain = emptyOrImplausibleDays(receipts, exportState?.to_date_inclusive);
  return daysOf(firstDay, lastDay).map((day) => {
    const daysLeft = daysUntilLost(day, today, historyDays);
    const state = stateOfDay(day, daysLeft, daysReadAgain, report);
    return { day, state, rows: receipts.get(day)?.rows, daysLeft };
  });
}

/** The first of these that holds: a day may be in several at once. */
function stateOfDay(day: Day, daysLeft: number, daysReadAgain: readonly Day[], { state }: PlaceReport): DayState {
  const { exportState, receipts } = state.events;
  const receipt = receipts.get(day);
  if (daysLeft >= 0 && daysReadAgain.includes(day)) return 'read-again';
  if (receipt?.pruned) return 'pruned';
  if (receipt?.is_over) return 'loaded';
  if (exportState?.gaps?.includes(day) || daysLeft < 0) return 'lost';
  if (daysLeft <= LOST_SOON_DAYS) return 'lost-soon';
  return receipt === undefined ? 'not-there-yet' : 'so-far';
}

const WEEKDAYS = ['Mo', 'Tu', 'We', 'Th', 'Fr', 'Sa', 'Su'];

/** A table a month, a cell a day. The state of a day is in the cell's text and in its colour. */
export function dayCalendar(days: readonly ReportedDay[]): Html {
  const months = groupBy(days, ({ day }) => day.slice(0, 7));
  const legend = Object.entries(DAY_STATES).map(
    ([state, meaning]) => html`<li><span class="swatch ${state}"></span>${meaning}</li>`,
  );
  return html`<ul class="legend">${legend}</ul><div class="months">${[...months].map(([month, daysOfMonth]) => monthTable(month, daysOfMonth))}</div>`;
}

function monthTable(month: string, days: readonly ReportedDay[]): Html {
  // 0 for Monday.
  const firstWeekday = (new Date(startOf(days[0].day)).getUTCDay() + 6) % 7;
  const cells: Html[] = Array.from({ length: firstWeekday }, () => html`<td></td>`);
  for (const day of days) cells.push(dayCell(day));
  const weeks = Array.from({ length: Math.ceil(cells.length / 7) }, (_, i) => cells.slice(i * 7, i * 7 + 7));
  const headCells = WEEKDAYS.map((name) => html`<th scope="col">${name}</th>`);
  return html`<table class="month"><caption>${month}</caption><thead><tr>${headCells}</tr></thead>
<tbody>${weeks.map((week) => html`<tr>${week}</tr>`)}</tbody></table>`;
}

function dayCell({ day, state, rows, daysLeft }: ReportedDay): Html {
  const isLostSoon = state === 'lost-soon';
  const lossText = daysLeft === 0 ? 'lost after today' : `lost in ${formatCount(daysLeft, 'day')}`;
  const stateText = isLostSoon ? lossText : state.replaceAll('-', ' ');
  const description = rows === undefined ? stateText : `${stateText}, ${formatCount(rows, 'row')}`;
  const daysLeftText = isLostSoon ? html`<b>${daysLeft}d</b>` : html``;
  return html`<td class="${state}" title="${day}: ${description}"
    ><time datetime="${day}">${Number(day.slice(8))}</time>${daysLeftText}<span class="hidden">: ${description}</span></td>`;
}
