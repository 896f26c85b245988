import { isUtf8 } from 'node:buffer';
import { createReadStream } from 'node:fs';
import { extname } from 'node:path';
import { Readable } from 'node:stream';
import { CsvError, parse } from 'csv-parse';
import { configError, messageOf } from '../../base/errors.ts';
import { isObject } from '../../base/json.ts';
import { linesOf } from '../../base/lines.ts';

export interface ListOptions {
  /** Column of a CSV, or member of JSON Lines (which begin with a brace), whatever the list is called; absent: one id a line. */
  readonly column?: string | undefined;
  /** Name of the id field: as the first line of a plain list it is a header. */
  readonly header?: string | undefined;
}

/** Extensions of files with columns, whose lines must not be taken for ids. */
const WITH_COLUMNS = ['.csv', '.tsv', '.json', '.jsonl', '.ndjson'];
const BRACE = 0x7b;
/** The byte order mark of UTF-8. */
const MARK = Buffer.from([0xef, 0xbb, 0xbf]);
/** Space, tab and line ends. */
const BLANKS = new Set([0x20, 0x09, 0x0a, 0x0d]);
/** Bytes of blank lines that are read before a list counts as one of plain lines. */
const MAX_BLANK = 64 * 1024;
const MAX_RECORD = 64 * 1024 * 1024;

/** The id of each row of a file, unchanged. Throws config failures that name the line. */
export async function* idsFromFile(path: string, options: ListOptions = {}): AsyncGenerator<unknown> {
  if (options.column === undefined && WITH_COLUMNS.includes(extname(path).toLowerCase())) throw columnWanted(path);
  yield* fromFile(path, (begun) => idsIn(begun, path, options));
}

/** Several columns of each row of such a file, in one pass: a pipe can be read only once. */
export const rowsFromFile = (path: string, columns: readonly string[]): AsyncGenerator<readonly unknown[]> =>
  fromFile(path, (begun) => columnsOf(begun, path, columns));

async function* fromFile<T>(path: string, read: (begun: Begun) => AsyncIterable<T>): AsyncGenerator<T> {
  try {
    yield* read(await peeked(createReadStream(path)));
  } catch (error) {
    if (error instanceof Error && error.name === 'UserError') throw error;
    throw configError(`The list ${path} cannot be read: ${messageOf(error)}.`, { cause: error });
  }
}

/** The same from any stream of bytes; `name` is what failures call it. */
export async function* idsFrom(
  input: AsyncIterable<Uint8Array>,
  name: string,
  options: ListOptions = {},
): AsyncGenerator<unknown> {
  yield* idsIn(await peeked(input), name, options);
}

async function* idsIn(begun: Begun, name: string, { column, header }: ListOptions): AsyncGenerator<unknown> {
  if (column !== undefined) for await (const [id] of columnsOf(begun, name, [column])) yield id;
  else if (begun.first === BRACE) throw columnWanted(name);
  else yield* plainLines(begun.all, name, header);
}

const columnsOf = ({ first, all }: Begun, name: string, columns: readonly string[]) =>
  first === BRACE ? jsonMembers(all, name, columns) : csvColumns(all, name, columns);

const columnWanted = (name: string) => configError(`The list ${name} has named columns: say which with --column.`);

interface Begun {
  /** First byte that is not blank, after a byte order mark; 0 where there is none. */
  readonly first: number;
  /** Everything but the byte order mark. */
  readonly all: AsyncGenerator<Uint8Array>;
}

/** Whoever writes to a pipe may write the byte order mark alone, or a part of it. */
async function peeked(input: AsyncIterable<Uint8Array>): Promise<Begun> {
  const iterator = input[Symbol.asyncIterator]();
  let begin: Buffer = Buffer.alloc(0);
  while (begin.length < MARK.length || (firstIn(withoutMark(begin)) === undefined && begin.length < MAX_BLANK)) {
    const { value, done } = await iterator.next();
    if (done) break;
    begin = Buffer.concat([begin, value]);
  }
  const text = withoutMark(begin);
  const all = (async function* () {
    yield text;
    yield* { [Symbol.asyncIterator]: () => iterator };
  })();
  return { first: firstIn(text) ?? 0, all };
}

const withoutMark = (bytes: Buffer): Buffer =>
  bytes.subarray(0, MARK.length).equals(MARK) ? bytes.subarray(MARK.length) : bytes;

const firstIn = (text: Buffer): number | undefined => text.find((byte) => !BLANKS.has(byte));

async function* textLines(input: AsyncIterable<Uint8Array>, name: string): AsyncGenerator<[string, number]> {
  let number = 0;
  for await (const lines of linesOf(input)) {
    for (const line of lines) {
      number++;
      if (!isUtf8(line)) throw notText(name, number);
      yield [line.toString().replace(/\r$/, ''), number];
    }
  }
}

async function* plainLines(
  input: AsyncIterable<Uint8Array>,
  name: string,
  header: string | undefined,
): AsyncGenerator<string> {
  let isFirst = true;
  for await (const [text, line] of textLines(input, name)) {
    const isHeader = isFirst && text.trim() === header;
    if (isFirst && !isHeader) refuseHeader(text, name, line, header);
    isFirst &&= text.trim() === '';
    if (!isHeader) yield text;
  }
}

/** What separates the cells of a CSV, whichever kind it is. */
const SEPARATORS = /[,;\t|]/;
/** What a column of ids is called where the id field has another name. */
const USUAL_HEADERS = ['external_id', 'id'];

/** Nobody is deleted for being called as the column of ids is: a first line that means the header is one, or a mistake. */
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

/** A name as people tell it from another: without case, quotes and what stands between its words. */
const lettersOf = (text: string): string => text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '');

async function* jsonMembers(
  input: AsyncIterable<Uint8Array>,
  name: string,
  keys: readonly string[],
): AsyncGenerator<unknown[]> {
  for await (const [text, number] of textLines(input, name)) {
    if (text.trim() === '') continue;
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      throw configError(`Line ${number} of the list ${name} is not JSON; nothing was deleted.`);
    }
    if (!isObject(value)) throw configError(`Line ${number} of the list ${name} is no object; nothing was deleted.`);
    const members = value;
    yield keys.map((key) => (Object.hasOwn(members, key) ? members[key] : undefined));
  }
}

async function* csvColumns(
  input: AsyncIterable<Uint8Array>,
  name: string,
  columns: readonly string[],
): AsyncGenerator<string[]> {
  const parser = parse({ max_record_size: MAX_RECORD, skip_empty_lines: true });
  const source = Readable.from(decoded(input, name));
  source.on('error', (error) => parser.destroy(error));
  source.pipe(parser);
  let places: number[] | undefined;
  try {
    for await (const row of parser as AsyncIterable<string[]>) {
      if (places === undefined) places = columns.map((column) => placeOf(row, name, column));
      else yield places.map((at) => row[at]);
    }
  } catch (error) {
    throw error instanceof CsvError ? notCsv(name, error) : error;
  } finally {
    source.destroy();
  }
}

/** Rejects invalid UTF-8: replacing bytes would make another id. */
async function* decoded(input: AsyncIterable<Uint8Array>, name: string): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  let line = 1;
  try {
    for await (const chunk of input) {
      const text = decoder.decode(chunk, { stream: true });
      for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', end + 1)) line++;
      if (text !== '') yield text;
    }
    decoder.decode();
  } catch (error) {
    throw error instanceof TypeError ? notText(name, line) : error;
  }
}

function placeOf(header: readonly string[], name: string, column: string): number {
  const at = header.indexOf(column);
  if (at !== -1 && header.indexOf(column, at + 1) === -1) return at;
  const why = at === -1 ? 'has no column' : 'has more than one column';
  throw configError(`The list ${name} ${why} ${JSON.stringify(column)}; nothing was deleted.`);
}

/** The parser's own message may quote the text at fault. */
const notCsv = (name: string, { code, lines }: CsvError) =>
  configError(`The list ${name} is not sound CSV near line ${String(lines ?? '?')} (${code}); nothing was deleted.`);

const notText = (name: string, line: number) =>
  configError(`The list ${name} is not valid UTF-8 at or after line ${line}; nothing was deleted.`);
