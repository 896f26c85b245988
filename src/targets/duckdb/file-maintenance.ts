import { existsSync, statSync } from 'node:fs';
import type { Day } from '../../base/days.ts';
import { identifier } from '../../base/sql.ts';
import { zoneOf } from '../../cells/types/zone.ts';
import { duckDbTypeOf } from '../../engine/column-sql.ts';
import { checkRows, type Difference, type VerifyResult } from '../../engine/rows/check-rows.ts';
import { countForReport } from '../../engine/rows/report-counts.ts';
import { aggregateColumns } from '../../engine/rows/row-counts.ts';
import type { Engine } from '../../engine/session/engine.ts';
import { isDamagedBlock } from '../../engine/session/engine-errors.ts';
import { withEngine } from '../../engine/session/open-engine.ts';
import type { PlaceState, TableState } from '../../table/place-state.ts';
import { dayWarnings } from '../../table/place-warnings.ts';
import { prunableBefore, withPrunedDays } from '../../table/receipts.ts';
import { EVENTS, TABLES, type Table } from '../../table/tables.ts';
import type { Maintenance, PlaceOptions, PruneResult } from '../contract.ts';
import { checkExists, readFileState, readLoadedState, tablesOfFile, withLoadedFile, writeState } from './file-state.ts';
import { RUNS_TABLE, readRecords } from './record-tables.ts';
import { columnTypesInFile, rowsOfDaysSql } from './row-tables.ts';

export const maintenanceOfFile = (options: PlaceOptions): Maintenance => ({
  async readState() {
    // Before the first run there is no file, and this does not create one.
    if (!existsSync(options.address)) return undefined;
    return withEngine(options.address, 'read', options, async (engine) => (await readFileState(engine)).state);
  },
  async verify() {
    checkExists(options.address);
    return withEngine(options.address, 'read', options, async (engine) => {
      // Nothing else can be read of a damaged table, perhaps not even the state.
      const differences = await findDamagedTables(engine);
      if (differences.length > 0) return { differences, warnings: [] };
      return verifyTables(engine, await readLoadedState(engine));
    });
  },
  report: () =>
    withLoadedFile(options, 'read', async (engine, state) => {
      const { columns, timezone } = state.events;
      const counts = await countForReport(engine, EVENTS.name, columns, zoneOf(timezone));
      const sizeBytes = statSync(engine.file).size;
      return { state, ...counts, sizeBytes, runs: await readRecords(engine, RUNS_TABLE) };
    }),
  prune: (firstKeptDay, execute) =>
    withLoadedFile(options, execute ? 'write' : 'read', async (engine, state) =>
      execute ? pruneDays(engine, state, firstKeptDay) : prunableBefore(state.events.receipts, firstKeptDay),
    ),
});

async function pruneDays(engine: Engine, state: PlaceState, firstKeptDay: Day): Promise<PruneResult> {
  const { events } = state;
  const pruneResult = prunableBefore(events.receipts, firstKeptDay);
  const { days } = pruneResult;
  if (days.length === 0) return pruneResult;
  const receipts = withPrunedDays(events.receipts, days, engine.clock.now());
  await engine.transaction(async () => {
    await engine.run(`DELETE FROM ${rowsOfDaysSql(EVENTS, days)}`);
    await engine.joinRowGroupsAtCheckpoint();
    await writeState(engine, { ...state, events: { ...events, receipts } });
  });
  return pruneResult;
}

async function verifyTables(engine: Engine, state: PlaceState): Promise<VerifyResult> {
  const differences: Difference[] = [];
  const warnings = dayWarnings(state.events);
  for (const table of TABLES) {
    const tableState = state[table.name];
    if (tableState === undefined) continue;
    const differentColumns = await compareColumns(engine, table, tableState);
    if (table.programColumns.every(({ name }) => !differentColumns.has(name))) {
      const rowsResult = await checkRows(engine, table, table.name, tableState);
      differences.push(...rowsResult.differences);
      warnings.push(...rowsResult.warnings);
    }
    differences.push(...differentColumns.values());
  }
  return { differences, warnings };
}

/** Reads every column of every table to its last block; a difference for each table that cannot be read. */
async function findDamagedTables(engine: Engine): Promise<Difference[]> {
  const differences: Difference[] = [];
  for (const { name, qualifiedName, columns } of await tablesOfFile(engine)) {
    const hashSqls = columns.map((column) => `bit_xor(hash(${identifier(column)}))`);
    try {
      await aggregateColumns(engine, qualifiedName, hashSqls);
    } catch (error) {
      if (!isDamagedBlock(error)) throw error;
      differences.push({ check: 'files', message: `the table ${name} cannot be read: its blocks are damaged` });
    }
  }
  return differences;
}

/** The differences between the columns of a table and those of its state, by the name of the column. */
async function compareColumns(engine: Engine, table: Table, state: TableState): Promise<Map<string, Difference>> {
  const rows = await engine.rows(`DESCRIBE ${table.name}`);
  const actualTypes = new Map(
    rows.map(({ column_name: name, column_type: type }) => [String(name), duckDbTypeOf(type)]),
  );
  const expectedTypes = columnTypesInFile(table, state);
  const differences = new Map<string, Difference>();
  for (const name of [...expectedTypes.keys(), ...actualTypes.keys()]) {
    const expectedType = expectedTypes.get(name) ?? 'absent';
    const actualType = actualTypes.get(name) ?? 'absent';
    if (expectedType === actualType) continue;
    const message = `column ${name} of ${table.name} should be ${expectedType} and is ${actualType}`;
    differences.set(name, { check: 'columns', message });
  }
  return differences;
}
