import { statSync } from 'node:fs';
import { messageOf } from '../../base/errors.ts';
import { identifier } from '../../cells/types/sql.ts';
import { TYPES } from '../../cells/types/types.ts';
import { zoneOf } from '../../cells/types/zone.ts';
import { shortName } from '../../engine/conversions.ts';
import { findPeople, jsonOfRows } from '../../engine/people/find.ts';
import type { PeopleFound, PeopleQuery } from '../../engine/people/query.ts';
import { countForReport, countKeyFaults, rowsByDay, type TargetReport } from '../../engine/rows/counts.ts';
import { fileExists } from '../../engine/session/database-file.ts';
import type { Engine, EngineOptions } from '../../engine/session/engine.ts';
import { openEngine, withFile } from '../../engine/session/open.ts';
import {
  checkKeys,
  checkProfiles,
  checkRows,
  type Difference,
  dayWarnings,
  difference,
  sharedKeysWarning,
} from '../../table/differences.ts';
import { profilesOf, type RunRecord, type TableState } from '../../table/place-state.ts';
import { EVENTS, type Table, typedColumns, USER_PROFILES } from '../../table/tables.ts';
import type { Verified } from '../contract.ts';
import { noTableError } from '../failures.ts';
import { OWN_TYPES_IN_DUCKDB } from './alter.ts';
import { RUNS, readRecords } from './side-tables.ts';
import { reading, readOnly, readStored, searchedTables } from './store.ts';

// Reads of a file, which is opened for reading alone: its people, its report, its differences. All throw UserError.

export async function readDuckDbState(options: EngineOptions): Promise<TableState | undefined> {
  // Before the first run there is no file, and this does not create one.
  if (!fileExists(options.file)) return undefined;
  return (await withFile(readOnly(options), readStored))?.state;
}

export const peopleInDuckDb = (options: EngineOptions, query: PeopleQuery): Promise<PeopleFound> =>
  reading(options, async (engine, state) => {
    return (await findPeople(searchedTables(engine, state), query)).found;
  });

export async function* rowsInDuckDb(options: EngineOptions, query: PeopleQuery): AsyncGenerator<string> {
  const engine = await openEngine(readOnly(options));
  try {
    const { tables, conditions } = await engine.guarded(async () => {
      const stored = await readStored(engine);
      if (stored === undefined) throw noTableError(engine.file);
      const place = searchedTables(engine, stored.state);
      return { tables: place, conditions: (await findPeople(place, query)).conditions };
    });
    yield* jsonOfRows(tables, conditions);
  } finally {
    await engine.close();
  }
}

export function reportDuckDb(options: EngineOptions): Promise<TargetReport> {
  return reading(options, async (engine, state) => {
    const { columns, timezone } = state;
    return {
      state,
      ...(await countForReport(engine, { events: 'events', columns, zone: zoneOf(timezone) })),
      sizeBytes: statSync(engine.file).size,
      runs: await readRecords<RunRecord>(engine, RUNS),
    };
  });
}

/** A small result as texts for a person. */
export interface QueryResult {
  readonly header: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** Runs queries on a file that was loaded. */
export function queryDuckDb(options: EngineOptions, queries: readonly string[]): Promise<QueryResult[]> {
  return reading(options, async (engine) => {
    const results: QueryResult[] = [];
    for (const sql of queries) {
      const rows = await engine.rows(sql);
      const texts = rows.map((row) => Object.values(row).map((value) => (value === null ? '' : String(value))));
      results.push({ header: Object.keys(rows[0] ?? {}), rows: texts });
    }
    return results;
  });
}

export function verifyDuckDb(options: EngineOptions): Promise<Verified> {
  return reading(options, async (engine, state) => {
    const columns = await columnDifferences(engine, EVENTS, state);
    const damaged = await damagedTables(engine);
    const canCount = damaged.length === 0 && columns.every(({ name }) => !(name in OWN_TYPES_IN_DUCKDB));
    const faults = canCount ? await countKeyFaults(engine, 'events') : { absent: 0, repeated: 0, shared: 0 };
    return {
      differences: [
        ...damaged,
        ...(canCount ? checkRows(state.receipts, await rowsByDay(engine, 'events')) : []),
        ...checkKeys(faults),
        ...columns.map(({ found }) => found),
        ...(await profileDifferences(engine, state, damaged.length === 0)),
      ],
      warnings: [...dayWarnings(state), ...sharedKeysWarning(faults)],
    };
  });
}

/** The differences of the table of profiles. */
async function profileDifferences(engine: Engine, state: TableState, isReadable: boolean): Promise<Difference[]> {
  const profiles = profilesOf(state);
  if (profiles === undefined) return [];
  const columns = await columnDifferences(engine, USER_PROFILES, profiles);
  if (!isReadable || columns.length > 0) return columns.map(({ found }) => found);
  const { name } = USER_PROFILES;
  return checkProfiles(profiles, {
    rows: await engine.count(name),
    keys: await engine.count(`(SELECT DISTINCT _key FROM ${name} WHERE _key IS NOT NULL)`),
  });
}

/** Number of columns that are read at once: blocks of all of them are in memory. */
const READ_AT_ONCE = 200;

/** Reads every column of every table to its last block; a difference for each table that cannot be read. */
async function damagedTables(engine: Engine): Promise<Difference[]> {
  const tables = await engine.rows(`
    SELECT schema_name AS schema, table_name AS name, list(column_name ORDER BY column_index) AS columns
    FROM duckdb_columns()
    JOIN duckdb_tables() USING (database_name, schema_name, table_name)
    WHERE database_name = current_database() AND NOT duckdb_columns.internal
    GROUP BY ALL`);
  const found: Difference[] = [];
  for (const { schema, name, columns } of tables) {
    const hashes = (columns as readonly string[]).map((column) => `bit_xor(hash(${identifier(column)}))`);
    try {
      for (let i = 0; i < hashes.length; i += READ_AT_ONCE) {
        const some = hashes.slice(i, i + READ_AT_ONCE).join(', ');
        await engine.rows(`SELECT ${some} FROM ${identifier(String(schema))}.${identifier(String(name))}`);
      }
    } catch (error) {
      if (!/checksum|Corrupt|Serialization Error|^IO Error|INTERNAL Error/i.test(messageOf(error))) throw error;
      found.push(difference('files', `the table ${name} cannot be read: its blocks are damaged`));
    }
  }
  return found;
}

/** The columns of the table that the state does not have, or lacks, or has with another type. */
async function columnDifferences(engine: Engine, table: Table, { columns, timezone }: TableState) {
  const rows = await engine.rows(`DESCRIBE ${table.name}`);
  const actual = new Map(rows.map(({ column_name: name, column_type: type }) => [String(name), shortName(type)]));
  const expected = new Map<string, string>([
    ...table.ownColumns.map((name): [string, string] => [name, OWN_TYPES_IN_DUCKDB[name]]),
    ...typedColumns(columns).map(({ name, type }): [string, string] => [name, TYPES[type].duckdb(timezone !== null)]),
  ]);
  return [...new Set([...expected.keys(), ...actual.keys()])].flatMap((name) => {
    const [should = 'absent', is = 'absent'] = [expected.get(name), actual.get(name)];
    return should === is
      ? []
      : [{ name, found: difference('columns', `column ${name} of ${table.name} should be ${should} and is ${is}`) }];
  });
}
