import { plainCount } from '../../base/quantities.ts';
import type { TableState } from '../../table/place-state.ts';
import { missingDaysMessage } from '../../table/place-warnings.ts';
import type { Table } from '../../table/tables.ts';
import { dayOfRowSql } from '../column-sql.ts';
import type { Engine } from '../session/engine.ts';
import { countRowsByDay } from './row-counts.ts';

// What `verify` finds in the rows of a place.

export interface Difference {
  readonly check: 'files' | 'rows' | 'keys' | 'columns';
  /** Sentence for a person; names files, days and columns, never a key. */
  readonly message: string;
}

export interface VerifyResult {
  /** What does not agree with what was loaded: exit 1. */
  readonly differences: readonly Difference[];
  /** Sentences about what is worth knowing: pruned days, keys under two days. */
  readonly warnings: readonly string[];
}

/**
 * Compares the rows of a table with its receipts. A day whose rows somebody removed has none by its receipt. Keys under
 * two days are only a warning. `relation`: SQL after FROM that gives all rows.
 */
export async function checkRows(
  engine: Engine,
  table: Table,
  relation: string,
  state: TableState,
): Promise<VerifyResult> {
  const { receipts } = state;
  const differences: Difference[] = [];
  const addDifference = (check: Difference['check'], message: string) => differences.push({ check, message });
  const missingDays = table.isSnapshot ? undefined : missingDaysMessage(state);
  if (missingDays !== undefined) addDifference('rows', missingDays);
  const daySql = dayOfRowSql(table, receipts.keys());
  const rowsByDay = await countRowsByDay(engine, relation, daySql);
  for (const day of new Set([...receipts.keys(), ...rowsByDay.keys()])) {
    const expectedRows = receipts.get(day)?.rows_stored;
    const storedRows = rowsByDay.get(day) ?? 0;
    if (storedRows === expectedRows) continue;
    const dayOrTable = table.isSnapshot ? table.name : day;
    const rowsText =
      expectedRows === undefined
        ? `has ${plainCount(storedRows, 'row')} and no receipt`
        : `should have ${plainCount(expectedRows, 'row')}, and has ${storedRows}`;
    addDifference('rows', `${dayOrTable} ${rowsText}`);
  }
  const { rowsWithoutKey, repeatedKeys, sharedKeys } = await countKeyFaults(engine, relation, daySql);
  const keysOccur = (keys: number) => plainCount(keys, 'key occurs', 'keys occur');
  if (rowsWithoutKey > 0)
    addDifference('keys', `${plainCount(rowsWithoutKey, 'row has', 'rows have')} no _key in ${table.name}`);
  if (repeatedKeys > 0)
    addDifference('keys', `${keysOccur(repeatedKeys)} more than once in ${table.isSnapshot ? table.name : 'a day'}`);
  return { differences, warnings: sharedKeys > 0 ? [`${keysOccur(sharedKeys)} under more than one day.`] : [] };
}

/** Counts the rows without a key, the keys that occur twice in a day, and those under several days. */
async function countKeyFaults(engine: Engine, relation: string, daySql: string) {
  // Keys that may occur twice are found by their hashes, which take less memory than texts.
  const counts = await engine.row(`
    WITH repeated_hashes AS MATERIALIZED (SELECT hash(_key) FROM ${relation} GROUP BY ALL HAVING count(*) > 1),
    keys_of_days AS MATERIALIZED (
      SELECT _key, ${daySql} AS day, count(*) AS n
      FROM ${relation}
      WHERE _key IS NOT NULL AND hash(_key) IN (FROM repeated_hashes)
      GROUP BY ALL
    )
    SELECT
      (SELECT count(*) FROM ${relation} WHERE _key IS NULL) AS rows_without_key,
      (SELECT count(*) FROM keys_of_days WHERE n > 1) AS repeated_keys,
      (SELECT count(*) FROM (SELECT _key FROM keys_of_days GROUP BY _key HAVING count(*) > 1)) AS shared_keys`);
  return {
    rowsWithoutKey: Number(counts.rows_without_key),
    repeatedKeys: Number(counts.repeated_keys),
    sharedKeys: Number(counts.shared_keys),
  };
}
