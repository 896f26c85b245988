import type { Config, TopLevelSpec } from 'vega-lite';
import { Html, html } from './html.ts';

/** One chart: what it shows, for people who do not see it, and its data. */
export interface Chart {
  readonly description: string;
  readonly values: readonly object[];
  readonly mark: 'bar' | 'area';
  readonly x: Axis;
  readonly y: Axis;
  /** Field by which bars are stacked and coloured; its values in the order of the colours. */
  readonly series?: { readonly field: string; readonly order: readonly string[] };
}

interface Axis {
  readonly field: string;
  readonly type: 'temporal' | 'quantitative' | 'ordinal';
  readonly title: string;
}

const WIDTH = 640;
const HEIGHT = 170;
/** Colours are the page's own, so that they follow its theme. */
const COLOURS = Array.from({ length: 9 }, (_, i) => `var(--series-${i + 1})`);

const CONFIG: Config = {
  aria: false,
  background: 'transparent',
  font: 'system-ui, sans-serif',
  view: { stroke: null },
  axis: {
    labelColor: 'var(--text)',
    titleColor: 'var(--text)',
    gridColor: 'var(--line)',
    domainColor: 'var(--line)',
    tickColor: 'var(--line)',
    titleFontWeight: 'normal',
  },
  legend: {
    labelColor: 'var(--text)',
    titleColor: 'var(--text)',
    labelLimit: 240,
    orient: 'bottom',
    columns: 3,
    direction: 'horizontal',
  },
  bar: { color: COLOURS[0] },
};

/** Draws a chart as SVG without a browser. The library is loaded by the first one: it takes a tenth of a second. */
export async function draw(chart: Chart): Promise<Html> {
  const [{ compile }, { parse, View }] = await Promise.all([import('vega-lite'), import('vega')]);
  const view = new View(parse(compile(specOf(chart)).spec), { renderer: 'none' });
  try {
    const svg = await view.toSVG();
    return html`<figure class="chart" tabindex="0" role="img" aria-label="${chart.description}">${new Html(svg)}</figure>`;
  } finally {
    view.finalize();
  }
}

function specOf({ values, mark, x, y, series }: Chart): TopLevelSpec {
  const bars = x.type === 'temporal' ? { timeUnit: 'utcyearmonthdate' as const, bandPosition: 0.5 } : {};
  return {
    data: { values: values.map((value) => ({ ...value })) },
    width: WIDTH,
    height: HEIGHT,
    padding: 4,
    mark: { type: mark, aria: false },
    encoding: {
      x: { field: x.field, type: x.type, title: x.title, ...bars },
      y: { field: y.field, type: y.type, title: y.title, stack: series === undefined ? null : 'zero' },
      ...(series !== undefined && {
        color: {
          field: series.field,
          type: 'nominal' as const,
          title: null,
          scale: { domain: [...series.order], range: COLOURS.slice(0, series.order.length) },
        },
      }),
    },
    config: CONFIG,
  };
}
