import validChanges from '../../../schemas/table-state.changes.validator';
import validColumns from '../../../schemas/table-state.columns.validator';
import validWindow from '../../../schemas/table-state.window.validator';
import { configError, internalError } from '../../base/errors.ts';
import { jsonOf } from '../../base/json.ts';
import { isZoneName } from '../../cells/types/zone.ts';
import { fileExists, newFile } from '../../engine/session/database-file.ts';
import type { Engine, EngineOptions } from '../../engine/session/engine.ts';
import { withFile } from '../../engine/session/open.ts';
import { identifier } from '../../engine/session/quote.ts';
import { eventItems, eventLogs } from '../../engine/views.ts';
import { parseState } from '../../extract/state.ts';
import type { ColumnChange } from '../../table/changes.ts';
import { FIRST_COLUMNS, type StoredColumn, typedColumns } from '../../table/columns.ts';
import type { StoredReceipt } from '../../table/receipts.ts';
import { newState, type TableState } from '../../table/state.ts';
import { type CopiedFormat, identityOf } from '../copies/mark.ts';
import { CREATE_COPIES } from '../copies/publish.ts';
import { noTableError, otherTimezone } from '../failures.ts';
import { createEvents } from './alter.ts';
import { checkColumns, checkStore, isPrepared, namesIn, STATE, STATE_COLUMNS, STORE_VERSION, VIEWS } from './check.ts';
import {
  CHANGES,
  COLUMNS,
  checked,
  damagedError,
  EVENT_NAMES,
  RECORDS,
  readRecords,
  replaceRecords,
  valuesOf,
  WINDOWS,
} from './record-tables.ts';

// The tables of a file beside `events`: made, read as the state, written after a batch.

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
    newFile(await engine.count("duckdb_columns() WHERE database_name = current_database() AND table_name = 'events'")),
};

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
  const names = await readRecords<{ readonly name: unknown }>(engine, EVENT_NAMES);
  const changes = { changes: await readRecords(engine, CHANGES) };
  return {
    timezone: timezone === null ? null : String(timezone),
    tables: ['events'],
    columns: checked<StoredColumn[]>(engine, COLUMNS, validColumns, await readRecords(engine, COLUMNS)),
    receipts: receipts.map((receipt) => checked<StoredReceipt>(engine, WINDOWS, validWindow, receipt)),
    eventNames: names.map(({ name }) => {
      if (typeof name === 'string') return name;
      throw damagedError(engine, EVENT_NAMES.name, 'name must be string');
    }),
    exportState: typeof state === 'string' ? (parseState(jsonOf(state) ?? state) ?? null) : null,
    changes: checked<{ changes: ColumnChange[] }>(engine, CHANGES, validChanges, changes).changes,
  };
}

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
