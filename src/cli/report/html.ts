import { withSeparators } from '../../base/quantities.ts';
import { printable } from '../../base/text.ts';
import { isNumberText } from '../terminal/layout.ts';

/** A piece of HTML that needs no escaping. */
export class Html {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

type Part = Html | string | number | readonly Html[];

/**
 * Template of HTML: every text put into it is printable and escaped, for element content and for quoted attributes
 * alike.
 */
export function html(strings: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return new Html(strings.map((string, i) => string + (i < parts.length ? htmlOf(parts[i]) : '')).join(''));
}

function htmlOf(part: Part): string {
  if (part instanceof Html) return part.text;
  if (typeof part === 'object') return part.map(({ text }) => text).join('');
  return printable(String(part)).replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/**
 * A table, which scrolls by itself if it is wider than the page. `columns`: heading → function of a row that gives the
 * cell. Numbers get separators, and a column of them is aligned right.
 */
export function htmlTable<T>(
  label: string,
  columns: Readonly<Record<string, (row: T) => string | number>>,
  rows: readonly T[],
): Html {
  const cells = rows.map((row) => Object.values(columns).map((cellOf) => cellText(cellOf(row))));
  const headings = Object.keys(columns);
  const alignments = headings.map((_, i) => (cells.every((row) => isNumberText(row[i])) ? 'number' : 'text'));
  const headCells = headings.map((heading, i) => html`<th scope="col" class="${alignments[i]}">${heading}</th>`);
  const bodyRows = cells.map(
    (row) => html`<tr>${row.map((cell, i) => html`<td class="${alignments[i]}">${cell}</td>`)}</tr>`,
  );
  return html`<div class="scroll" tabindex="0" role="region" aria-label="${label}">
<table class="list"><thead><tr>${headCells}</tr></thead><tbody>${bodyRows}</tbody></table></div>`;
}

const cellText = (cell: string | number): string => (typeof cell === 'number' ? withSeparators(cell) : cell);
