import { createReadStream } from 'node:fs';
import { Readable } from 'node:stream';
import { CsvError, parse } from 'csv-parse';
import { configError, UserError } from '../base/errors.ts';
import { isObject, jsonOf } from '../base/json.ts';
import { linesOf } from '../base/lines.ts';
import { isPlaceholder } from '../base/placeholder.ts';
import { nfc, UNIFIED_ID } from '../cells/csv/header.ts';
import type { PeopleById } from '../engine/people/query.ts';
import { whyUnreadable } from '../fs/disk-failure.ts';
import type { ListRow } from './list.ts';

// Lists of people. With a column it is CSV with a header, or JSON Lines, which begin with a brace. Without a column it
// is one external id a line. A list that looks like a table then is refused: its lines would be taken for ids.

/** Where ids stand in a list. */
export interface ListColumns {
  /** Undefined for one id a line. */
  readonly id: string | undefined;
  readonly requestedAt?: string | undefined;
}

type Bytes = AsyncIterable<Uint8Array>;
interface FileRow {
  /** As a spreadsheet shows it: the header is row 1. */
  readonly row: number;
  readonly cells: readonly unknown[];
}

const MAX_RECORD = 64 * 1024 * 1024;

/** The rows of a list. `input` is its path, or its bytes. Throws config failures that name the row. */
export async function* readList(input: string | Bytes, { id, requestedAt }: ListColumns): AsyncGenerator<ListRow> {
  const name = typeof input === 'string' ? `The list ${input}` : 'The list';
  if (id === undefined) {
    if (typeof input === 'string' && /\.csv$/i.test(input)) throw needsColumn(name, 'is a CSV by its name');
    for await (const [row, text] of linesIn(decoded(input, name))) {
      if (row <= CHECKED_LINES && TABLE_MARK.test(text)) {
        throw needsColumn(name, `looks like a table in line ${row}: commas, semicolons, tabs, quotes or braces`);
      }
      if (text !== '') yield { row, id: text };
    }
    return;
  }
  for await (const { row, cells } of readColumns(input, name, requestedAt === undefined ? [id] : [id, requestedAt])) {
    yield { row, id: cells[0], requestedAt: cells[1] };
  }
}

/** Some columns of each row of CSV or JSON Lines, in one pass: a pipe can be read only once. */
async function* readColumns(input: string | Bytes, name: string, columns: readonly string[]): AsyncGenerator<FileRow> {
  const text = decoded(input, name);
  let head = '';
  while (head.trim() === '') {
    const { value, done } = await text.next();
    if (done) break;
    head += value;
  }
  const allText = (async function* () {
    yield head;
    yield* text;
  })();
  yield* head.trimStart().startsWith('{') ? jsonMembers(allText, name, columns) : csvColumns(allText, name, columns);
}

/** Lines of a list without a column that are looked at, and what no id has there. */
const CHECKED_LINES = 10;
const TABLE_MARK = /[,;\t"{}[\]]/;

const needsColumn = (name: string, why: string): UserError =>
  configError(`${name} ${why}. Name the column with the external IDs with --column. Nothing was done.`);

/** Decodes UTF-8 without its byte order mark. Refuses other bytes: to replace them would name somebody else. */
async function* decoded(input: string | Bytes, name: string): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const bytes: Bytes = typeof input === 'string' ? createReadStream(input) : input;
  try {
    for await (const chunk of bytes) yield decoder.decode(chunk, { stream: true });
    decoder.decode();
  } catch (error) {
    if (error instanceof UserError) throw error;
    if (error instanceof TypeError) {
      throw configError(`${name} is not valid UTF-8: save it as UTF-8. Nothing was done.`);
    }
    throw configError(`${name} cannot be read: ${whyUnreadable(error)}.`, { cause: error });
  }
}

async function* linesIn(input: AsyncIterable<string>): AsyncGenerator<[number, string]> {
  let number = 0;
  for await (const lines of linesOf(input)) {
    for (const line of lines) yield [++number, line.toString().replace(/\r+$/, '')];
  }
}

async function* jsonMembers(input: AsyncIterable<string>, name: string, columns: readonly string[]) {
  let isFirst = true;
  for await (const [row, text] of linesIn(input)) {
    if (text.trim() === '') continue;
    const value = jsonOf(text);
    const refused = (why: string) => configError(`${name}, line ${row}: ${why}. Nothing was done.`);
    if (!isObject(value)) throw refused('this is no JSON object');
    const members = Object.keys(value);
    const cells = columns.map((column) => {
      const member = members.find((key) => nfc(key) === nfc(column));
      return member === undefined ? undefined : value[member];
    });
    if (isFirst && cells.includes(undefined)) {
      const shown = members.map((key) => JSON.stringify(key)).join(', ');
      throw refused(`there is no ${columns[cells.indexOf(undefined)]}, but ${shown}`);
    }
    isFirst = false;
    yield { row, cells };
  }
}

async function* csvColumns(
  input: AsyncIterable<string>,
  name: string,
  columns: readonly string[],
): AsyncGenerator<FileRow> {
  const parser = parse({
    max_record_size: MAX_RECORD,
    relax_column_count: true,
    record_delimiter: ['\r\n', '\n', '\r'],
  });
  const source = Readable.from(input);
  source.on('error', (error) => parser.destroy(error));
  source.pipe(parser);
  let row = 0;
  let header: readonly string[] | undefined;
  let indices: number[] = [];
  try {
    for await (const cells of parser as AsyncIterable<string[]>) {
      row++;
      if (cells.length === 1 && cells[0].trim() === '' && header?.length !== 1) continue;
      if (header === undefined) {
        header = cells;
        indices = columns.map((column) => columnIndex(cells, name, column));
      } else if (cells.length !== header.length) {
        throw configError(
          `${name}, row ${row}: there are ${cells.length} cells, and ${header.length} in the header. Nothing was done.`,
        );
      } else yield { row, cells: indices.map((index) => cells[index]) };
    }
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    // The parser's own message may quote the text at fault.
    throw configError(
      `${name} is not sound CSV near line ${String(error.lines ?? '?')} (${error.code}). Nothing was done.`,
    );
  } finally {
    source.destroy();
  }
}

function columnIndex(header: readonly string[], name: string, column: string): number {
  const names = header.map(nfc);
  const index = names.indexOf(nfc(column));
  if (index !== -1 && index === names.lastIndexOf(nfc(column))) return index;
  const why =
    index === -1
      ? `has no column ${JSON.stringify(column)}`
      : `has the column ${JSON.stringify(column)} more than once`;
  const shown = header
    .slice(0, 20)
    .map((text) => JSON.stringify(text))
    .join(', ');
  throw configError(`${name} ${why}. Separated by commas, its columns are ${shown}. Nothing was done.`);
}

/** The unified ids that a CSV or JSON Lines file with the columns external_id and df_unified_id gives these ids. */
export async function readMapping(path: string, ids: ReadonlySet<string>): Promise<PeopleById> {
  const mapping = new Map<string, string[]>();
  for await (const { row, cells } of readColumns(path, `The mapping ${path}`, ['external_id', UNIFIED_ID])) {
    // To skip such a cell would leave the person where it is, and its text might be another id.
    if (cells.some((cell) => cell !== undefined && cell !== null && typeof cell !== 'string')) {
      throw configError(`Row ${row} of ${path} holds a value that is not text: put it in quotes. Nothing was done.`);
    }
    const [id, person] = cells;
    if (typeof id !== 'string' || !ids.has(id) || typeof person !== 'string' || isPlaceholder(person)) continue;
    const people = mapping.get(id) ?? [];
    if (!people.includes(person)) mapping.set(id, [...people, person]);
  }
  return mapping;
}
