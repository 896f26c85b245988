import { type Day, daysBetween, daysOf } from '../../base/days.ts';
import { groupBy } from '../../base/group.ts';
import { withSeparators } from '../../base/quantities.ts';
import type { PlaceReport } from '../../targets/contract.ts';
import { type Html, html, htmlTable } from './html.ts';

const OTHER_EVENTS = 'all others';
/** Approximate number of days that have a label below the chart. */
const DAY_LABEL_COUNT = 5;
/** Minimum length (days) of a span whose labels are months and years. */
const LONG_SPAN_DAYS = 300;
const SCALE_STEPS = 4;
/** Part of a day's slot that its bar fills (0 to 1). */
const BAR_WIDTH = 0.86;

/** The events of one name, or of all others: a number a day. */
interface Series {
  readonly name: string;
  readonly values: readonly number[];
  readonly total: number;
}

/** Stacked bars, one a day, as wide as the page. The bars are a stretched image; all text is text of the page. */
export function eventSection({ eventCounts }: PlaceReport): Html {
  if (eventCounts.length === 0) return html``;
  const countedDays = eventCounts.map(({ day }) => day).sort();
  const days = daysOf(countedDays[0], countedDays[countedDays.length - 1]);
  const series = seriesOf(eventCounts, days);
  const largestTotal = Math.max(...days.map((_, i) => series.reduce((sum, { values }) => sum + values[i], 0)));
  const step = stepOf(largestTotal);
  const stepCount = Math.max(1, Math.ceil(largestTotal / step));
  const ticks = Array.from({ length: stepCount + 1 }, (_, i) => (stepCount - i) * step);
  const paths = barPaths(series, days.length, step * stepCount).map(
    (path, i) => html`<path class="series-${i + 1}" d="${path}"/>`,
  );
  const legend = series.map(({ name }, i) => html`<li><span class="swatch series-${i + 1}"></span>${name}</li>`);
  const totalsTable = htmlTable('Events by name', { event: ({ name }) => name, events: ({ total }) => total }, series);
  return html`<section><h2>Events by name</h2>
<figure class="chart"><p class="unit">events</p><div class="scale">${ticks.map((tick) => html`<span>${withSeparators(tick)}</span>`)}</div>
<div class="plot" role="img" aria-label="Events a day by name; the totals are in the table below.">${ticks.map(() => html`<hr>`)}
<svg viewBox="0 0 ${days.length} 1" preserveAspectRatio="none" aria-hidden="true">${paths}</svg></div>
<div class="labels">${dayLabels(days)}</div><ul class="legend">${legend}</ul></figure>
<details><summary>Totals</summary>${totalsTable}</details></section>`;
}

/** The most frequent name first, all others last. */
function seriesOf(eventCounts: PlaceReport['eventCounts'], days: readonly Day[]): Series[] {
  return [...groupBy(eventCounts, ({ name }) => name)]
    .map(([name, countsOfName]) => {
      const values = days.map(() => 0);
      for (const { day, count } of countsOfName) values[daysBetween(days[0], day)] += count;
      return { name, values, total: countsOfName.reduce((sum, { count }) => sum + count, 0) };
    })
    .sort((a, b) => Number(a.name === null) - Number(b.name === null) || b.total - a.total)
    .map((counts) => ({ ...counts, name: counts.name ?? OTHER_EVENTS }));
}

/** One SVG path for each series; its bars stand on those of the series before it. */
function barPaths(series: readonly Series[], dayCount: number, scaleTop: number): string[] {
  const heights = new Array<number>(dayCount).fill(0);
  return series.map(({ values }) =>
    values
      .map((value, i) => {
        if (value === 0) return '';
        const [x, bottom] = [i + (1 - BAR_WIDTH) / 2, 1 - heights[i] / scaleTop];
        heights[i] += value;
        return `M${rounded(x)} ${rounded(bottom)}V${rounded(1 - heights[i] / scaleTop)}h${BAR_WIDTH}V${rounded(bottom)}z`;
      })
      .join(''),
  );
}

/** The step of the scale: 1, 2 or 5 times a power of ten. About `SCALE_STEPS` steps reach the largest value. */
function stepOf(largest: number): number {
  const minStep = Math.max(1, largest / SCALE_STEPS);
  const power = 10 ** Math.floor(Math.log10(minStep));
  return ([1, 2, 5].find((factor) => factor * power >= minStep) ?? 10) * power;
}

/** Labels for some of the days: `01-02`, or `2026-01` in a long span. */
function dayLabels(days: readonly Day[]): Html[] {
  const step = Math.ceil(days.length / DAY_LABEL_COUNT);
  return days.flatMap((day, i) => {
    if (i % step !== 0) return [];
    const text = days.length > LONG_SPAN_DAYS ? day.slice(0, 7) : day.slice(5);
    return [html`<span style="--at:${rounded(((i + 0.5) / days.length) * 100)}%">${text}</span>`];
  });
}

const rounded = (value: number): string => String(Math.round(value * 1e4) / 1e4);
