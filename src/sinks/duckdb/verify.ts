import { type Day, daysOf } from '../../base/days.ts';
import { configFailure } from '../../base/errors.ts';
import { Coverage } from '../../extract/plan/coverage.ts';
import { nameDays } from '../../extract/plan/gaps.ts';
import { parseState } from '../../extract/state.ts';
import { TYPES } from '../../types/index.ts';
import { readColumns } from './columns.ts';
import { type Engine, type EngineOptions, fileExists, openEngine } from './engine.ts';
import { engineFailure } from './faults.ts';
import { coveredDays } from './receipts.ts';
import { checkStore, readState, readTimezone } from './store.ts';

/** Something about a target that its receipts do not say. */
export interface Difference {
  readonly check: 'rows' | 'keys' | 'days' | 'columns';
  /** For a person; names windows, days and columns, never a key. */
  readonly message: string;
}

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
    if (first === null) return difference('rows', `${there} rows belong to window ${number}, which has no receipt`);
    const window = `window ${number} (${first} to ${last})`;
    return difference('rows', `${window} should have ${said} rows of its ${all}, and has ${there}`);
  });
};

const checkKeys: Check = async (engine) => {
  const { absent, repeated } = await engine.row(
    `SELECT count(*) FILTER (_key IS NULL) AS absent,
    (SELECT count(*) FROM (SELECT _key FROM events WHERE _key IS NOT NULL GROUP BY _key HAVING count(*) > 1)) AS repeated
    FROM events`,
  );
  const found = [];
  if (Number(absent) > 0) found.push(difference('keys', `${absent} rows have no _key`));
  if (Number(repeated) > 0) found.push(difference('keys', `${repeated} keys occur more than once`));
  return found;
};

/** Every day from the first one wanted up to the cursor is covered by a receipt, or is a recorded gap. */
const checkDays: Check = async (engine) => {
  const state = parseState(await readState(engine));
  if (state === undefined) return [];
  const covered = await coveredDays(engine);
  const start: Day = state.start_date ?? [...covered].sort()[0] ?? state.from_date;
  const coverage = Coverage.of(state, covered);
  const missing = daysBefore(start, state.from_date).filter((day) => !coverage.has(day));
  if (missing.length === 0) return [];
  return [difference('days', `the cursor is at ${state.from_date}, but no receipt covers ${nameDays(missing)}`)];
};

const daysBefore = (first: Day, end: Day): Day[] => daysOf(first, end).filter((day) => day < end);

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

const CHECKS: readonly Check[] = [checkRows, checkKeys, checkDays, checkColumns];

const difference = (check: Difference['check'], message: string): Difference => ({ check, message });

const duckDbName = (type: string): string => (type === 'TIMESTAMP WITH TIME ZONE' ? 'TIMESTAMPTZ' : type);
