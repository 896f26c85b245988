import { type Column, hasSpecial } from './columns.ts';
import type { Dataset } from './dataset.ts';
import type { DayPlan, Row } from './event.ts';
import { cellOf, drawn, headerOf, isCarriedBy, isKnownOn, type RowQuery, rowsOf } from './row-query.ts';

/** How an export is written: the ends of its rows, and rows that are made too short or too long (data rows count from 1). */
export interface CsvForm {
  readonly crlf: boolean;
  readonly bom: boolean;
  readonly finalNewline: boolean;
  readonly shortRow?: number;
  readonly longRow?: number;
  readonly headerOnly?: boolean;
}

const CHUNK_CHARS = 48 * 1024;

const quoted = (text: string): string => (hasSpecial(text) ? `"${text.replaceAll('"', '""')}"` : text);

/** The bytes of an export, generated as they are taken: never more than one chunk (about 64 KiB) at a time. */
export function* csvOf(dataset: Dataset, query: RowQuery, form: CsvForm): Generator<Buffer, void, undefined> {
  const columns = headerOf(dataset, query);
  const end = form.crlf ? '\r\n' : '\n';
  const header = (form.bom ? '\uFEFF' : '') + columns.map((column) => quoted(column.name)).join(',');
  let pending = header;
  const write = rowWriter(dataset, columns);
  let number = 0;
  for (const row of form.headerOnly ? [] : rowsOf(dataset, query)) {
    number++;
    pending += end + edited(write(row), number, form);
    if (pending.length < CHUNK_CHARS) continue;
    yield Buffer.from(pending);
    pending = '';
  }
  yield Buffer.from(form.finalNewline ? pending + end : pending);
}

/** The cells of a row that may have a value, each with the commas before it, and the commas behind the last. */
interface Layout {
  readonly cells: readonly { readonly commas: string; readonly column: Column }[];
  readonly tail: string;
}

/** Writes rows: which cells may have a value is worked out once for each kind of event of a day. */
function rowWriter(dataset: Dataset, columns: readonly Column[]): (row: Row) => string {
  let plan: DayPlan | undefined;
  let layouts = new Map<number, Layout>();
  return (row) => {
    if (row.plan !== plan) {
      plan = row.plan;
      layouts = new Map();
    }
    let layout = layouts.get(row.kind);
    if (layout === undefined) {
      layout = layOut(columns, row);
      layouts.set(row.kind, layout);
    }
    return line(dataset, layout, row);
  };
}

function layOut(columns: readonly Column[], row: Row): Layout {
  const cells: { commas: string; column: Column }[] = [];
  let commas = 0;
  for (const [i, column] of columns.entries()) {
    if (i > 0) commas++;
    if (!isKnownOn(column, row.plan) || !isCarriedBy(column, row)) continue;
    cells.push({ commas: ','.repeat(commas), column });
    commas = 0;
  }
  return { cells, tail: ','.repeat(commas) };
}

function line(dataset: Dataset, layout: Layout, row: Row): string {
  let out = '';
  for (const { commas, column } of layout.cells) {
    const text = drawn(column, row, dataset);
    out += commas;
    if (text !== '') out += column.needsQuotes ? quoted(text) : text;
  }
  return out + layout.tail;
}

/** The last cell of a line holds no comma of its own where it is empty; a quoted one goes as a whole. */
function edited(line: string, number: number, form: CsvForm): string {
  if (number === form.longRow) return `${line},extra`;
  return number === form.shortRow ? withoutLastCell(line) : line;
}

function withoutLastCell(line: string): string {
  let isQuoted = false;
  let comma = line.length;
  for (let i = 0; i < line.length; i++) {
    if (line[i] === '"') isQuoted = !isQuoted;
    else if (line[i] === ',' && !isQuoted) comma = i;
  }
  return line.slice(0, comma);
}

/** A row as the service knows it: the text of each cell that has one, by column name. */
export type TrueRow = ReadonlyMap<string, string>;

/** The rows themselves, cell by cell, before any CSV. */
export function* truthOf(dataset: Dataset, query: RowQuery): Generator<TrueRow, void, undefined> {
  for (const row of rowsOf(dataset, query)) {
    const cells = new Map<string, string>();
    for (const column of dataset.columns) {
      const text = isKnownOn(column, row.plan) ? cellOf(column, row, dataset) : '';
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
