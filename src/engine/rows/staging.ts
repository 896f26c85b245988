import { TYPES } from '../../cells/types/index.ts';
import type { PlannedColumn } from '../../table/plan.ts';
import type { Engine } from '../session/engine.ts';
import { fileQuery, type TypedRows, type WindowLoad } from './file-query.ts';
import { sqlNumberKeys, sqlNumbersIn } from './keys.ts';

/**
 * Temporary table: the rows of the window in their order. `base` a, `rescued`, `extra`, and `t0`, `t1`… typed values.
 */
const STAGE = '_dfinery_stage';
/** Temporary table: the keys of rows whose base id is there more than once. `ref`, the `rowid` there, 23, `key` a#2. */
const KEYS = '_dfinery_keys';

/** A further column of the stage: its type, and for each file its value and the columns that it needs as text. */
export interface StagedExtra {
  readonly type: string;
  valueOf(index: number): { readonly sql: string; readonly texts: ReadonlySet<string> };
}

export interface Staged extends TypedRows {
  /** The further column. */
  readonly extra: string;
}

/** Reads a window into temporary tables and numbers repeated ids. The engine must have been told to keep the order. */
export async function stageWindow(engine: Engine, load: WindowLoad, extra?: StagedExtra): Promise<Staged> {
  const columns = [...load.planned.values()].filter((column) => column.readAs !== null && column.type !== null);
  const staged = (column: PlannedColumn) => `t${column.position}`;
  const definitions = [
    'base VARCHAR',
    'rescued VARCHAR',
    `extra ${extra?.type ?? 'BOOLEAN'}`,
    ...columns.map((c) => `${staged(c)} ${TYPES[c.type ?? 'string'].duckdb(load.zone !== undefined)}`),
  ];
  await engine.run(`CREATE TEMP TABLE ${STAGE} (${definitions.join(', ')})`);
  for (let i = 0; i < load.window.files.length; i++) {
    const more = extra?.valueOf(i);
    const { key, rescued, columns: own, values, from } = fileQuery(load, i, more?.texts);
    const into = ['base', 'rescued', 'extra', ...own.map(staged)].join(', ');
    const select = [key, rescued, more?.sql ?? 'NULL', ...values].join(', ');
    await engine.run(`
      INSERT INTO ${STAGE} (${into})
      SELECT ${select}
      FROM ${from}`);
  }
  // A number that is itself a row's id is taken.
  const repeated = `
    SELECT rowid AS ref, base, row_number() OVER (PARTITION BY base ORDER BY rowid) AS ordinal
    FROM ${STAGE}
    WHERE base IN (SELECT base FROM ${STAGE} GROUP BY base HAVING count(*) > 1)`;
  const keys = `(SELECT DISTINCT base AS key FROM ${STAGE})`;
  const taken = `
    SELECT base, number
    FROM (${sqlNumbersIn(keys)})
    WHERE number > 1`;
  await engine.run(`CREATE TEMP TABLE ${KEYS} AS ${sqlNumberKeys(repeated, taken)}`);
  return {
    from: `${STAGE} s LEFT JOIN ${KEYS} k ON s.rowid = k.ref`,
    key: 'coalesce(k.key, s.base)',
    rescued: 's.rescued',
    columns,
    values: columns.map((c) => `s.${staged(c)}`),
    extra: 's.extra',
  };
}

/** Runs work on a staged window; the engine keeps the order of rows meanwhile, and does not before and after. */
export async function withStaged<T>(
  engine: Engine,
  load: WindowLoad,
  work: (staged: Staged) => Promise<T>,
  extra?: StagedExtra,
): Promise<T> {
  await engine.run('SET preserve_insertion_order = true');
  try {
    const result = await work(await stageWindow(engine, load, extra));
    await dropStaging(engine);
    return result;
  } finally {
    await engine.run('SET preserve_insertion_order = false').catch(() => {});
  }
}

export async function dropStaging(engine: Engine): Promise<void> {
  for (const table of [STAGE, KEYS]) await engine.run(`DROP TABLE IF EXISTS ${table}`);
}
