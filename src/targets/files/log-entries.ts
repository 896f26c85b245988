import validChanges from '../../../schemas/table-state.changes.validator';
import validColumns from '../../../schemas/table-state.columns.validator';
import validNote from '../../../schemas/table-state.note.validator';
import validWindow from '../../../schemas/table-state.window.validator';
import { internalError, type UserError } from '../../base/errors.ts';
import { groupBy } from '../../base/group.ts';
import { jsonOf } from '../../base/json.ts';
import { firstProblem, type Validator } from '../../base/validator.ts';
import { literal } from '../../cells/types/sql.ts';
import type { Engine } from '../../engine/session/engine.ts';
import { identifier } from '../../engine/session/quote.ts';
import type { ExportState } from '../../extract/window.ts';
import type { ColumnChange } from '../../table/changes.ts';
import { FIRST_COLUMNS, type StoredColumn } from '../../table/columns.ts';
import { ITEM_POSITION } from '../../table/names.ts';
import type { StoredReceipt } from '../../table/receipts.ts';
import type { TableState } from '../../table/state.ts';
import type { ColumnStatistics, DataFile, NewFile } from './data-file.ts';
import { FILE, PARTITION_COLUMN, readFiles, readFilesWithPaths } from './parquet-file.ts';

// The part of a log that is this program's own: the state as texts by name, a note of each file, and statistics.

// The names of the entries as they are stored: the export state is the `cursor` there.
const EXPORT_STATE = 'cursor';
const WINDOW = 'window.';
const CHANGES = 'changes.';

export const isReceiptEntry = (name: string): boolean => name.startsWith(WINDOW);

/**
 * The entries of a state, JSON by name. The rows that each window still has are not among them, since the files show
 * them (`receiptsWith(receipts, liveRows(files))`); nor are zone, tables and event names, for which each log has its
 * own place. A log whose entries stay for good, as in Delta, leaves the event names out.
 */
export function stateEntries({ columns, receipts, exportState, changes }: TableState): Map<string, string> {
  const byReceipt = groupBy(changes, ({ window }) => window);
  const entries: [string, unknown][] = [
    ['columns', columns],
    [EXPORT_STATE, exportState],
    ...receipts.map(({ rows_live: _live, ...receipt }): [string, unknown] => [WINDOW + receipt.window, receipt]),
    ...[...byReceipt].map(([receiptId, own]): [string, unknown] => [CHANGES + receiptId, { changes: own }]),
  ];
  return new Map(entries.map(([name, value]) => [name, JSON.stringify(value)]));
}

/** The difference between two sets of entries: the entries to write, and the names of those to remove. */
export function entryChanges(before: ReadonlyMap<string, string>, wanted: ReadonlyMap<string, string>) {
  return {
    written: [...wanted].filter(([name, text]) => before.get(name) !== text),
    removed: [...before.keys()].filter((name) => !wanted.has(name)),
  };
}

/**
 * The state that entries hold, checked by schemas/table-state.json, which serves every log. `failed` makes the failure
 * for an entry that this program cannot have written.
 */
export function stateFrom(
  entries: ReadonlyMap<string, string>,
  failed: (name: string, why: string) => UserError,
): Pick<TableState, 'columns' | 'receipts' | 'exportState' | 'changes'> {
  const read = <T>(name: string, valid?: Validator): T | undefined => {
    const text = entries.get(name);
    if (text === undefined) return undefined;
    const value = jsonOf(text);
    if (value === undefined) throw failed(name, 'it is not JSON');
    if (valid === undefined || valid<T>(value)) return value as T;
    throw failed(name, firstProblem(valid));
  };
  const below = <T>(prefix: string, valid: Validator): T[] =>
    [...entries.keys()].filter((name) => name.startsWith(prefix)).flatMap((name) => read<T>(name, valid) ?? []);
  const changes = below<{ readonly changes: readonly ColumnChange[] }>(CHANGES, validChanges);
  return {
    columns: read<StoredColumn[]>('columns', validColumns) ?? FIRST_COLUMNS,
    receipts: below<StoredReceipt>(WINDOW, validWindow).sort((a, b) => a.window - b.window),
    exportState: read<ExportState | null>(EXPORT_STATE) ?? null,
    changes: changes
      .flatMap((own) => own.changes)
      .sort((a, b) => (a.changedAt < b.changedAt ? -1 : a.changedAt > b.changedAt ? 1 : 0)),
  };
}

/**
 * The note of a file, as JSON: facts for which a log has no member. A log keeps it wherever it has room for a text: in
 * a tag, a column or a member. Table, path, date, rows, bytes and the names of columns have members of their own.
 */
export interface FileNote {
  readonly id: string;
  readonly sha256?: string;
  readonly windows?: Readonly<Record<string, number>>;
  readonly source?: string;
  readonly is_sorted?: boolean;
}

export const noteOf = ({ table, id, sha256, windows, source, isSorted }: DataFile): FileNote => ({
  id,
  ...(sha256 !== undefined && { sha256 }),
  ...(table === 'events' && { windows: Object.fromEntries(windows) }),
  ...(source !== undefined && { source }),
  ...(isSorted && { is_sorted: true }),
});

/** A note from its text. `failed` makes the failure for one that this program cannot have written. */
export function noteFrom(text: string, failed: (why: string) => UserError): FileNote {
  const value = jsonOf(text);
  if (value === undefined) throw failed('it is not JSON');
  if (validNote<FileNote>(value)) return value;
  throw failed(firstProblem(validNote));
}

/** Rows by window, of a member of JSON that has them by the text of its number. */
export const windowRowsOf = (member: Readonly<Record<string, number>>): Map<number, number> =>
  new Map(Object.entries(member).map(([windowNumber, rows]) => [Number(windowNumber), rows]));

export function notedOf(note: FileNote): Pick<DataFile, 'id' | 'sha256' | 'windows' | 'source' | 'isSorted'> {
  const { id, sha256, windows = {}, source, is_sorted: isSorted = false } = note;
  return { id, sha256, windows: windowRowsOf(windows), isSorted, ...(source !== undefined && { source }) };
}

interface LoggedColumn extends ColumnStatistics {
  /** Number of rows without a value; for a list, of rows without a list. */
  readonly absent: number;
}

/**
 * The columns whose range a log may hold: the date, system datetimes, this program's own numbers. That of any other is
 * a person's value.
 */
export function rangedColumns({ columns }: TableState): ReadonlySet<string> {
  const times = columns.filter(({ group, type }) => group === 'system' && type === 'datetime');
  return new Set([PARTITION_COLUMN, '_dfinery_window', ITEM_POSITION, ...times.map(({ name }) => name)]);
}

export type LoggedColumns = ReadonlyMap<string, LoggedColumn>;

/** The statistics of new files by column, with a range only for those in `ranged`: a log may keep it for good. */
export async function loggedColumns(engine: Engine, files: readonly NewFile[], ranged: ReadonlySet<string>) {
  const absentLists = await countAbsentLists(engine, files);
  const logged = new Map<NewFile, LoggedColumns>();
  for (const file of files) {
    const columns = new Map<string, LoggedColumn>();
    for (const [name, own] of file.statistics) {
      const absent = own.isList ? absentLists.get(keyOf(file.local, name)) : own.nulls;
      if (absent === undefined && file.rows > 0)
        throw internalError(`DuckDB counted no lists of ${name} in ${file.local}.`);
      const range = ranged.has(name) ? await rangeOf(engine, file.local, name, own) : NO_RANGE;
      columns.set(name, { ...own, ...range, absent: absent ?? 0 });
    }
    logged.set(file, columns);
  }
  return logged;
}

const keyOf = (path: string, column: string): string => `${path}\0${column}`;

/** Counts the rows without a list, by the local path of their file and the column; a file without rows has no entry. */
async function countAbsentLists(engine: Engine, files: readonly NewFile[]): Promise<Map<string, number>> {
  const absent = new Map<string, number>();
  const byColumns = groupBy(files, ({ statistics }) =>
    JSON.stringify([...statistics].map(([name, own]) => [name, own.isList])),
  );
  for (const group of byColumns.values()) {
    const lists = [...group[0].statistics].filter(([, { isList }]) => isList).map(([name]) => name);
    if (lists.length === 0) continue;
    const counts = lists.map((name) => `count(*) - count(${identifier(name)})`);
    const paths = group.map(({ local }) => local);
    const rows = await engine.rows(
      `SELECT ${FILE} AS path, unnest([${lists.map(literal).join(', ')}]) AS name, unnest([${counts.join(', ')}]) AS n
      FROM ${readFilesWithPaths(paths)} GROUP BY ${FILE}`,
    );
    for (const { path, name, n } of rows) absent.set(keyOf(String(path), String(name)), Number(n));
  }
  return absent;
}

const NO_RANGE = { least: null, greatest: null };

/** The range of a column. DuckDB gives none for a column that has no value in one of several row groups. */
async function rangeOf(engine: Engine, local: string, name: string, { values, least, greatest }: ColumnStatistics) {
  if (values === 0 || least !== null) return { least, greatest };
  const ask = (value: string) => engine.row(`SELECT ${value} FROM ${readFiles([local])}`);
  const column = identifier(name);
  const { type } = await ask(`typeof(min(${column})) AS type`);
  // DuckDB's own ranges have instants in UTC; this text would be in the zone of this machine.
  const text = (value: string) =>
    type === 'TIMESTAMP WITH TIME ZONE'
      ? `CAST(timezone('UTC', ${value}) AS VARCHAR) || '+00'`
      : `CAST(${value} AS VARCHAR)`;
  const { lo, hi } = await ask(`${text(`min(${column})`)} AS lo, ${text(`max(${column})`)} AS hi`);
  return { least: String(lo), greatest: String(hi) };
}
