// The files that an officer gives. With named columns they are CSV with a header, or JSON Lines, which begin with a
// brace. A list without a column is one external id a line.

import { isUtf8 } from 'node:buffer';
import { createReadStream } from 'node:fs';
import { readLines, withStart } from '../../base/byte-streams.ts';
import { configError, type UserError } from '../../base/errors.ts';
import { isObject, parseJsonOfKind } from '../../base/json.ts';
import { isPlaceholder } from '../../base/placeholder.ts';
import { formatCount } from '../../base/quantities.ts';
import { nfc } from '../../base/text.ts';
import { MalformedCsv, UnusableCsv } from '../../cells/csv/malformed.ts';
import { RowReader } from '../../cells/csv/row-reader.ts';
import { UNIFIED_ID } from '../../cells/header.ts';
import type { UnifiedIdsById } from '../../engine/people/people.ts';
import { whyUnreadable } from '../../fs/disk-failure.ts';
import type { ListRow } from './id-list.ts';

/** A path, or bytes such as those of standard input. */
type ListSource = string | AsyncIterable<Uint8Array>;

/** Bytes, and the words for them with which a message begins. */
interface NamedBytes {
  readonly name: string;
  readonly bytes: AsyncGenerator<Uint8Array, void, undefined>;
}

/** Number of the first lines of a list without a column that are looked at, and what no id has there. */
const CHECKED_LINE_COUNT = 10;
const TABLE_MARK = /[,;\t"{}[\]]/;

/**
 * The rows of a list, as a spreadsheet numbers them; without an `idColumn` one id a line. `timeColumn`: when the deletion
 * of each was asked for. Throws config failures that name the row.
 */
export async function* readList(source: ListSource, idColumn?: string, timeColumn?: string): AsyncGenerator<ListRow> {
  const input = namedBytes(source, typeof source === 'string' ? `The list ${source}` : 'The list');
  if (idColumn === undefined) {
    if (typeof source === 'string' && /\.csv$/i.test(source)) throw needsColumnError(input, 'is a CSV by its name');
    yield* readIdLines(input);
    return;
  }
  const columns = timeColumn === undefined ? [idColumn] : [idColumn, timeColumn];
  for await (const [rowNumber, [id, requestedAt]] of readColumns(input, columns)) yield { rowNumber, id, requestedAt };
}

/** The lines of a list without a column, unless its first ones look like a table. */
async function* readIdLines(input: NamedBytes): AsyncGenerator<ListRow> {
  for await (const [rowNumber, id] of textLines(input)) {
    if (rowNumber <= CHECKED_LINE_COUNT && TABLE_MARK.test(id)) {
      const problem = `looks like a table in line ${rowNumber}: commas, semicolons, tabs, quotes or braces`;
      throw needsColumnError(input, problem);
    }
    yield { rowNumber, id };
  }
}

/** The lines that are not empty, each with its number. */
async function* textLines(input: NamedBytes): AsyncGenerator<[number, string]> {
  let lineNumber = 0;
  for await (const lines of readLines(input.bytes)) {
    for (const line of lines) {
      lineNumber++;
      if (!isUtf8(line)) throw notUtf8Error(input);
      const text = line.toString().replace(lineNumber === 1 ? /^\ufeff|\r+$/g : /\r+$/, '');
      if (text !== '') yield [lineNumber, text];
    }
  }
}

/** The rows by their numbers, each with its cells of the columns that are read. */
type NumberedRows<T> = AsyncGenerator<[rowNumber: number, cells: T[]]>;

/** Each row of CSV or of JSON Lines, in one pass: a pipe can be read only once. */
async function* readColumns({ name, bytes }: NamedBytes, columns: readonly string[]): NumberedRows<unknown> {
  const chunks: Uint8Array[] = [];
  let text = '';
  // The first chunks of a pipe may hold a mark or blanks alone.
  while (text === '') {
    const { value, done } = await bytes.next();
    if (done) break;
    chunks.push(value);
    text = Buffer.concat(chunks).toString().trimStart();
  }
  const input = { name, bytes: withStart(Buffer.concat(chunks), bytes) };
  yield* text.startsWith('{') ? readJsonLines(input, columns) : readCsv(input, columns);
}

async function* readJsonLines(input: NamedBytes, columns: readonly string[]): NumberedRows<unknown> {
  let isFirstObject = true;
  for await (const [lineNumber, text] of textLines(input)) {
    const members = parseJsonOfKind(isObject, text);
    const lineError = (problem: string) => listError(`${input.name}, line ${lineNumber}: ${problem}.`);
    if (members === undefined) throw lineError('this is no JSON object');
    const cells = columns.map((column) => Object.entries(members).find(([key]) => nfc(key) === nfc(column))?.[1]);
    if (isFirstObject && cells.includes(undefined)) {
      const memberNames = Object.keys(members).map((key) => JSON.stringify(key));
      throw lineError(`there is no ${columns[cells.indexOf(undefined)]}, but ${memberNames.join(', ')}`);
    }
    isFirstObject = false;
    yield [lineNumber, cells];
  }
}

async function* readCsv(input: NamedBytes, columns: readonly string[]): NumberedRows<string> {
  let indices: readonly number[] | undefined;
  for await (const [rowNumber, cells] of csvRows(input)) {
    if (indices === undefined) indices = columns.map((column) => columnIndex(cells, column, input));
    else yield [rowNumber, indices.map((index) => cells[index])];
  }
}

/** All rows of CSV with all of their cells, the header first. */
async function* csvRows(input: NamedBytes): NumberedRows<string> {
  const reader = new RowReader();
  try {
    for await (const chunk of input.bytes) {
      reader.push(chunk);
      yield* wholeRows(reader, input);
    }
    reader.finish();
    yield* wholeRows(reader, input);
  } catch (error) {
    if (error instanceof UnusableCsv) throw notUtf8Error(input);
    if (!(error instanceof MalformedCsv)) throw error;
    throw listError(`${input.name} is no whole CSV: ${error.clause}.`);
  }
}

function* wholeRows(reader: RowReader, input: NamedBytes): Generator<[number, string[]]> {
  while (reader.next()) {
    // To go on with U+FFFD in place of other bytes would name somebody else.
    if (reader.replacementIndices.length > 0) throw notUtf8Error(input);
    yield [reader.rowNumber, reader.row.texts()];
  }
}

function columnIndex(header: readonly string[], column: string, { name }: NamedBytes): number {
  if (header.some((text) => /\r(?!\n)/.test(text)))
    throw listError(`${name} ends its lines with CR alone: save it as CSV UTF-8.`);
  const names = header.map(nfc);
  const index = names.indexOf(nfc(column));
  if (index !== -1 && index === names.lastIndexOf(nfc(column))) return index;
  const quoted = JSON.stringify(column);
  if (index !== -1) throw listError(`${name} has the column ${quoted} more than once.`);
  const isOtherCsv = header.length === 1 && /[;\t]/.test(header[0]);
  const remedy = isOtherCsv ? 'Save it as CSV with commas.' : 'If that line is no header, put one above it.';
  // Without a header the first line is a person: no word of it goes into a log.
  const columnsText = `its first line has ${formatCount(header.length, 'column')}, separated by commas`;
  throw listError(`${name} has no column ${quoted}: ${columnsText}. ${remedy}`);
}

const namedBytes = (source: ListSource, name: string): NamedBytes => ({ name, bytes: bytesOf(source, name) });

async function* bytesOf(source: ListSource, name: string): NamedBytes['bytes'] {
  try {
    yield* typeof source === 'string' ? createReadStream(source) : source;
  } catch (error) {
    throw configError(`${name} cannot be read: ${whyUnreadable(error)}.`, { cause: error });
  }
}

const listError = (message: string): UserError => configError(`${message} Nothing was done.`);

const needsColumnError = ({ name }: NamedBytes, problem: string): UserError =>
  listError(`${name} ${problem}. Name the column with the external IDs with --column, or keep only the IDs.`);

const notUtf8Error = ({ name }: NamedBytes): UserError => listError(`${name} is not valid UTF-8: save it as UTF-8.`);

/** The unified ids that a file with the columns external_id and df_unified_id gives these ids. */
export async function readMapping(path: string, ids: ReadonlySet<string>): Promise<UnifiedIdsById> {
  const mapping = new Map<string, string[]>();
  const input = namedBytes(path, `The mapping ${path}`);
  for await (const [rowNumber, [id, unifiedId]] of readColumns(input, ['external_id', UNIFIED_ID])) {
    // To skip such a value would leave the person where it is, and its text might be another id.
    if ([id, unifiedId].some((cell) => typeof (cell ?? '') !== 'string'))
      throw listError(`Row ${rowNumber} of ${path} holds a value that is not text: put it in quotes.`);
    if (typeof id !== 'string' || !ids.has(id) || typeof unifiedId !== 'string' || isPlaceholder(unifiedId)) continue;
    const unifiedIds = mapping.get(id) ?? [];
    if (!unifiedIds.includes(unifiedId)) mapping.set(id, [...unifiedIds, unifiedId]);
  }
  return mapping;
}
