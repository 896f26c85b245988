import { castTo, isTyped, typedNull } from '../sql/columns/typed.ts';
import type { Engine } from '../sql/engine/engine.ts';
import { isPlain, type Load, sourceOf } from '../sql/rows/file-query.ts';
import { dropStaging, stageWindow } from '../sql/rows/staging.ts';

/** A query that is there until `done`. */
export interface Query {
  readonly sql: string;
  done(): Promise<void>;
}

/** The base ids of rows that were sent and that a later window may hold again. */
const SENT = '_dfinery_sent';

/** The rows of a window in the columns of the stream, in the order of the export, without those that were sent. */
export async function openWindowQuery(engine: Engine, load: Load, skipsSent: boolean): Promise<Query> {
  if (isPlain(load.window)) {
    const { columns, values, base, rescued, from } = sourceOf(load, 0);
    const found = new Map(columns.map((column, i) => [column.name, values[i]]));
    return { sql: select(load, found, base, base, rescued ?? 'NULL', from, skipsSent), async done() {} };
  }
  const staged = await stageWindow(engine, load);
  const found = new Map(staged.columns.map((column, i) => [column.name, staged.values[i]]));
  return {
    sql: select(load, found, staged.key, 's.base', staged.rescued, staged.from, skipsSent, ' ORDER BY s.rowid'),
    done: () => dropStaging(engine),
  };
}

function select(
  load: Load,
  values: ReadonlyMap<string, string>,
  key: string,
  base: string,
  rescued: string,
  from: string,
  skipsSent: boolean,
  order = '',
): string {
  const columns = [...load.plan.values()].filter(isTyped);
  const list = columns.map(({ name, type }) => {
    const value = values.get(name);
    return value === undefined ? typedNull(type, load.zone) : castTo(value, type, load.zone);
  });
  const where = skipsSent ? ` WHERE ${base} NOT IN (SELECT base FROM ${SENT})` : '';
  return `SELECT ${[key, ...list, `CAST(${rescued} AS VARCHAR)`].join(', ')} FROM ${from}${where}${order}`;
}

/** Remembers the base ids of a window, instead of those of the one before. */
export async function storeSentIds(engine: Engine, load: Load): Promise<void> {
  await engine.run(`CREATE OR REPLACE TEMP TABLE ${SENT} (base VARCHAR)`);
  for (let i = 0; i < load.window.files.length; i++) {
    const { base, from } = sourceOf(load, i);
    await engine.run(`INSERT INTO ${SENT} SELECT DISTINCT ${base} FROM ${from}`);
  }
}
