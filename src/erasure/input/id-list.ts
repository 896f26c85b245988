import { createReadStream } from 'node:fs';
import { extname } from 'node:path';
import { Readable } from 'node:stream';
import { CsvError, parse } from 'csv-parse';
import { configError, messageOf, UserError } from '../../base/errors.ts';
import { isObject, jsonOf } from '../../base/json.ts';
import { linesOf } from '../../base/lines.ts';
import { hasRepeatedMember } from './json-member.ts';

export interface ListOptions {
  /**
   * Column of a CSV, or member of JSON Lines (which begin with a brace), whatever the file's name; absent for one id a
   * line.
   */
  readonly column?: string | undefined;
  /** Name of the id field: a first line with this text is the header of a plain list. */
  readonly header?: string | undefined;
}

/** Extensions of files with columns, whose lines must not be taken for ids. */
const WITH_COLUMNS = ['.csv', '.tsv', '.json', '.jsonl', '.ndjson'];
/** After so many blank characters a list counts as a plain one. */
const MAX_BLANK = 64 * 1024;
const MAX_RECORD = 64 * 1024 * 1024;

type Bytes = AsyncIterable<Uint8Array>;

/** The id of each row of a file, unchanged. Throws config failures that name the line. */
export async function* idsFromFile(path: string, options: ListOptions = {}): AsyncGenerator<unknown> {
  if (options.column === undefined && WITH_COLUMNS.includes(extname(path).toLowerCase())) throw columnWanted(path);
  yield* fromFile(path, (input) => idsFrom(input, path, options));
}

/** Yields several columns of each row of such a file in one pass, since a pipe can be read only once. */
export const rowsFromFile = (path: string, columns: readonly string[]): AsyncGenerator<readonly unknown[]> =>
  fromFile(path, (input) => rowsFrom(input, path, columns));

async function* fromFile<T>(path: string, read: (input: Bytes) => AsyncIterable<T>): AsyncGenerator<T> {
  try {
    yield* read(createReadStream(path));
  } catch (error) {
    if (error instanceof UserError) throw error;
    throw configError(`The list ${path} cannot be read: ${messageOf(error)}.`, { cause: error });
  }
}

/** Yields the id of each row of a stream of bytes, unchanged; failures call it `name`. */
export async function* idsFrom(
  input: Bytes,
  name: string,
  { column, header }: ListOptions = {},
): AsyncGenerator<unknown> {
  if (column !== undefined) {
    for await (const [id] of rowsFrom(input, name, [column])) yield id;
    return;
  }
  const { first, all } = await peeked(input, name);
  if (first === '{') throw columnWanted(name);
  yield* plainLines(all, name, header);
}

async function* rowsFrom(input: Bytes, name: string, columns: readonly string[]): AsyncGenerator<readonly unknown[]> {
  const { first, all } = await peeked(input, name);
  yield* first === '{' ? jsonMembers(all, name, columns) : csvColumns(all, name, columns);
}

const columnWanted = (name: string) => configError(`The list ${name} has named columns: say which with --column.`);

/** The text of a list, and its first character that is not blank. */
async function peeked(input: Bytes, name: string) {
  const text = decoded(input, name);
  let begin = '';
  let first: string | undefined;
  while (first === undefined && begin.length < MAX_BLANK) {
    const { value, done } = await text.next();
    if (done) break;
    begin += value;
    first = /[^ \t\r\n]/.exec(begin)?.[0];
  }
  const all = (async function* () {
    yield begin;
    yield* text;
  })();
  return { first, all };
}

/** Decodes UTF-8, without its byte order mark. Rejects invalid UTF-8: to replace bytes would make another id. */
async function* decoded(input: Bytes, name: string): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let line = 1;
  let chunk: Uint8Array = Buffer.alloc(0);
  try {
    for await (chunk of input) {
      const text = decoder.decode(chunk, { stream: true });
      line += lineEndsIn(text);
      yield text;
    }
    decoder.decode();
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    const [valid] = new TextDecoder().decode(chunk).split('\ufffd', 1);
    throw configError(
      `The list ${name} is not valid UTF-8 at or after line ${line + lineEndsIn(valid)}; nothing was deleted.`,
    );
  }
}

const lineEndsIn = (text: string): number => text.split('\n').length - 1;

async function* textLines(input: AsyncIterable<string>): AsyncGenerator<[string, number]> {
  let number = 0;
  for await (const lines of linesOf(input)) {
    for (const line of lines) yield [line.toString().replace(/\r$/, ''), ++number];
  }
}

async function* plainLines(
  input: AsyncIterable<string>,
  name: string,
  header: string | undefined,
): AsyncGenerator<string> {
  let [isFirst, isFirstId] = [true, true];
  for await (const [text, line] of textLines(input)) {
    const isHeader = isFirst && text.trim() === header;
    if (isFirst && !isHeader) refuseHeader(text, name, line, header);
    if (isFirstId && !isHeader) refuseOtherForm(text, name, line);
    isFirst &&= text.trim() === '';
    isFirstId &&= isHeader || text.trim() === '';
    if (!isHeader) yield text;
  }
}

/** Characters that separate the cells of a CSV of any kind. */
const SEPARATORS = /[,;\t|]/;
/** Usual names of a column of ids, looked for beside the name of the id field. */
const USUAL_HEADERS = ['external_id', 'id'];

/** A line of a JSON array, or a quoted cell, with which a list begins that has not one id a line. */
const OTHER_FORM = /^\s*(?:\[\s*(?:["{].*)?|".*"\s*,?\s*)$/;

/** Refuses a first line that looks like the name of the id column, which must not be deleted as an id. */
function refuseHeader(text: string, name: string, line: number, header: string | undefined): void {
  const wanted = new Set([...USUAL_HEADERS, header ?? ''].map(lettersOf));
  const cells = text.split(SEPARATORS);
  const found = cells.find((cell) => lettersOf(cell) !== '' && wanted.has(lettersOf(cell)));
  if (found === undefined) return;
  const what = cells.length === 1 ? 'a column' : 'several columns';
  const remedy = cells.length === 1 ? ', or remove this line' : '';
  throw configError(
    `Line ${line} of the list ${name} looks like the header of ${what}: name the column with --column${remedy}. Nothing was deleted.`,
  );
}

function refuseOtherForm(text: string, name: string, line: number): void {
  if (!OTHER_FORM.test(text)) return;
  throw configError(
    `Line ${line} of the list ${name} looks like JSON or a quoted cell, not like an ID: give one bare ID a line, or ` +
      'CSV or JSON Lines with --column. Nothing was deleted.',
  );
}

const lettersOf = (text: string): string => text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '');

async function* jsonMembers(
  input: AsyncIterable<string>,
  name: string,
  keys: readonly string[],
): AsyncGenerator<unknown[]> {
  for await (const [text, number] of textLines(input)) {
    if (text.trim() === '') continue;
    const value = jsonOf(text);
    if (!isObject(value)) {
      const why = value === undefined ? 'is not JSON' : 'is no object';
      throw configError(`Line ${number} of the list ${name} ${why}; nothing was deleted.`);
    }
    if (hasRepeatedMember(text, value)) {
      throw configError(`Line ${number} of the list ${name} has a member twice; nothing was deleted.`);
    }
    yield keys.map((key) => (Object.hasOwn(value, key) ? value[key] : undefined));
  }
}

async function* csvColumns(
  input: AsyncIterable<string>,
  name: string,
  columns: readonly string[],
): AsyncGenerator<string[]> {
  const parser = parse({ max_record_size: MAX_RECORD, skip_empty_lines: true });
  const source = Readable.from(input);
  source.on('error', (error) => parser.destroy(error));
  source.pipe(parser);
  let places: number[] | undefined;
  try {
    for await (const row of parser as AsyncIterable<string[]>) {
      if (places === undefined) places = columns.map((column) => columnIndex(row, name, column));
      else yield places.map((at) => row[at]);
    }
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    // The parser's own message may quote the text at fault.
    const line = String(error.lines ?? '?');
    throw configError(`The list ${name} is not sound CSV near line ${line} (${error.code}); nothing was deleted.`);
  } finally {
    source.destroy();
  }
}

function columnIndex(header: readonly string[], name: string, column: string): number {
  const at = header.indexOf(column);
  if (at !== -1 && header.indexOf(column, at + 1) === -1) return at;
  const why = at === -1 ? 'has no column' : 'has more than one column';
  throw configError(`The list ${name} ${why} ${JSON.stringify(column)}; nothing was deleted.`);
}
