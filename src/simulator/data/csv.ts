import type { Dataset, RowQuery } from './dataset.ts';

const CHUNK_CHARS = 48 * 1024;

const quoted = (text: string): string => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

/** Yields the bytes of an export, generated on demand: never more than one chunk (about 64 KiB) at a time. */
export function* csvOf(dataset: Dataset, query: RowQuery): Generator<Buffer, void, undefined> {
  const columns = dataset.header(query);
  let pending = `${columns.map((column) => quoted(column.name)).join(',')}\n`;
  for (const row of dataset.rows(query)) {
    pending += `${columns.map((column) => quoted(dataset.cell(column, row))).join(',')}\n`;
    if (pending.length < CHUNK_CHARS) continue;
    yield Buffer.from(pending);
    pending = '';
  }
  yield Buffer.from(pending);
}
