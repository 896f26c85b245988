import { identifier } from '../../cells/types/sql.ts';
import type { Engine, SqlValue } from '../../engine/session/engine.ts';

// The tables beside `events` with a row for each record: which they are, and how records are read and stored.

/** The types of columns, each with the SQL that reads one as a value of JSON; by default it is read as it is. */
const READ_AS = {
  VARCHAR: undefined,
  BIGINT: undefined,
  INTEGER: undefined,
  BOOLEAN: undefined,
  DATE: (column: string) => `CAST(${column} AS VARCHAR)`,
  TIMESTAMPTZ: (column: string) => `strftime(timezone('UTC', ${column}), '%Y-%m-%dT%H:%M:%S.%gZ')`,
} as const;

/** A table with a row for each record: its columns in their order, each with the record's member and a type. */
export interface RecordTable {
  readonly name: string;
  readonly comment: string;
  /** The columns by which rows are ordered; the first one identifies a row that may be replaced. */
  readonly key: string;
  readonly columns: Readonly<Record<string, readonly [member: string, type: keyof typeof READ_AS]>>;
}

export const DAYS = {
  name: '_dfinery_days',
  comment: 'A receipt of each day: the verified download that its rows come from.',
  key: 'event_date',
  columns: {
    event_date: ['day', 'DATE'],
    to_date: ['to_date', 'DATE'],
    requested_at: ['requested_at', 'TIMESTAMPTZ'],
    is_over: ['is_over', 'BOOLEAN'],
    filters: ['filters', 'VARCHAR'],
    rows: ['rows', 'BIGINT'],
    suppressed: ['suppressed', 'BIGINT'],
    rows_stored: ['rows_stored', 'BIGINT'],
    changed_at: ['changed_at', 'TIMESTAMPTZ'],
    pruned: ['pruned', 'BOOLEAN'],
    bytes: ['bytes', 'BIGINT'],
    sha256: ['sha256', 'VARCHAR'],
    exports: ['exports', 'INTEGER'],
    invalid_utf8: ['invalid_utf8', 'BIGINT'],
    verified_at: ['verified_at', 'TIMESTAMPTZ'],
    source: ['source', 'VARCHAR'],
  },
} satisfies RecordTable;

export const COLUMNS = {
  name: '_dfinery_columns',
  comment: 'The columns of events: their names in the export, groups and types.',
  key: 'position',
  columns: {
    source_name: ['source', 'VARCHAR'],
    occurrence: ['occurrence', 'INTEGER'],
    table_name: ['name', 'VARCHAR'],
    item_name: ['itemName', 'VARCHAR'],
    group: ['group', 'VARCHAR'],
    type: ['type', 'VARCHAR'],
    forms: ['forms', 'INTEGER'],
    position: ['position', 'INTEGER'],
    first_shape: ['firstShape', 'VARCHAR'],
  },
} satisfies RecordTable;

export const CHANGES = {
  name: '_dfinery_changes',
  comment: 'When a column was added, changed its type, or was missing for the first time.',
  key: 'changed_at',
  columns: {
    changed_at: ['changedAt', 'TIMESTAMPTZ'],
    source_name: ['sourceName', 'VARCHAR'],
    change: ['change', 'VARCHAR'],
    from_type: ['fromType', 'VARCHAR'],
    to_type: ['toType', 'VARCHAR'],
    event_date: ['day', 'DATE'],
    shape: ['shape', 'VARCHAR'],
  },
} satisfies RecordTable;

export const RUNS = {
  name: '_dfinery_runs',
  comment: 'A row for each run that loaded this file.',
  key: 'began',
  columns: {
    began: ['began', 'TIMESTAMPTZ'],
    ended: ['ended', 'TIMESTAMPTZ'],
    exit_code: ['exitCode', 'INTEGER'],
    cause: ['cause', 'VARCHAR'],
    version: ['version', 'VARCHAR'],
    rows: ['rows', 'BIGINT'],
    days: ['days', 'BIGINT'],
    exports: ['exports', 'BIGINT'],
    bytes: ['bytes', 'BIGINT'],
  },
} satisfies RecordTable;

export const RECORDS = [DAYS, COLUMNS, CHANGES, RUNS];

export const createRecords = ({ name, columns }: RecordTable): string =>
  `CREATE TABLE ${name} (${Object.entries(columns).map(([column, [, type]]) => `${identifier(column)} ${type}`)})`;

/** Reads all records of a table in the order of its key. */
export async function readRecords<T extends object>(engine: Engine, { name, key, columns }: RecordTable): Promise<T[]> {
  const select = Object.entries(columns).map(([column, [member, type]]) => {
    const stored = identifier(column);
    return `${READ_AS[type]?.(stored) ?? stored} AS ${identifier(member)}`;
  });
  const rows = await engine.rows(`SELECT ${select.join(', ')} FROM ${name} ORDER BY ${key}, rowid`);
  const plain = (value: unknown) => (typeof value === 'bigint' ? Number(value) : value);
  return rows.map((row) => Object.fromEntries(Object.entries(row).map(([k, value]) => [k, plain(value)])) as T);
}

export async function addRecords(engine: Engine, table: RecordTable, records: readonly object[]): Promise<void> {
  if (records.length > 0)
    await engine.append(
      table.name,
      records.map((record) => valuesOf(table, record)),
    );
}

/** Stores what differs between the records before and after. */
export async function replaceRecords(
  engine: Engine,
  table: RecordTable,
  before: readonly object[],
  after: readonly object[],
): Promise<void> {
  const textOf = (record: object) => JSON.stringify(valuesOf(table, record));
  const { name, key, columns } = table;
  const [stored, wanted] = [new Set(before.map(textOf)), new Set(after.map(textOf))];
  const keyAt = Object.keys(columns).indexOf(key);
  const removed = before
    .filter((record) => !wanted.has(textOf(record)))
    .map((record) => valuesOf(table, record)[keyAt]);
  if (removed.length > 0) {
    const keys = `from_json($1, '["${columns[key][1]}"]')`;
    await engine.run(`DELETE FROM ${name} WHERE ${key} IN (SELECT unnest(${keys}))`, [JSON.stringify(removed)]);
  }
  await addRecords(
    engine,
    table,
    after.filter((record) => !stored.has(textOf(record))),
  );
}

function valuesOf({ columns }: RecordTable, record: object): SqlValue[] {
  const fields: { readonly [member: string]: SqlValue | undefined } = { ...record };
  return Object.values(columns).map(([member]) => fields[member] ?? null);
}
