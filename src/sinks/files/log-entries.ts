import validChanges from '../../../schemas/table-state.changes.validator';
import validColumns from '../../../schemas/table-state.columns.validator';
import validWindow from '../../../schemas/table-state.window.validator';
import type { UserError } from '../../base/errors.ts';
import { groupBy } from '../../base/group.ts';
import { jsonOf } from '../../base/json.ts';
import type { Validator } from '../../base/validator.ts';
import type { ExportState } from '../../extract/window.ts';
import type { ColumnChange } from '../../table/changes.ts';
import { FIRST_COLUMNS, type StoredColumn } from '../../table/columns.ts';
import type { StoredReceipt } from '../../table/receipts.ts';
import type { TableState } from '../../table/state.ts';
import type { Engine } from '../sql/engine/engine.ts';
import { identifier } from '../sql/engine/quote.ts';
import type { ColumnStatistics, DataFile, NewFile } from './log.ts';
import { PARTITION, readFiles } from './parquet-file.ts';

// What a log keeps beside its own words: the state as texts by name, so that a commit writes only those that it changes; a note of
// each file; and what it may say of values (S44).

const EXPORT_STATE = 'cursor';
const WINDOW = 'window.';
const CHANGES = 'changes.';

export const isReceiptEntry = (name: string): boolean => name.startsWith(WINDOW);

/** Columns, receipts, export state and changes of a state; JSON by name. Without the rows that a window still has: files tell them. */
export function stateEntries({ columns, receipts, exportState, changes }: TableState): Map<string, string> {
  const byWindow = groupBy(changes, ({ window }) => window);
  const entries: [string, unknown][] = [
    ['columns', columns],
    [EXPORT_STATE, exportState],
    ...receipts.map(({ rows_live: _live, ...receipt }): [string, unknown] => [WINDOW + receipt.window, receipt]),
    ...[...byWindow].map(([window, own]): [string, unknown] => [CHANGES + window, { changes: own }]),
  ];
  return new Map(entries.map(([name, value]) => [name, JSON.stringify(value)]));
}

/** What makes texts by name others: the entries to write, and the names of those to remove. */
export function entryChanges(
  before: ReadonlyMap<string, string>,
  wanted: ReadonlyMap<string, string>,
): { readonly written: readonly [string, string][]; readonly removed: readonly string[] } {
  return {
    written: [...wanted].filter(([name, text]) => before.get(name) !== text),
    removed: [...before.keys()].filter((name) => !wanted.has(name)),
  };
}

/** The state of such texts. `failed`: the failure for an entry, by name, that is not what this program writes. Throws it. */
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
    const [first] = valid.errors ?? [];
    throw failed(name, `its ${first?.instancePath.slice(1) ?? ''} ${first?.message ?? 'is wrong'}`);
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

/** What this program notes of a file beside what its log says of every file, as JSON. */
export interface FileNote {
  readonly id: string;
  readonly sha256?: string;
  /** Of `events`: rows by the number of the window that last wrote them, as text. */
  readonly windows?: Readonly<Record<string, number>>;
  /** Of a derived table: the id of the file of `events` that its rows come from. */
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

/** The members of a file that a note has. */
export function notedOf(note: FileNote): Pick<DataFile, 'id' | 'sha256' | 'windows' | 'source' | 'isSorted'> {
  const { id, sha256, windows = {}, source, is_sorted: isSorted = false } = note;
  const rows = Object.entries(windows).map(([window, n]) => [Number(window), n] as const);
  return { id, sha256, windows: new Map(rows), isSorted, ...(source !== undefined && { source }) };
}

/** What a log says of one column of a file. */
export interface LoggedColumn extends ColumnStatistics {
  /** Rows without a value: of a list, rows without a list. */
  readonly absent: number;
}

/** The columns whose least and greatest values a log may hold: the date, system datetimes and our own numbers (S44). */
export function rangedColumns({ columns }: TableState): ReadonlySet<string> {
  const times = columns.filter(({ group, type }) => group === 'system' && type === 'datetime');
  return new Set([PARTITION, '_dfinery_window', 'item_position', ...times.map(({ name }) => name)]);
}

/**
 * What a log says of a new file, by column: rows and nulls of every column; least and greatest values of the columns in
 * `ranged` alone, since a log keeps them as long as the file, or for good (S44).
 */
export async function loggedColumns(
  engine: Engine,
  { local, statistics }: NewFile,
  ranged: ReadonlySet<string>,
): Promise<Map<string, LoggedColumn>> {
  const ask = (value: string) => engine.row(`SELECT ${value} FROM ${readFiles([local])}`);
  const lists = [...statistics].filter(([, { isList }]) => isList).map(([name]) => name);
  const counts = lists.map((name) => `count(*) - count(${identifier(name)})`);
  const { absentLists } = lists.length === 0 ? {} : await ask(`[${counts.join(', ')}] AS "absentLists"`);
  const absentOf = new Map(lists.map((name, i) => [name, Number((absentLists as bigint[])[i])]));
  const logged = new Map<string, LoggedColumn>();
  for (const [name, own] of statistics) {
    const column = identifier(name);
    const absent = absentOf.get(name) ?? own.nulls;
    let { least, greatest } = ranged.has(name) ? own : NO_RANGE;
    // DuckDB tells no range of a column that has no value in one of several row groups.
    if (ranged.has(name) && own.values > 0 && least === null) {
      const { type } = await ask(`typeof(min(${column})) AS type`);
      // The text of an instant is in UTC in the others, and would be in the zone of this machine.
      const text = (value: string) =>
        type === 'TIMESTAMP WITH TIME ZONE'
          ? `CAST(timezone('UTC', ${value}) AS VARCHAR) || '+00'`
          : `CAST(${value} AS VARCHAR)`;
      const { lo, hi } = await ask(`${text(`min(${column})`)} AS lo, ${text(`max(${column})`)} AS hi`);
      [least, greatest] = [String(lo), String(hi)];
    }
    logged.set(name, { ...own, least, greatest, absent });
  }
  return logged;
}

const NO_RANGE = { least: null, greatest: null };
