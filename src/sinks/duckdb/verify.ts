import { checkDays, checkKeys, checkLiveRows, type Difference, difference } from '../../table/differences.ts';
import { coveredDays } from '../../table/receipts.ts';
import type { TableState } from '../../table/state.ts';
import { TYPES } from '../../types/index.ts';
import { shortName } from '../sql/columns.ts';
import type { Engine, EngineOptions } from '../sql/engine/engine.ts';
import { countKeyFaults, rowsByWindow } from '../sql/rows/counts.ts';
import { readState, withStore } from './store.ts';

/** Compares the rows of a file with its receipts; opens it for reading alone. Throws UserError when it cannot. */
export function verifyDuckDb(options: Omit<EngineOptions, 'readOnly'>): Promise<Difference[]> {
  return withStore({ ...options, readOnly: true }, async (engine) => {
    const state = await readState(engine);
    return [
      ...checkLiveRows(state.receipts, await rowsByWindow(engine, 'events')),
      ...checkKeys(await countKeyFaults(engine, 'events')),
      ...checkDays(state.exportState, coveredDays(state.receipts)),
      ...(await checkColumns(engine, state)),
    ];
  });
}

/** The map and the table say the same; a zone makes all datetimes instants. */
async function checkColumns(engine: Engine, { columns, timezone }: TableState): Promise<Difference[]> {
  const rows = await engine.rows(
    `SELECT column_name AS name, data_type AS type FROM duckdb_columns()
    WHERE database_name = current_database() AND schema_name = 'main' AND table_name = 'events'`,
  );
  const actual = new Map(rows.map(({ name, type }) => [String(name), shortName(String(type))]));
  const typed = columns.flatMap(({ name, type }) => (type === null ? [] : [{ name, type }]));
  const expected = new Map(typed.map(({ name, type }) => [name, TYPES[type].duckdb(timezone !== null)]));
  for (const own of ['_key', '_dfinery_window', '_rescued']) actual.delete(own);
  return [...new Set([...expected.keys(), ...actual.keys()])].flatMap((name) => {
    const [should, is] = [expected.get(name), actual.get(name)];
    return should === is
      ? []
      : [difference('columns', `column ${name} should be ${should ?? 'absent'} and is ${is ?? 'absent'}`)];
  });
}
