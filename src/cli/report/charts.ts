import { type Html, html } from './html.ts';

/** Bars along a row of equal slots, of one series or stacked of several: one number a slot. */
export interface Chart {
  /** What the chart shows, for people who do not see it. */
  readonly description: string;
  readonly unit: string;
  readonly series: readonly { readonly name: string; readonly values: readonly number[] }[];
  readonly labels: readonly { readonly at: number; readonly text: string }[];
}

const STEPS = 4;
/** Part of a slot that its bar fills (0 to 1). */
const FILLED = 0.86;

/** A chart as wide as its container. The bars are an image that is stretched; all text is text of the page. */
export function barChart({ description, unit, series, labels }: Chart): Html {
  const slots = Math.max(...series.map(({ values }) => values.length));
  const totals = Array.from({ length: slots }, (_, i) => series.reduce((sum, { values }) => sum + (values[i] ?? 0), 0));
  const step = stepOf(Math.max(...totals));
  // The quotient of a whole number of steps may be a little too large.
  const steps = Math.max(1, Math.ceil(Math.max(...totals) / step - 1e-9));
  const ticks = Array.from({ length: steps + 1 }, (_, i) => (steps - i) * step);
  const paths = stacked(series, slots, step * steps).map(
    (path, i) => html`<path class="series-${i + 1}" d="${path}"/>`,
  );
  const texts = labels.map(({ at, text }) => html`<span style="--at:${cssPercent((at + 0.5) / slots)}">${text}</span>`);
  return html`<figure class="chart"><p class="unit">${unit}</p><div class="scale">${ticks.map((tick) => html`<span>${tickText(tick)}</span>`)}</div>
<div class="plot" role="img" aria-label="${description}">${ticks.map(() => html`<hr>`)}
<svg viewBox="0 0 ${slots} 1" preserveAspectRatio="none" aria-hidden="true">${paths}</svg></div>
<div class="labels">${texts}</div>${legend(series)}</figure>`;
}

function legend(series: Chart['series']): Html {
  if (series.length === 1) return html``;
  const entries = series.map(({ name }, i) => html`<li><span class="swatch series-${i + 1}"></span>${name}</li>`);
  return html`<ul class="legend">${entries}</ul>`;
}

/** One SVG path for each series; its bars stand on those of the series before it. */
function stacked(series: Chart['series'], slots: number, scaleTop: number): string[] {
  const below = new Array<number>(slots).fill(0);
  return series.map(({ values }) =>
    values
      .map((value, i) => {
        if (value === 0) return '';
        const [x, from] = [i + (1 - FILLED) / 2, 1 - below[i] / scaleTop];
        below[i] += value;
        return `M${rounded(x)} ${rounded(from)}V${rounded(1 - below[i] / scaleTop)}h${FILLED}V${rounded(from)}z`;
      })
      .join(''),
  );
}

/** The step of the scale: 1, 2 or 5 times a power of ten. About `STEPS` steps reach the largest value. */
function stepOf(largest: number): number {
  const least = (largest || 1) / STEPS;
  const power = 10 ** Math.floor(Math.log10(least));
  return ([1, 2, 5].find((times) => times * power >= least) ?? 10) * power;
}

const tickText = (value: number): string => value.toLocaleString('en-US', { maximumSignificantDigits: 6 });
const cssPercent = (part: number): string => `${rounded(part * 100)}%`;
const rounded = (value: number): string => String(Math.round(value * 1e4) / 1e4);
