import { type Html, html } from './html.ts';

export interface ListColumn<T> {
  readonly title: string;
  readonly isNumber?: boolean;
  cell(row: T): Html | string | number;
}

/** A table of rows with a heading a column; it scrolls by itself where it is wider than the page. */
export function list<T>(label: string, columns: readonly ListColumn<T>[], rows: readonly T[]): Html {
  const heads = columns.map(({ title, isNumber }) => html`<th scope="col" class="${classOf(isNumber)}">${title}</th>`);
  const body = rows.map((row) => {
    const cells = columns.map((column) => html`<td class="${classOf(column.isNumber)}">${column.cell(row)}</td>`);
    return html`<tr>${cells}</tr>`;
  });
  return html`<div class="scroll" tabindex="0" role="region" aria-label="${label}"><table class="list"><thead><tr>${heads}</tr></thead><tbody>${body}</tbody></table></div>`;
}

const classOf = (isNumber = false): string => (isNumber ? 'number' : 'text');
