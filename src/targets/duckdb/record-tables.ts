import { identifier, literal } from '../../base/sql.ts';
import type { Engine } from '../../engine/session/engine.ts';
import type { ColumnChange, RunRecord } from '../../table/place-state.ts';
import type { StoredReceipt } from '../../table/receipts.ts';
import type { StoredColumn } from '../../table/tables.ts';

// The tables beside `events` with a row for each record of the state, and how records are read and stored.

/** A table with a row for each record of the type `T`. */
export interface RecordTable<T> {
  readonly name: string;
  readonly comment: string;
  /** The column by which records are ordered. */
  readonly orderBy: string;
  /** By name and in their order: the member of the record, and the type of the column. */
  readonly columns: Readonly<Record<string, readonly [member: keyof T & string, duckDbType: string]>>;
}

export const DAYS_TABLE: RecordTable<StoredReceipt> = {
  name: '_dfinery_days',
  comment: 'A receipt of each day: the verified download that its rows come from.',
  orderBy: 'event_date',
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
};

export const COLUMNS_TABLE: RecordTable<StoredColumn> = {
  name: '_dfinery_columns',
  comment: 'The columns of events: their names in the export, groups and types.',
  orderBy: 'position',
  columns: {
    source_name: ['source', 'VARCHAR'],
    occurrence: ['occurrence', 'INTEGER'],
    table_name: ['name', 'VARCHAR'],
    item_name: ['itemName', 'VARCHAR'],
    group: ['group', 'VARCHAR'],
    type: ['type', 'VARCHAR'],
    forms: ['forms', 'INTEGER'],
    position: ['position', 'INTEGER'],
  },
};

export const CHANGES_TABLE: RecordTable<ColumnChange> = {
  name: '_dfinery_changes',
  comment: 'When a column was added or changed its type.',
  orderBy: 'changed_at',
  columns: {
    changed_at: ['changedAt', 'TIMESTAMPTZ'],
    source_name: ['sourceName', 'VARCHAR'],
    change: ['change', 'VARCHAR'],
    from_type: ['fromType', 'VARCHAR'],
    to_type: ['toType', 'VARCHAR'],
    event_date: ['day', 'DATE'],
  },
};

export const RUNS_TABLE: RecordTable<RunRecord> = {
  name: '_dfinery_runs',
  comment: 'A row for each run that loaded this file.',
  orderBy: 'began',
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
};

export const RECORD_TABLES: readonly RecordTable<never>[] = [DAYS_TABLE, COLUMNS_TABLE, CHANGES_TABLE, RUNS_TABLE];

export async function createRecordTable(engine: Engine, { name, comment, columns }: RecordTable<never>): Promise<void> {
  const columnsSql = Object.entries(columns).map(([column, [, type]]) => `${identifier(column)} ${type}`);
  await engine.run(`CREATE TABLE ${name} (${columnsSql.join(', ')})`);
  await engine.run(`COMMENT ON TABLE ${name} IS ${literal(comment)}`);
}

/** Reads all records of a table in their order. A member is null where its column is. */
export async function readRecords<T>(engine: Engine, { name, orderBy, columns }: RecordTable<T>): Promise<T[]> {
  const members = Object.entries(columns).map(([column, [member, type]]) => {
    const columnSql = identifier(column);
    const isoSql = `strftime(timezone('UTC', ${columnSql}), '%Y-%m-%dT%H:%M:%S.%gZ')`;
    return `${literal(member)}: ${type === 'TIMESTAMPTZ' ? isoSql : columnSql}`;
  });
  const record = `to_json({${members.join(', ')}})`;
  const rows = await engine.rows(`SELECT ${record} AS record FROM ${name} ORDER BY ${orderBy}, rowid`);
  return rows.map((row) => JSON.parse(String(row.record)));
}

export async function addRecords<T>(engine: Engine, table: RecordTable<T>, records: readonly T[]): Promise<void> {
  await engine.run(`INSERT INTO ${table.name} SELECT unnest(record) FROM (${recordsSql(table, records)})`);
}

/** Makes these the records of a table. Those that it has already stay as they are. */
export async function replaceRecords<T>(engine: Engine, table: RecordTable<T>, records: readonly T[]): Promise<void> {
  const { name } = table;
  const newRecords = recordsSql(table, records);
  // In SQL the name of a table is also its row, as a struct. Of two structs members that are NULL count as equal.
  await engine.run(`DELETE FROM ${name} WHERE ${name} NOT IN (${newRecords})`);
  await engine.run(
    `INSERT INTO ${name} SELECT unnest(record) FROM (${newRecords}) WHERE record NOT IN (SELECT ${name} FROM ${name})`,
  );
}

/** A query of records, each as a struct of its columns. */
function recordsSql<T>({ columns }: RecordTable<T>, records: readonly T[]): string {
  const entries = Object.entries(columns);
  const rows = records.map((record) =>
    Object.fromEntries(entries.map(([column, [member]]) => [column, record[member]])),
  );
  const types = Object.fromEntries(entries.map(([column, [, type]]) => [column, type]));
  return `SELECT unnest(from_json(${literal(JSON.stringify(rows))}, ${literal(JSON.stringify([types]))})) AS record`;
}
