import { configError, type UserError } from '../../base/errors.ts';
import { firstProblem, type Validator } from '../../base/validator.ts';
import type { Engine, Value } from '../../engine/session/engine.ts';
import { identifier } from '../../engine/session/quote.ts';

// This program's own tables with a row for each record: which they are, and how records are read and stored.

/** The types of columns, each with the SQL that reads one as a value of JSON; by default it is read as it is. */
const READ_AS = {
  VARCHAR: undefined,
  BIGINT: undefined,
  INTEGER: undefined,
  DATE: (column: string) => `CAST(${column} AS VARCHAR)`,
  TIMESTAMPTZ: (column: string) => `strftime(timezone('UTC', ${column}), '%Y-%m-%dT%H:%M:%S.%gZ')`,
} as const;

/** A table with a row for each record: its columns in their order, each with the record's member and a type. */
export interface RecordTable {
  readonly name: string;
  /** The column that identifies a row; undefined for records that are replaced all at once. */
  readonly key?: string;
  readonly columns: Readonly<Record<string, readonly [member: string, type: keyof typeof READ_AS]>>;
}

export const WINDOWS = {
  name: '_dfinery_windows',
  key: 'number',
  columns: {
    number: ['window', 'BIGINT'],
    v: ['v', 'INTEGER'],
    id: ['id', 'VARCHAR'],
    from_date: ['from', 'DATE'],
    to_date: ['to', 'DATE'],
    covers_from: ['covers_from', 'DATE'],
    covers_to: ['covers_to', 'DATE'],
    rows: ['rows', 'BIGINT'],
    rows_live: ['rows_live', 'BIGINT'],
    bytes: ['bytes', 'BIGINT'],
    sha256: ['sha256', 'VARCHAR'],
    exports: ['exports', 'INTEGER'],
    split: ['split', 'VARCHAR'],
    suppressed: ['suppressed', 'BIGINT'],
    invalid_utf8: ['invalid_utf8', 'BIGINT'],
    id_repeats: ['id_repeats', 'BIGINT'],
    verified_at: ['verified_at', 'TIMESTAMPTZ'],
  },
} satisfies RecordTable;

export const COLUMNS = {
  name: '_dfinery_columns',
  key: 'position',
  columns: {
    source_name: ['source', 'VARCHAR'],
    occurrence: ['occurrence', 'INTEGER'],
    table_name: ['name', 'VARCHAR'],
    item_name: ['itemName', 'VARCHAR'],
    group: ['group', 'VARCHAR'],
    type: ['type', 'VARCHAR'],
    evidence: ['evidence', 'INTEGER'],
    position: ['position', 'INTEGER'],
    first_shape: ['firstShape', 'VARCHAR'],
  },
} satisfies RecordTable;

export const EVENT_NAMES = {
  name: '_dfinery_event_names',
  key: 'name',
  columns: { name: ['name', 'VARCHAR'] },
} satisfies RecordTable;

export const CHANGES = {
  name: '_dfinery_changes',
  columns: {
    changed_at: ['changedAt', 'TIMESTAMPTZ'],
    source_name: ['sourceName', 'VARCHAR'],
    change: ['change', 'VARCHAR'],
    from_type: ['fromType', 'VARCHAR'],
    to_type: ['toType', 'VARCHAR'],
    window: ['window', 'VARCHAR'],
    shape: ['shape', 'VARCHAR'],
  },
} satisfies RecordTable;

export const RUNS = {
  name: '_dfinery_runs',
  key: 'number',
  columns: {
    number: ['number', 'BIGINT'],
    began: ['began', 'TIMESTAMPTZ'],
    ended: ['ended', 'TIMESTAMPTZ'],
    exit_code: ['exitCode', 'INTEGER'],
    cause: ['cause', 'VARCHAR'],
    version: ['version', 'VARCHAR'],
    rows: ['rows', 'BIGINT'],
    windows: ['windows', 'BIGINT'],
    exports: ['exports', 'BIGINT'],
    bytes: ['bytes', 'BIGINT'],
  },
} satisfies RecordTable;

export const RECORDS = [WINDOWS, COLUMNS, EVENT_NAMES, CHANGES, RUNS];

/** Reads all records of a table, in the order of their keys; without a key in the order in which they were added. */
export async function readRecords<T extends object>(engine: Engine, { name, key, columns }: RecordTable): Promise<T[]> {
  const select = Object.entries(columns).map(([column, [member, type]]) => {
    const stored = identifier(column);
    return `${READ_AS[type]?.(stored) ?? stored} AS ${identifier(member)}`;
  });
  const rows = await engine.rows(`SELECT ${select.join(', ')} FROM ${name} ORDER BY ${key ?? 'rowid'}`);
  const plain = (value: unknown) => (typeof value === 'bigint' ? Number(value) : value);
  return rows.map((row) => Object.fromEntries(Object.entries(row).map(([k, value]) => [k, plain(value)])) as T);
}

export function valuesOf({ columns }: RecordTable, record: object): Value[] {
  const fields: Readonly<Record<string, Value | undefined>> = { ...record };
  return Object.values(columns).map(([member]) => fields[member] ?? null);
}

/** Stores what differs between the records before and after. */
export async function replaceRecords(
  engine: Engine,
  table: RecordTable & { readonly key: string },
  before: readonly object[],
  after: readonly object[],
): Promise<void> {
  const byText = (records: readonly object[]) =>
    new Map(records.map((record) => valuesOf(table, record)).map((values) => [JSON.stringify(values), values]));
  const [stored, wanted] = [byText(before), byText(after)];
  const { name, key, columns } = table;
  const keyAt = Object.keys(columns).indexOf(key);
  const removed = [...stored].filter(([text]) => !wanted.has(text)).map(([, values]) => values[keyAt]);
  if (removed.length > 0) {
    const keys = `from_json($1, '["${columns[key][1]}"]')`;
    await engine.run(`DELETE FROM ${name} WHERE ${key} IN (SELECT unnest(${keys}))`, [JSON.stringify(removed)]);
  }
  const added = [...wanted].filter(([text]) => !stored.has(text)).map(([, values]) => values);
  await engine.append(name, added);
}

/** The value, if it fits a schema. Throws UserError for one that this program cannot have stored in the table. */
export function checked<T>(engine: Engine, { name }: RecordTable, valid: Validator, value: unknown): T {
  if (valid<T>(value)) return value;
  throw damagedError(engine, name, firstProblem(valid));
}

export const damagedError = ({ file }: Engine, table: string, why: string): UserError =>
  configError(
    `${file}: ${table} is not what this program writes (${why}): restore the file from a copy, or load into another one.`,
  );
