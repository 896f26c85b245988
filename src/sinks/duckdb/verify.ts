import { configFailure } from '../../base/errors.ts';
import { plainCount } from '../../base/quantities.ts';
import { checkDays, checkKeys, type Difference, difference } from '../../table/differences.ts';
import { TYPES } from '../../types/index.ts';
import { fileExists } from '../sql/engine/database-file.ts';
import { type Engine, type EngineOptions, openEngine } from '../sql/engine/engine.ts';
import { engineFailure } from '../sql/engine/faults.ts';
import { readColumns } from './tables/columns.ts';
import { readCoveredDays } from './tables/receipts.ts';
import { checkStore, readState, readTimezone } from './tables/state.ts';

type Check = (engine: Engine) => Promise<Difference[]>;

/** Compares the rows of a file with its receipts; opens it for reading alone. Throws Failure when it cannot. */
export async function verifyDuckDb(options: Omit<EngineOptions, 'readOnly'>): Promise<Difference[]> {
  if (!fileExists(options.file)) throw configFailure(`${options.file} does not exist.`);
  const engine = await openEngine({ ...options, readOnly: true });
  try {
    await checkStore(engine);
    const found = [];
    for (const check of CHECKS) found.push(...(await check(engine)));
    return found;
  } catch (error) {
    throw engineFailure(error, engine.file);
  } finally {
    await engine.close();
  }
}

const checkRows: Check = async (engine) => {
  const rows = await engine.rows(
    `SELECT coalesce(number, w) AS number, CAST(from_date AS VARCHAR) AS first, CAST(to_date AS VARCHAR) AS last,
    rows, rows_live AS said, coalesce(n, 0) AS there FROM _dfinery_windows
    FULL JOIN (SELECT _dfinery_window AS w, count(*) AS n FROM events GROUP BY 1) ON w = number
    WHERE number IS NULL OR rows_live IS NULL OR rows_live <> coalesce(n, 0) OR rows_live > rows ORDER BY 1`,
  );
  return rows.map(({ number, first, last, rows: all, said, there }) => {
    if (first === null)
      return difference(
        'rows',
        `${plainCount(there, 'row belongs', 'rows belong')} to window ${number}, which has no receipt`,
      );
    const window = `window ${number} (${first} to ${last})`;
    return difference('rows', `${window} should have ${plainCount(said, 'row')} of its ${all}, and has ${there}`);
  });
};

const checkTableKeys: Check = async (engine) =>
  checkKeys(
    await engine.row(
      `SELECT count(*) FILTER (_key IS NULL) AS absent,
    (SELECT count(*) FROM (SELECT _key FROM events WHERE _key IS NOT NULL GROUP BY _key HAVING count(*) > 1)) AS repeated
    FROM events`,
    ),
  );

const checkCursor: Check = async (engine) => checkDays(await readState(engine), await readCoveredDays(engine));

/** The map and the table say the same; a zone makes all datetimes instants. */
const checkColumns: Check = async (engine) => {
  const zoned = (await readTimezone(engine)) !== null;
  // As JSON, for the reason that `readColumns` has.
  const rows = await engine.rows(
    `SELECT CAST(to_json([column_name, data_type]) AS VARCHAR) AS c FROM duckdb_columns()
    WHERE database_name = current_database() AND schema_name = 'main' AND table_name = 'events'`,
  );
  const there = new Map(
    rows.map((row) => {
      const [name, type]: string[] = JSON.parse(String(row.c));
      return [name, duckDbName(type)];
    }),
  );
  const columns = (await readColumns(engine)).flatMap(({ name, type }) => (type === null ? [] : [{ name, type }]));
  const mapped = new Map(columns.map(({ name, type }) => [name, TYPES[type].duckdb(zoned)]));
  for (const own of ['_key', '_dfinery_window', '_rescued']) there.delete(own);
  return [...new Set([...mapped.keys(), ...there.keys()])].flatMap((name) => {
    const [said, is] = [mapped.get(name), there.get(name)];
    if (said === is) return [];
    return [difference('columns', `column ${name} should be ${said ?? 'absent'} and is ${is ?? 'absent'}`)];
  });
};

const CHECKS: readonly Check[] = [checkRows, checkTableKeys, checkCursor, checkColumns];

const duckDbName = (type: string): string => (type === 'TIMESTAMP WITH TIME ZONE' ? 'TIMESTAMPTZ' : type);
