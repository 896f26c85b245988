import type { Dataset } from './columns.ts';
import { cellOf, headerOf, type RowQuery, rowsOf } from './row-query.ts';

/** The form of an export; the numbers of data rows, from 1, that are made too short or too long. */
export interface CsvForm {
  readonly crlf: boolean;
  readonly bom: boolean;
  readonly finalNewline: boolean;
  readonly shortRow: number | undefined;
  readonly longRow: number | undefined;
  readonly headerOnly: boolean;
}

const CHUNK_CHARS = 48 * 1024;

const quoted = (text: string): string =>
  text !== '' && /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;

/** Yields the bytes of an export, generated on demand: never more than one chunk (about 64 KiB) at a time. */
export function* csvOf(dataset: Dataset, query: RowQuery, form: CsvForm): Generator<Buffer, void, undefined> {
  const columns = headerOf(dataset, query);
  const end = form.crlf ? '\r\n' : '\n';
  let pending = (form.bom ? '\uFEFF' : '') + columns.map((column) => quoted(column.name)).join(',');
  let number = 0;
  for (const row of form.headerOnly ? [] : rowsOf(dataset, query)) {
    const cells = columns.map((column) => quoted(cellOf(column, row, dataset)));
    number++;
    if (number === form.shortRow) cells.pop();
    if (number === form.longRow) cells.push('extra');
    pending += end + cells.join(',');
    if (pending.length < CHUNK_CHARS) continue;
    yield Buffer.from(pending);
    pending = '';
  }
  yield Buffer.from(form.finalNewline ? pending + end : pending);
}

/** A row of the service: the text of each cell that has one, by column name. */
export type TrueRow = ReadonlyMap<string, string>;

/** Yields the rows, cell by cell, before they become CSV. */
export function* truthOf(dataset: Dataset, query: RowQuery): Generator<TrueRow, void, undefined> {
  for (const row of rowsOf(dataset, query)) {
    const cells = new Map<string, string>();
    for (const column of dataset.columns) {
      const text = cellOf(column, row, dataset);
      if (text !== '') cells.set(column.name, text);
    }
    yield cells;
  }
}

export function countRows(dataset: Dataset, query: RowQuery, most: number): number {
  let count = 0;
  for (const _row of rowsOf(dataset, query)) if (++count > most) return count;
  return count;
}
