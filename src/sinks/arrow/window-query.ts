import { CORRECTION_DATETIME, SERVER_DATETIME } from '../../schema/groups.ts';
import { columnKey, type StoredColumn } from '../sql/columns/stored.ts';
import { castTo, isTyped, typedNull } from '../sql/columns/typed.ts';
import type { Engine } from '../sql/engine/engine.ts';
import { fileQuery, idsAreKeys, type WindowLoad } from '../sql/rows/file-query.ts';
import { dropStaging, stageWindow } from '../sql/rows/staging.ts';

/** A query that is valid until `done` is called. */
export interface Query {
  readonly sql: string;
  done(): Promise<void>;
}

/** Base id and date of the rows that were sent and that a later window may hold again: on another date an id is another row (S13). */
const SENT = '_dfinery_sent';

/** The rows of a window in the columns of the stream, in the order of the export, without those that were sent. */
export async function openWindowQuery(engine: Engine, load: WindowLoad, skipsSent: boolean): Promise<Query> {
  if (idsAreKeys(load.window)) {
    const { columns, values, base, rescued, from } = fileQuery(load, 0);
    const rows = { values: valuesByName(columns, values), key: base, base, rescued: rescued ?? 'NULL', from };
    return { sql: select(load, rows, skipsSent), async done() {} };
  }
  const staged = await stageWindow(engine, load);
  const { key, rescued, from } = staged;
  const rows = { values: valuesByName(staged.columns, staged.values), key, base: 's.base', rescued, from };
  return { sql: `${select(load, rows, skipsSent)} ORDER BY s.rowid`, done: () => dropStaging(engine) };
}

/** Expressions over `from`; `values` by the name of their column. */
interface Rows {
  readonly values: ReadonlyMap<string, string>;
  readonly key: string;
  readonly base: string;
  readonly rescued: string;
  readonly from: string;
}

function valuesByName(columns: readonly StoredColumn[], values: readonly string[]): Map<string, string> {
  return new Map(columns.map((column, i) => [column.name, values[i]]));
}

function select(load: WindowLoad, { values, key, base, rescued, from }: Rows, skipsSent: boolean): string {
  const columns = [...load.plan.values()].filter(isTyped);
  const list = columns.map(({ name, type }) => {
    const value = values.get(name);
    return value === undefined ? typedNull(type, load.zone) : castTo(value, type, load.zone);
  });
  const sent = ` WHERE (${base}, ${dateOf(load, values)}) NOT IN (SELECT (base, date) FROM ${SENT})`;
  return `SELECT ${[key, ...list, `CAST(${rescued} AS VARCHAR)`].join(', ')} FROM ${from}${skipsSent ? sent : ''}`;
}

/** The date of a row as text, empty for a row without. */
function dateOf({ plan }: WindowLoad, values: ReadonlyMap<string, string>): string {
  const texts = [SERVER_DATETIME, CORRECTION_DATETIME].flatMap((source) => {
    const value = values.get(plan.get(columnKey(source, 1))?.name ?? source);
    return value === undefined ? [] : `CAST(${value} AS VARCHAR)`;
  });
  return texts.length === 0 ? "''" : `coalesce(left(coalesce(${texts.join(', ')}), 10), '')`;
}

/** Stores what a window sent, replacing what the previous one did. */
export async function storeSentIds(engine: Engine, load: WindowLoad): Promise<void> {
  await engine.run(`CREATE OR REPLACE TEMP TABLE ${SENT} (base VARCHAR, date VARCHAR)`);
  for (let i = 0; i < load.window.files.length; i++) {
    const { columns, values, base, from } = fileQuery(load, i);
    const date = dateOf(load, valuesByName(columns, values));
    await engine.run(`INSERT INTO ${SENT} SELECT DISTINCT ${base}, ${date} FROM ${from}`);
  }
}
