import type { Dataset, RowQuery } from './dataset.ts';

const CHUNK_CHARS = 48 * 1024;

const quoted = (text: string): string => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

const lineOf = (cells: readonly string[]): string => `${cells.map(quoted).join(',')}\n`;

/** The lines of an export of events, the header first. */
export function* eventLines(dataset: Dataset, query: RowQuery): Generator<string> {
  const columns = dataset.header(query);
  yield lineOf(columns.map(({ name }) => name));
  for (const row of dataset.rows(query)) yield lineOf(columns.map((column) => dataset.cell(column, row)));
}

/** The lines of an export of profiles, with these columns. */
export function* profileLines(dataset: Dataset, columns: readonly string[]): Generator<string> {
  yield lineOf(columns);
  for (const profile of dataset.profiles()) yield lineOf(columns.map((name) => profile[name] ?? ''));
}

/** Yields the bytes of lines that are generated on demand: never more than one chunk (about 64 KiB) at a time. */
export function* chunksOf(lines: Iterable<string>): Generator<Buffer, void, undefined> {
  let pending = '';
  for (const line of lines) {
    pending += line;
    if (pending.length < CHUNK_CHARS) continue;
    yield Buffer.from(pending);
    pending = '';
  }
  yield Buffer.from(pending);
}
