import type { TableState } from '../../table/state.ts';
import type { Engine } from '../sql/engine/engine.ts';
import { identifier } from '../sql/engine/quote.ts';
import type { ColumnStatistics, NewFile } from './log.ts';
import { PARTITION, readFiles } from './parquet-file.ts';

/** What a log says of one column of a file. */
export interface LoggedColumn extends ColumnStatistics {
  /** Rows without a value: of a list, rows without a list. */
  readonly absent: number;
}

/** The columns whose least and greatest values a log may hold: the date, system datetimes and our own numbers (S44). */
export function rangedColumns({ columns }: TableState): ReadonlySet<string> {
  const times = columns.filter(({ group, type }) => group === 'system' && type === 'datetime');
  return new Set([PARTITION, '_dfinery_window', 'item_position', ...times.map(({ name }) => name)]);
}

/**
 * What a log says of a new file, by column: rows and nulls of every column; least and greatest values of the columns in
 * `ranged` alone, since a log keeps them as long as the file, or for good (S44).
 */
export async function loggedColumns(
  engine: Engine,
  { local, statistics }: NewFile,
  ranged: ReadonlySet<string>,
): Promise<Map<string, LoggedColumn>> {
  const ask = (value: string) => engine.row(`SELECT ${value} FROM ${readFiles([local])}`);
  const lists = [...statistics].filter(([, { isList }]) => isList).map(([name]) => name);
  const counts = lists.map((name) => `count(*) - count(${identifier(name)})`);
  const { absentLists } = lists.length === 0 ? {} : await ask(`[${counts.join(', ')}] AS "absentLists"`);
  const absentOf = new Map(lists.map((name, i) => [name, Number((absentLists as bigint[])[i])]));
  const logged = new Map<string, LoggedColumn>();
  for (const [name, own] of statistics) {
    const column = identifier(name);
    const absent = absentOf.get(name) ?? own.nulls;
    let { least, greatest } = ranged.has(name) ? own : NO_RANGE;
    // DuckDB tells no range of a column that has no value in one of several row groups.
    if (ranged.has(name) && own.values > 0 && least === null) {
      const { type } = await ask(`typeof(min(${column})) AS type`);
      // The text of an instant is in UTC in the others, and would be in the zone of this machine.
      const text = (value: string) =>
        type === 'TIMESTAMP WITH TIME ZONE'
          ? `CAST(timezone('UTC', ${value}) AS VARCHAR) || '+00'`
          : `CAST(${value} AS VARCHAR)`;
      const { lo, hi } = await ask(`${text(`min(${column})`)} AS lo, ${text(`max(${column})`)} AS hi`);
      [least, greatest] = [String(lo), String(hi)];
    }
    logged.set(name, { ...own, least, greatest, absent });
  }
  return logged;
}

const NO_RANGE = { least: null, greatest: null };
