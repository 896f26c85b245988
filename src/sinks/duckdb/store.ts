import { configError, internalError } from '../../base/errors.ts';
import type { ExportState } from '../../extract/window.ts';
import type { ColumnChange } from '../../table/changes.ts';
import { FIRST_COLUMNS, type StoredColumn, typedColumns } from '../../table/columns.ts';
import type { StoredReceipt } from '../../table/receipts.ts';
import { MAX_RUNS, type RunHistory, type RunRecord, unended } from '../../table/runs.ts';
import { newState, type TableState } from '../../table/state.ts';
import { otherTimezone } from '../failures.ts';
import { COPIES_TABLE, type CopiedFormat, identityOf } from '../sql/copies.ts';
import { fileExists } from '../sql/engine/database-file.ts';
import { type Engine, type EngineOptions, withFile } from '../sql/engine/engine.ts';
import { engineError } from '../sql/engine/faults.ts';
import { identifier } from '../sql/engine/quote.ts';
import { eventItems, eventLogs } from '../sql/views.ts';
import { createEvents } from './alter.ts';

/** Version of the contents of all `_dfinery_…` tables. */
const VERSION = 2;

/** The kinds of a record's members: how each is stored, and read as a value of JSON. */
const KINDS = {
  text: { type: 'VARCHAR', read: (column: string) => column },
  integer: { type: 'BIGINT', read: (column: string) => column },
  small: { type: 'INTEGER', read: (column: string) => column },
  day: { type: 'DATE', read: (column: string) => `CAST(${column} AS VARCHAR)` },
  instant: {
    type: 'TIMESTAMPTZ',
    read: (column: string) => `strftime(timezone('UTC', ${column}), '%Y-%m-%dT%H:%M:%S.%gZ')`,
  },
} as const;

/** A table with a row for each record; each column has the name of the record's member, and its kind. */
interface RecordTable {
  readonly name: string;
  /** The column that identifies a row; undefined for records that are only added. */
  readonly key?: string;
  readonly columns: Readonly<Record<string, readonly [member: string, kind: keyof typeof KINDS]>>;
}

const WINDOWS: RecordTable = {
  name: '_dfinery_windows',
  key: 'number',
  columns: {
    number: ['window', 'integer'],
    v: ['v', 'small'],
    id: ['id', 'text'],
    from_date: ['from', 'day'],
    to_date: ['to', 'day'],
    covers_from: ['covers_from', 'day'],
    covers_to: ['covers_to', 'day'],
    rows: ['rows', 'integer'],
    rows_live: ['rows_live', 'integer'],
    bytes: ['bytes', 'integer'],
    sha256: ['sha256', 'text'],
    exports: ['exports', 'small'],
    split: ['split', 'text'],
    suppressed: ['suppressed', 'integer'],
    invalid_utf8: ['invalid_utf8', 'integer'],
    id_repeats: ['id_repeats', 'integer'],
    verified_at: ['verified_at', 'instant'],
  },
};

const COLUMNS: RecordTable = {
  name: '_dfinery_columns',
  key: 'position',
  columns: {
    source_name: ['source', 'text'],
    occurrence: ['occurrence', 'small'],
    table_name: ['name', 'text'],
    item_name: ['itemName', 'text'],
    group: ['group', 'text'],
    type: ['type', 'text'],
    evidence: ['evidence', 'small'],
    position: ['position', 'small'],
    first_shape: ['firstShape', 'text'],
  },
};

export const EVENT_NAMES_TABLE = '_dfinery_event_names';

const EVENT_NAMES: RecordTable = {
  name: EVENT_NAMES_TABLE,
  key: 'name',
  columns: { name: ['name', 'text'] },
};

const CHANGES: RecordTable = {
  name: '_dfinery_changes',
  columns: {
    changed_at: ['changedAt', 'instant'],
    source_name: ['sourceName', 'text'],
    change: ['change', 'text'],
    from_type: ['fromType', 'text'],
    to_type: ['toType', 'text'],
    window: ['window', 'text'],
    shape: ['shape', 'text'],
  },
};

const RUNS: RecordTable = {
  name: '_dfinery_runs',
  key: 'number',
  columns: {
    number: ['number', 'integer'],
    began: ['began', 'instant'],
    ended: ['ended', 'instant'],
    exit_code: ['exitCode', 'small'],
    cause: ['cause', 'text'],
    version: ['version', 'text'],
    rows: ['rows', 'integer'],
    windows: ['windows', 'integer'],
    exports: ['exports', 'integer'],
    bytes: ['bytes', 'integer'],
  },
};

/** The table of the copies for readers. */
const COPIES: RecordTable = {
  name: COPIES_TABLE,
  key: 'path',
  columns: { path: ['path', 'text'], published_at: ['publishedAt', 'instant'] },
};

const RECORDS = [WINDOWS, COLUMNS, EVENT_NAMES, CHANGES, RUNS, COPIES];
const STATE = '_dfinery_state';
/**
 * The table of the state. `database` is the id of the database, `file` the identity of its file, which a plain copy
 * does not share, and `copy_of` the id of the database of which this is a copy for readers.
 */
const CREATE_STATE = `CREATE TABLE ${STATE} (
  v INTEGER, timezone VARCHAR, state JSON, database VARCHAR, file VARCHAR, copy_of VARCHAR)`;

/** The tables of this program, without its views. */
export const STORE_TABLES: ReadonlySet<string> = new Set(['events', STATE, ...RECORDS.map(({ name }) => name)]);
const STORE_NAMES = [...STORE_TABLES, 'event_logs', 'event_items'];

/** Opens a file that this program has loaded, works on it and closes it. Throws UserError for any other file. */
export async function withStore<T>(options: EngineOptions, work: (engine: Engine) => Promise<T>): Promise<T> {
  const { file } = options;
  if (!fileExists(file)) throw configError(`${file} does not exist: load it with sync duckdb first.`);
  return withFile(options, async (engine) => {
    await checkStore(engine);
    return work(engine);
  });
}

/**
 * Makes this program's tables in a file that has none; else checks that they are its own, of its version and of the
 * same time zone. Returns their contents. Throws UserError and changes nothing.
 */
export async function prepareStore(engine: Engine, timezone: string | null): Promise<TableState> {
  if (!(await isPrepared(engine))) {
    const state = newState(timezone, ['events']);
    await engine.transaction(() => createTables(engine, state));
    return state;
  }
  // A load into a copy for readers makes it a database of its own, which no run of the other database replaces.
  await engine.run(`UPDATE ${STATE} SET copy_of = NULL WHERE copy_of IS NOT NULL`);
  const state = await readState(engine);
  if (state.timezone === timezone) return state;
  if (state.receipts.length > 0) {
    throw otherTimezone(engine.file, 'file', timezone, state.timezone);
  }
  await engine.transaction(async () => {
    await engine.run(`UPDATE ${STATE} SET timezone = $1`, [timezone]);
    await createData(engine, timezone);
  });
  return { ...state, timezone };
}

/** The functions that identify a database, and check it before it is published. */
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
};

/**
 * True for a file with this program's tables; false for a file that may get them. Throws UserError for any other file
 * and changes nothing.
 */
export async function isPrepared(engine: Engine): Promise<boolean> {
  const { file } = engine;
  const tables = await engine.rows(
    `SELECT lower(table_name) AS name FROM information_schema.tables
    WHERE table_catalog = current_database() AND table_schema = 'main'`,
  );
  const names = new Set(tables.map(({ name }) => String(name)));
  if (!names.has(STATE)) {
    const foreign = STORE_NAMES.find((name) => names.has(name));
    if (foreign === undefined) return false;
    throw configError(`${file} has a table "${foreign}" that is not ours: give another file.`);
  }
  const { v } = await engine.row(`SELECT max(v) AS v FROM ${STATE}`);
  if (v !== null && Number(v) !== VERSION) {
    const [which, advice] = Number(v) > VERSION ? ['a later', 'update it'] : ['an earlier', 'load into another file'];
    throw configError(`${file} was written by ${which} version (${v}) of this program: ${advice}.`);
  }
  // A file that lacks some of this program's tables is not repaired by guessing.
  const missing = [...STORE_TABLES].filter((name) => !names.has(name));
  if (v !== null && missing.length === 0) return true;
  const lacking = v === null ? `the row of ${STATE}, a table` : `the table ${missing.join(', ')}`;
  throw configError(`${file} lacks ${lacking} of ours: restore it from a copy, or load into another file.`);
}

/** Throws UserError for a file without this program's tables, or with those of another version. */
export async function checkStore(engine: Engine): Promise<void> {
  if (await isPrepared(engine)) return;
  throw configError(`${engine.file} holds no events loaded by this program: nothing was done.`);
}

async function createTables(engine: Engine, state: TableState): Promise<void> {
  await createData(engine, state.timezone);
  await engine.run(CREATE_STATE);
  await engine.run(`INSERT INTO ${STATE} VALUES ($1, $2, NULL, CAST(uuid() AS VARCHAR), $3, NULL)`, [
    VERSION,
    state.timezone,
    identityOf(engine.file),
  ]);
  for (const { name, columns } of RECORDS) {
    const defined = Object.entries(columns).map(([column, [, kind]]) => `${identifier(column)} ${KINDS[kind].type}`);
    await engine.run(`CREATE TABLE ${name} (${defined.join(', ')})`);
  }
  await insertRecords(engine, COLUMNS, state.columns);
}

async function createData(engine: Engine, timezone: string | null): Promise<void> {
  await engine.run(createEvents('events', FIRST_COLUMNS, timezone !== null));
  await createViews(engine, FIRST_COLUMNS);
}

/** Recreates `event_logs` and `event_items` over the columns that the table now has. */
export async function createViews(engine: Engine, columns: readonly StoredColumn[]): Promise<void> {
  const typed = typedColumns(columns);
  await engine.run(`CREATE OR REPLACE VIEW event_logs AS ${eventLogs(typed)}`);
  await engine.run(`CREATE OR REPLACE VIEW event_items AS ${eventItems(typed)}`);
}

/** Reads the state of an open file: all that it holds beside its rows and its runs. */
export async function readState(engine: Engine): Promise<TableState> {
  const { timezone, state } = await engine.row(`SELECT timezone, CAST(state AS VARCHAR) AS state FROM ${STATE}`);
  const names = await readRecords<{ readonly name: string }>(engine, EVENT_NAMES);
  return {
    timezone: typeof timezone === 'string' ? timezone : null,
    tables: ['events'],
    columns: await readRecords<StoredColumn>(engine, COLUMNS),
    receipts: await readRecords<StoredReceipt>(engine, WINDOWS),
    eventNames: names.map(({ name }) => name),
    exportState: typeof state === 'string' ? (JSON.parse(state) as ExportState) : null,
    changes: await readRecords<ColumnChange>(engine, CHANGES),
  };
}

/** Reads the state of a file that is not open; undefined if nothing was loaded yet. Throws UserError. */
export async function readDuckDbState(options: Omit<EngineOptions, 'readOnly'>): Promise<TableState | undefined> {
  // Before the first run there is no file, and this does not create one.
  if (!fileExists(options.file)) return undefined;
  return withFile({ ...options, readOnly: true }, async (engine) =>
    (await isPrepared(engine)) ? readState(engine) : undefined,
  );
}

/** Stores the changes that a batch makes in the state. Called inside its transaction. */
export async function writeState(engine: Engine, before: TableState, after: TableState): Promise<void> {
  await engine.run(`UPDATE ${STATE} SET state = $1`, [JSON.stringify(after.exportState)]);
  await replaceRecords(engine, COLUMNS, before.columns, after.columns);
  await replaceRecords(engine, WINDOWS, before.receipts, after.receipts);
  const named = (names: readonly string[]) => names.map((name) => ({ name }));
  await replaceRecords(engine, EVENT_NAMES, named(before.eventNames), named(after.eventNames));
  const { changes } = before;
  const isLonger = changes.length === 0 || changes.at(-1) === after.changes[changes.length - 1];
  if (!isLonger) await engine.run(`DELETE FROM ${CHANGES.name}`);
  await insertRecords(engine, CHANGES, isLonger ? after.changes.slice(changes.length) : after.changes);
}

type Fields = Readonly<Record<string, unknown>>;

/** Reads all records of a table, in the order of their keys; without a key in the order in which they were added. */
async function readRecords<T extends object>(engine: Engine, { name, key, columns }: RecordTable): Promise<T[]> {
  const select = Object.entries(columns).map(
    ([column, [member, kind]]) => `${KINDS[kind].read(identifier(column))} AS ${identifier(member)}`,
  );
  const rows = await engine.rows(`SELECT ${select.join(', ')} FROM ${name} ORDER BY ${key ?? 'rowid'}`);
  const plain = (value: unknown) => (typeof value === 'bigint' ? Number(value) : value);
  return rows.map((row) => Object.fromEntries(Object.entries(row).map(([k, value]) => [k, plain(value)])) as T);
}

async function insertRecords(
  engine: Engine,
  { name, columns }: RecordTable,
  records: readonly object[],
): Promise<void> {
  if (records.length === 0) return;
  const entries = Object.entries(columns);
  const shape = Object.fromEntries(
    entries.map(([, [member, kind]]) => [member, kind === 'integer' || kind === 'small' ? 'BIGINT' : 'VARCHAR']),
  );
  const values = entries.map(([, [member, kind]]) => `CAST(r.${identifier(member)} AS ${KINDS[kind].type})`);
  await engine.run(
    `INSERT INTO ${name} (${entries.map(([column]) => identifier(column)).join(', ')})
    SELECT ${values.join(', ')} FROM (SELECT unnest(from_json($1, $2)) AS r)`,
    [JSON.stringify(records.map((record) => picked(record, Object.keys(shape)))), JSON.stringify([shape])],
  );
}

function picked(record: object, members: readonly string[]): Fields {
  const fields: Fields = { ...record };
  return Object.fromEntries(members.map((member) => [member, fields[member] ?? null]));
}

/** Replaces the records of a table by those of `after`. */
async function replaceRecords(
  engine: Engine,
  table: RecordTable,
  before: readonly object[],
  after: readonly object[],
): Promise<void> {
  const members = Object.values(table.columns).map(([member]) => member);
  const recordText = (record: object) => JSON.stringify(picked(record, members));
  const [stored, wanted] = [new Set(before.map(recordText)), new Set(after.map(recordText))];
  const removed = before.filter((record) => !wanted.has(recordText(record)));
  if (removed.length > 0 && table.key !== undefined) {
    const [member, kind] = table.columns[table.key];
    const keys = removed.map((record) => picked(record, [member])[member]);
    await engine.run(
      `DELETE FROM ${table.name} WHERE ${table.key} IN (SELECT unnest(from_json($1, '["${KINDS[kind].type}"]')))`,
      [JSON.stringify(keys)],
    );
  }
  await insertRecords(
    engine,
    table,
    after.filter((record) => !stored.has(recordText(record))),
  );
}

type StoredRun = RunRecord & { readonly number: number };

/** Reads the latest runs of a file, oldest first. */
export async function readRuns(engine: Engine): Promise<RunRecord[]> {
  const runs = await readRecords<StoredRun>(engine, RUNS);
  return runs.map(({ number: _number, ...run }) => run);
}

/** The run history of a file, in a table of its own. */
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
