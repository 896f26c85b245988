import schema from '../../../schemas/delta-table.json' with { type: 'json' };
import { configFailure } from '../../base/errors.ts';
import { VERSION } from '../../base/version.ts';
import { compileSchema, proved } from '../../config/validate.ts';
import type { State } from '../../extract/window.ts';
import type { ColumnChange } from '../../table/changes.ts';
import type { StoredColumn, TableName } from '../../table/columns.ts';
import { receiptsWith, type StoredReceipt } from '../../table/receipts.ts';
import type { TableState } from '../../table/state.ts';
import { liveRows } from '../files/load.ts';
import type { DataFile, NewFile, Snapshot } from '../files/log.ts';
import type { Lake, LakeFile } from './catalog.ts';

const WINDOW = 'window.';
const CHANGES = 'changes.';

/** What a state says of itself beside columns, receipts and cursor. */
interface TableInfo {
  readonly writer: string;
  readonly timezone: string | null;
  readonly tables: readonly TableName[];
}

/** What the catalog has no place for of a file. */
interface FileNote {
  readonly id: string;
  readonly sha256: string;
  /** Of `events`: rows by the number of the window that last wrote them. */
  readonly windows?: Readonly<Record<string, number>>;
  /** Of the others: the id of the file of `events` that its rows come from. */
  readonly source?: string;
  readonly sorted?: boolean;
  /** Rows without a value by column: every column that the file has but its date. */
  readonly nulls: Readonly<Record<string, number>>;
}

const VALID = {
  columns: compileSchema(schema.definitions.columns),
  window: compileSchema(schema.definitions.window),
  changes: compileSchema(schema.definitions.changes),
};

export function noteOf(file: NewFile, nulls: ReadonlyMap<string, number>): string {
  const { id, sha256 = '', windows, source, isSorted, table, columns } = file;
  const note: FileNote = {
    id,
    sha256,
    ...(table === 'events' && { windows: Object.fromEntries(windows) }),
    ...(source !== undefined && { source }),
    ...(isSorted && { sorted: true }),
    nulls: Object.fromEntries([...columns].map((name) => [name, nulls.get(name) ?? file.rows])),
  };
  return JSON.stringify(note);
}

/** The rows of `_dfinery_state` that hold a state. */
export function stateEntries(state: TableState): [string, string][] {
  const { timezone, tables, columns, cursor, eventNames } = state;
  const info: TableInfo = { writer: VERSION, timezone, tables };
  const changes = new Map<string, ColumnChange[]>();
  for (const change of state.changes) changes.set(change.window, [...(changes.get(change.window) ?? []), change]);
  const entries: [string, unknown][] = [
    ['table', info],
    ['columns', columns],
    ['cursor', cursor],
    ['event_names', eventNames],
    // The rows that a window still has are counted in the notes of the files.
    ...state.receipts.map(({ rows_live: _live, ...receipt }): [string, unknown] => [WINDOW + receipt.window, receipt]),
    ...[...changes].map(([window, own]): [string, unknown] => [CHANGES + window, { changes: own }]),
  ];
  return entries.map(([name, value]) => [name, JSON.stringify(value)]);
}

/**
 * The tables as a catalog has them, and those files of ours that another program wrote or deleted rows of. Undefined if the catalog has no state of ours. Throws Failure. `file`: the catalog, for messages.
 */
export function snapshotOf(
  lake: Lake | undefined,
  file: string,
): { readonly snapshot: Snapshot | undefined; readonly changed: readonly LakeFile[] } {
  const text = lake?.state.get('table');
  if (lake === undefined || text === undefined) {
    const [foreign] = lake?.tables.keys() ?? [];
    if (foreign === undefined) return { snapshot: undefined, changed: [] };
    throw configFailure(`${file} has a table ${foreign} that this program did not make: give another catalog.`);
  }
  const read = <T>(name: string, valid?: (value: unknown) => boolean): T => {
    const value = jsonOf(lake.state.get(name) ?? 'null', file);
    if (valid !== undefined && !valid(value)) throw damaged(file, `its ${name} is not what this program writes`);
    return proved<T>(value);
  };
  const below = <T>(prefix: string, valid: (value: unknown) => boolean): T[] =>
    [...lake.state.keys()].filter((name) => name.startsWith(prefix)).map((name) => read<T>(name, valid));
  const info = read<TableInfo>('table');
  const changed = lake.files.filter(
    ({ note, deleted }) => note === undefined || deleted.positions.length > 0 || deleted.files.length > 0,
  );
  const foreign = new Set(changed);
  const files = lake.files.map((one) => (foreign.has(one) ? changedFile(one) : dataFileOf(one, file)));
  const receipts = below<StoredReceipt>(WINDOW, VALID.window).sort((a, b) => a.window - b.window);
  const changes = below<{ readonly changes: readonly ColumnChange[] }>(CHANGES, VALID.changes).flatMap(
    (own) => own.changes,
  );
  for (const [table, rows] of lake.inlinedRows) throw insertedFailure(file, table, rows);
  const isStale = (name: TableName) => !lake.tables.has(name) || changed.some(({ table }) => table === name);
  return {
    changed,
    snapshot: {
      files: files.sort((a, b) => (a.path < b.path ? -1 : 1)),
      stale: new Set(info.tables.filter((name) => name !== 'events' && isStale(name))),
      state: {
        timezone: info.timezone,
        tables: info.tables,
        columns: read<StoredColumn[]>('columns', VALID.columns),
        // What another program changed is taken in before a receipt is dropped for having no rows.
        receipts: changed.length > 0 ? receipts : receiptsWith(receipts, liveRows(files)),
        eventNames: read<string[]>('event_names'),
        cursor: read<State | null>('cursor'),
        changes: changes.sort((a, b) => (a.changedAt < b.changedAt ? -1 : a.changedAt > b.changedAt ? 1 : 0)),
      },
    },
  };
}

/** Rows that belong to no window: this program cannot tell what would supersede or purge them. */
export const insertedFailure = (file: string, table: TableName, rows: number) =>
  configFailure(
    `${file}: another program inserted ${rows} row${rows === 1 ? '' : 's'} into ${table}, which this one cannot keep: they belong to no export. Delete them there, or move them into another table, and run again.`,
  );

const damaged = (file: string, why: string) =>
  configFailure(`${file} cannot be used: ${why}. Restore it, or load the days again into another catalog.`, {
    where: { file },
  });

function jsonOf(text: string, file: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw damaged(file, 'what this program stored in it is not JSON');
  }
}

function dataFileOf(file: LakeFile, catalog: string): DataFile {
  const { table, path, rows, bytes, date = null } = file;
  const note = proved<FileNote>(jsonOf(file.note ?? '', catalog));
  const nulls = Object.entries(note.nulls);
  return {
    table,
    path,
    id: note.id,
    date,
    rows,
    bytes,
    sha256: note.sha256,
    columns: new Set(nulls.map(([name]) => name)),
    nulls: new Map(nulls),
    windows: new Map(Object.entries(note.windows ?? {}).map(([window, n]) => [Number(window), n])),
    ...(note.source !== undefined && { source: note.source }),
    isSorted: note.sorted === true,
  };
}

/** A file that another program changed, as one that leaves. */
export const changedFile = ({ table, path, rows, bytes, date = null }: LakeFile): DataFile => ({
  table,
  path,
  id: path,
  date,
  rows,
  bytes,
  sha256: undefined,
  columns: new Set(),
  windows: new Map(),
  isSorted: false,
});
