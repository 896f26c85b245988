import validRun from '../../../schemas/run.validator';
import validChanges from '../../../schemas/table-state.changes.validator';
import validColumns from '../../../schemas/table-state.columns.validator';
import validWindow from '../../../schemas/table-state.window.validator';
import { configError, internalError, type UserError } from '../../base/errors.ts';
import { jsonOf } from '../../base/json.ts';
import { firstProblem, type Validator } from '../../base/validator.ts';
import { parseState } from '../../extract/state.ts';
import type { ColumnChange } from '../../table/changes.ts';
import { FIRST_COLUMNS, type StoredColumn, typedColumns } from '../../table/columns.ts';
import type { StoredReceipt } from '../../table/receipts.ts';
import { MAX_RUNS, type RunHistory, type RunRecord, unended } from '../../table/runs.ts';
import { newState, type TableState } from '../../table/state.ts';
import { isZoneName } from '../../types/zone.ts';
import { noTableError, otherTimezone } from '../failures.ts';
import { type CopiedFormat, identityOf } from '../sql/copies/mark.ts';
import { COPIES_COLUMNS, COPIES_TABLE, CREATE_COPIES } from '../sql/copies/publish.ts';
import { fileExists, newFile } from '../sql/engine/database-file.ts';
import type { Engine, EngineOptions, Value } from '../sql/engine/engine.ts';
import { engineError } from '../sql/engine/faults.ts';
import { withFile } from '../sql/engine/open.ts';
import { identifier } from '../sql/engine/quote.ts';
import { eventItems, eventLogs } from '../sql/views.ts';
import { createEvents, OWN_TYPES } from './alter.ts';

const STORE_VERSION = 2;

/** The types of columns, each with the SQL that reads one as a value of JSON; by default it is read as it is. */
const READ_AS = {
  VARCHAR: undefined,
  BIGINT: undefined,
  INTEGER: undefined,
  DATE: (column: string) => `CAST(${column} AS VARCHAR)`,
  TIMESTAMPTZ: (column: string) => `strftime(timezone('UTC', ${column}), '%Y-%m-%dT%H:%M:%S.%gZ')`,
} as const;

/** A table with a row for each record: its columns in their order, each with the record's member and a type. */
interface RecordTable {
  readonly name: string;
  /** The column that identifies a row; undefined for records that are replaced all at once. */
  readonly key?: string;
  readonly columns: Readonly<Record<string, readonly [member: string, type: keyof typeof READ_AS]>>;
}

const WINDOWS = {
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

const COLUMNS = {
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

export const EVENT_NAMES_TABLE = '_dfinery_event_names';

const EVENT_NAMES = {
  name: EVENT_NAMES_TABLE,
  key: 'name',
  columns: { name: ['name', 'VARCHAR'] },
} satisfies RecordTable;

const CHANGES = {
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

const RUNS = {
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

const RECORDS = [WINDOWS, COLUMNS, EVENT_NAMES, CHANGES, RUNS];
const STATE = '_dfinery_state';
/** The columns of the state's one row: the last three are the mark (`Mark`). */
const STATE_COLUMNS = {
  v: 'INTEGER',
  timezone: 'VARCHAR',
  state: 'JSON',
  database: 'VARCHAR',
  file: 'VARCHAR',
  copy_of: 'VARCHAR',
};

/** This program's tables, each with the columns that every file has there; those of `events` differ. */
const STORED: ReadonlyMap<string, readonly string[]> = new Map([
  ['events', []],
  [STATE, Object.keys(STATE_COLUMNS)],
  [COPIES_TABLE, COPIES_COLUMNS],
  ...RECORDS.map(({ name, columns }): [string, string[]] => [name, Object.keys(columns)]),
]);
export const STORE_TABLES: ReadonlySet<string> = new Set(STORED.keys());
const VIEWS = ['event_logs', 'event_items'] as const;

/** Works on a file that this program has loaded, and its state. Throws UserError for any other. */
export async function withStore<T>(
  options: EngineOptions,
  work: (engine: Engine, state: TableState) => Promise<T>,
): Promise<T> {
  const { file } = options;
  if (!fileExists(file)) throw noTableError(file);
  return withFile(options, async (engine) => {
    await checkStore(engine);
    return work(engine, await readStoredState(engine));
  });
}

/**
 * Makes this program's tables in a file that has none, else checks their version and time zone; returns their contents.
 * Throws UserError and changes nothing.
 */
export async function prepareStore(engine: Engine, timezone: string | null): Promise<TableState> {
  if (!(await isPrepared(engine))) {
    const state = newState(timezone, ['events']);
    await engine.transaction(() => createTables(engine, state));
    return state;
  }
  const state = await readStoredState(engine);
  await checkColumns(engine, state);
  if (state.timezone !== timezone && state.receipts.length > 0) {
    throw otherTimezone(engine.file, 'file', timezone, state.timezone);
  }
  // A load into a copy for readers makes it a database of its own, which no run of the other database replaces.
  await engine.run(`UPDATE ${STATE} SET copy_of = NULL WHERE copy_of IS NOT NULL`);
  if (state.timezone === timezone) return state;
  await engine.transaction(async () => {
    await engine.run(`UPDATE ${STATE} SET timezone = $1`, [timezone]);
    await createData(engine, timezone);
  });
  return { ...state, timezone };
}

export const COPIED: CopiedFormat = {
  noun: 'database',
  marks: STATE,
  withFile,
  check: checkStore,
  async checkWhole(engine) {
    await checkStore(engine);
    const { found, wanted } = await engine.row(
      'SELECT (SELECT count(*) FROM events) AS found, (SELECT coalesce(sum(rows_live), 0) FROM _dfinery_windows) AS wanted',
    );
    if (Number(found) === Number(wanted)) return;
    throw internalError(`${engine.file} has ${found} rows, its receipts ${wanted}: the copy was not published.`);
  },
  newFile: async (engine) =>
    newFile(await engine.count("duckdb_columns() WHERE database_name = 'target' AND table_name = 'events'")),
};

/** True for a file with this program's tables; false for one that may get them. Throws UserError for any other. */
export async function isPrepared(engine: Engine): Promise<boolean> {
  const { file } = engine;
  const found = await namesIn(engine);
  if (found.has('table ducklake_metadata')) {
    throw configError(`${file} is a catalog of DuckLake: say ducklake in place of duckdb, or give another file.`);
  }
  if (!found.has(`table ${STATE}`)) {
    const foreign = [...STORED.keys(), ...VIEWS].find(
      (name) => found.has(`table ${name}`) || found.has(`view ${name}`),
    );
    if (foreign === undefined) return false;
    throw configError(`${file} has a table "${foreign}" that is not ours: give another file.`);
  }
  const { v } = found.has(`column ${STATE}.v`) ? await engine.row(`SELECT max(v) AS v FROM ${STATE}`) : { v: null };
  if (v !== null && Number(v) !== STORE_VERSION) {
    const [which, advice] =
      Number(v) > STORE_VERSION ? ['a later', 'update it'] : ['an earlier', 'load into another file'];
    throw configError(`${file} was written by ${which} version (${v}) of this program: ${advice}.`);
  }
  // A file that lacks a part of this program's tables is not repaired by guessing.
  const missing = [...STORED].flatMap(([table, columns]) => {
    if (!found.has(`table ${table}`)) return [`table ${table}`];
    return columns.map((column) => `column ${table}.${column}`).filter((name) => !found.has(name));
  });
  if (v !== null && missing.length === 0) return true;
  const lacking = missing.length === 0 ? `the row of ${STATE}, a table` : `the ${missing.join(', the ')}`;
  throw configError(`${file} lacks ${lacking} of ours: restore it from a copy, or load into another file.`);
}

/** The tables, views and columns of a file: `table events`, `view event_logs`, `column events._key`. */
async function namesIn(engine: Engine): Promise<ReadonlySet<string>> {
  const here = "database_name = current_database() AND schema_name = 'main'";
  const rows = await engine.rows(
    `SELECT 'table ' || lower(table_name) AS name FROM duckdb_tables() WHERE ${here}
    UNION ALL
    SELECT 'view ' || lower(view_name) FROM duckdb_views() WHERE ${here}
    UNION ALL
    SELECT 'column ' || lower(table_name || '.' || column_name) FROM duckdb_columns() WHERE ${here}`,
  );
  return new Set(rows.map(({ name }) => String(name)));
}

/** Throws UserError for a file without this program's tables, or with those of another version. */
export async function checkStore(engine: Engine): Promise<void> {
  if (await isPrepared(engine)) return;
  throw noTableError(engine.file);
}

/**
 * Throws UserError if somebody removed or renamed a column of `events` that statements name (unless given, any), or gave
 * one of this program's own another type.
 */
export async function checkColumns(
  engine: Engine,
  { columns }: TableState,
  needed: readonly { readonly name: string }[] = typedColumns(columns),
): Promise<void> {
  const rows = await engine.rows('DESCRIBE events');
  const found = new Map(rows.map((row) => [String(row.column_name).toLowerCase(), row.column_type]));
  const missing = [
    ...Object.entries(OWN_TYPES).flatMap(([name, type]) => {
      if (found.get(name) === type) return [];
      return found.has(name) ? [`${name} ${type}`] : [name];
    }),
    ...needed.map(({ name }) => name).filter((name) => !found.has(name.toLowerCase())),
  ];
  if (missing.length === 0) return;
  throw configError(
    `${engine.file}: the table events lacks columns that were loaded (${missing.join(', ')}): give them back their names, or restore ` +
      'the file from a copy, or load into another file. verify names every difference.',
  );
}

async function createTables(engine: Engine, state: TableState): Promise<void> {
  await createData(engine, state.timezone);
  const ofState = Object.entries(STATE_COLUMNS).map(([column, type]) => `${column} ${type}`);
  await engine.run(`CREATE TABLE ${STATE} (${ofState.join(', ')})`);
  await engine.run(`INSERT INTO ${STATE} VALUES ($1, $2, NULL, CAST(uuid() AS VARCHAR), $3, NULL)`, [
    STORE_VERSION,
    state.timezone,
    identityOf(engine.file),
  ]);
  for (const { name, columns } of RECORDS) {
    const defined = Object.entries(columns).map(([column, [, type]]) => `${identifier(column)} ${type}`);
    await engine.run(`CREATE TABLE ${name} (${defined.join(', ')})`);
  }
  await engine.run(CREATE_COPIES);
  await replaceRecords(engine, COLUMNS, [], state.columns);
}

async function createData(engine: Engine, timezone: string | null): Promise<void> {
  await engine.run(createEvents('events', FIRST_COLUMNS, timezone !== null));
  await createViews(engine, FIRST_COLUMNS);
}

/** Recreates `event_logs` and `event_items` over the columns that the table now has. Throws UserError. */
export async function createViews(engine: Engine, columns: readonly StoredColumn[]): Promise<void> {
  const found = await namesIn(engine);
  const taken = VIEWS.find((name) => found.has(`table ${name}`));
  if (taken !== undefined) {
    throw configError(
      `${engine.file} has a table ${taken}, made by somebody else, where the view of that name belongs: rename it and run again.`,
    );
  }
  const typed = typedColumns(columns);
  await engine.run(`CREATE OR REPLACE VIEW event_logs AS ${eventLogs(typed)}`);
  await engine.run(`CREATE OR REPLACE VIEW event_items AS ${eventItems(typed)}`);
}

/** Creates the views if somebody dropped one of them. Throws UserError. */
export async function restoreViews(engine: Engine, columns: readonly StoredColumn[]): Promise<void> {
  const found = await namesIn(engine);
  if (!VIEWS.every((name) => found.has(`view ${name}`))) await createViews(engine, columns);
}

/**
 * Reads the state of an open file: all that it holds beside its rows and its runs. Throws UserError for one that this
 * program cannot have stored.
 */
export async function readStoredState(engine: Engine): Promise<TableState> {
  const { timezone, state } = await engine.row(`SELECT timezone, CAST(state AS VARCHAR) AS state FROM ${STATE}`);
  if (timezone !== null && !isZoneName(String(timezone))) {
    throw damagedError(engine, STATE, `${JSON.stringify(timezone)} is no time zone`);
  }
  const receipts = await readRecords(engine, WINDOWS);
  const names = await readRecords<{ readonly name: string }>(engine, EVENT_NAMES);
  const changes = { changes: await readRecords(engine, CHANGES) };
  return {
    timezone: timezone === null ? null : String(timezone),
    tables: ['events'],
    columns: checked<StoredColumn[]>(engine, COLUMNS, validColumns, await readRecords(engine, COLUMNS)),
    receipts: receipts.map((receipt) => checked<StoredReceipt>(engine, WINDOWS, validWindow, receipt)),
    eventNames: names.map(({ name }) => name),
    exportState: typeof state === 'string' ? (parseState(jsonOf(state) ?? state) ?? null) : null,
    changes: checked<{ changes: ColumnChange[] }>(engine, CHANGES, validChanges, changes).changes,
  };
}

function checked<T>(engine: Engine, { name }: RecordTable, valid: Validator, value: unknown): T {
  if (valid<T>(value)) return value;
  throw damagedError(engine, name, firstProblem(valid));
}

const damagedError = ({ file }: Engine, table: string, why: string): UserError =>
  configError(
    `${file}: ${table} is not what this program writes (${why}): restore the file from a copy, or load into another one.`,
  );

/** Stores what a batch changes. Called inside its transaction. */
export async function writeState(engine: Engine, before: TableState, after: TableState): Promise<void> {
  await engine.run(`UPDATE ${STATE} SET state = $1`, [JSON.stringify(after.exportState)]);
  await replaceRecords(engine, COLUMNS, before.columns, after.columns);
  await replaceRecords(engine, WINDOWS, before.receipts, after.receipts);
  const named = (names: readonly string[]) => names.map((name) => ({ name }));
  await replaceRecords(engine, EVENT_NAMES, named(before.eventNames), named(after.eventNames));
  if (after.changes.at(-1) === before.changes.at(-1)) return;
  await engine.run(`DELETE FROM ${CHANGES.name}`);
  const all = after.changes.map((change) => valuesOf(CHANGES, change));
  await engine.append(CHANGES.name, all);
}

/** Reads all records of a table, in the order of their keys; without a key in the order in which they were added. */
async function readRecords<T extends object>(engine: Engine, { name, key, columns }: RecordTable): Promise<T[]> {
  const select = Object.entries(columns).map(([column, [member, type]]) => {
    const stored = identifier(column);
    return `${READ_AS[type]?.(stored) ?? stored} AS ${identifier(member)}`;
  });
  const rows = await engine.rows(`SELECT ${select.join(', ')} FROM ${name} ORDER BY ${key ?? 'rowid'}`);
  const plain = (value: unknown) => (typeof value === 'bigint' ? Number(value) : value);
  return rows.map((row) => Object.fromEntries(Object.entries(row).map(([k, value]) => [k, plain(value)])) as T);
}

function valuesOf({ columns }: RecordTable, record: object): Value[] {
  const fields: Readonly<Record<string, Value | undefined>> = { ...record };
  return Object.values(columns).map(([member]) => fields[member] ?? null);
}

async function replaceRecords(
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

type StoredRun = RunRecord & { readonly number: number };

export async function readRuns(engine: Engine): Promise<RunRecord[]> {
  const runs = await readRecords<StoredRun>(engine, RUNS);
  return runs.map(
    ({ number: _number, ...run }) => checked<{ run: RunRecord }>(engine, RUNS, validRun, { v: 1, run }).run,
  );
}

export class RunTable implements RunHistory {
  readonly #engine: Engine;
  #run: StoredRun | undefined;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  begin(run: RunRecord): Promise<string[]> {
    return this.#write(async () => {
      const before = await readRecords<StoredRun>(this.#engine, RUNS);
      this.#run = { ...run, number: (before.at(-1)?.number ?? 0) + 1 };
      await replaceRecords(this.#engine, RUNS, before, [...before, this.#run].slice(-MAX_RUNS));
      return unended(before);
    });
  }

  async end(run: RunRecord): Promise<void> {
    const begun = this.#run;
    if (begun === undefined) return;
    await this.#write(() => replaceRecords(this.#engine, RUNS, [begun], [{ ...begun, ...run }]));
  }

  /** Runs work in a transaction, also of a run that was stopped, which closes its record. Throws UserError. */
  #write<T>(work: () => Promise<T>): Promise<T> {
    return this.#engine.transaction(work).catch((error: unknown) => {
      throw engineError(error, this.#engine.file);
    });
  }
}
