import { statSync } from 'node:fs';
import { TYPES } from '../../cells/types/index.ts';
import { zoneOf } from '../../cells/types/zone.ts';
import { shortName } from '../../engine/conversions.ts';
import { type EventRows, findPeople, jsonOfRows, peopleColumns } from '../../engine/people.ts';
import { countColumns, countEvents } from '../../engine/report.ts';
import { countKeyFaults, rowsByWindow } from '../../engine/rows/counts.ts';
import { fileExists } from '../../engine/session/database-file.ts';
import type { Engine, EngineOptions } from '../../engine/session/engine.ts';
import { openEngine, withFile } from '../../engine/session/open.ts';
import { typedColumns } from '../../table/columns.ts';
import { checkDays, checkKeys, checkLiveRows, type Difference, difference } from '../../table/differences.ts';
import { coveredDays } from '../../table/receipts.ts';
import type { TableState } from '../../table/state.ts';
import type { PeopleFound, PeopleQuery } from '../people.ts';
import type { TargetReport } from '../report.ts';
import { OWN_TYPES_IN_DUCKDB } from './alter.ts';
import { checkColumns, checkStore, isPrepared } from './check.ts';
import { readRuns } from './runs.ts';
import { readStoredState, withStore } from './store.ts';

// Reads of a file, which is opened for reading alone: its people, its report, its differences. All throw UserError.

const reading = <T>(options: EngineOptions, work: (engine: Engine, state: TableState) => Promise<T>): Promise<T> =>
  withStore({ ...options, readOnly: true }, work);

export async function readDuckDbState(options: EngineOptions): Promise<TableState | undefined> {
  // Before the first run there is no file, and this does not create one.
  if (!fileExists(options.file)) return undefined;
  return withFile({ ...options, readOnly: true }, async (engine) =>
    (await isPrepared(engine)) ? readStoredState(engine) : undefined,
  );
}

/** The rows in which a query looks. Another column that somebody removed does not keep people from being found. */
export async function eventRowsIn(engine: Engine, state: TableState, query: PeopleQuery): Promise<EventRows> {
  await checkColumns(engine, state, peopleColumns(state.columns, query));
  return { engine, from: 'events', place: engine.file, state };
}

export const peopleInDuckDb = (options: EngineOptions, query: PeopleQuery): Promise<PeopleFound> =>
  reading(options, async (engine, state) => (await findPeople(await eventRowsIn(engine, state, query), query)).found);

export async function* rowsInDuckDb(options: EngineOptions, query: PeopleQuery): AsyncGenerator<string> {
  const engine = await openEngine({ ...options, readOnly: true });
  try {
    const { rows, condition } = await engine.guarded(async () => {
      await checkStore(engine);
      const source = await eventRowsIn(engine, await readStoredState(engine), query);
      return { rows: source, condition: (await findPeople(source, query)).condition };
    });
    yield* jsonOfRows(rows, condition);
  } finally {
    await engine.close();
  }
}

export function reportDuckDb(options: EngineOptions): Promise<TargetReport> {
  return reading(options, async (engine, state) => {
    await checkColumns(engine, state);
    const source = { events: 'events', columns: state.columns, zone: zoneOf(state.timezone) };
    return {
      state,
      ...(await countEvents(engine, source)),
      columns: await countColumns(engine, source),
      sizeBytes: statSync(engine.file).size,
      runs: await readRuns(engine),
    };
  });
}

export function verifyDuckDb(options: EngineOptions): Promise<Difference[]> {
  return reading(options, async (engine, state) => {
    const columns = await columnDifferences(engine, state);
    const [hasWindow, hasKey] = [!columns.has('_dfinery_window'), !columns.has('_key')];
    return [
      ...(hasWindow ? checkLiveRows(state.receipts, await rowsByWindow(engine, 'events')) : []),
      ...(hasKey ? checkKeys(await countKeyFaults(engine, 'events')) : []),
      ...checkDays(state.exportState, coveredDays(state.receipts)),
      ...columns.values(),
    ];
  });
}

/** The columns of the table, by name, that the state does not have, or lacks, or has with another type. */
async function columnDifferences(engine: Engine, { columns, timezone }: TableState): Promise<Map<string, Difference>> {
  const rows = await engine.rows('DESCRIBE events');
  const actual = new Map(rows.map(({ column_name: name, column_type: type }) => [String(name), shortName(type)]));
  const expected = new Map<string, string>([
    ...Object.entries(OWN_TYPES_IN_DUCKDB),
    ...typedColumns(columns).map(({ name, type }): [string, string] => [name, TYPES[type].duckdb(timezone !== null)]),
  ]);
  const differing = [...new Set([...expected.keys(), ...actual.keys()])].filter(
    (name) => expected.get(name) !== actual.get(name),
  );
  return new Map(
    differing.map((name) => {
      const [should = 'absent', is = 'absent'] = [expected.get(name), actual.get(name)];
      return [name, difference('columns', `column ${name} should be ${should} and is ${is}`)];
    }),
  );
}
