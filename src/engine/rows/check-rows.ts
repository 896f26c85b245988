import { unseparatedCount } from '../../base/quantities.ts';
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
  /** Sentences about what is worth knowing: pruned days, repeated keys. */
  readonly warnings: readonly string[];
}

/**
 * Compares the rows of a table with its receipts. A day whose rows somebody removed has none by its receipt. Repeated
 * keys are only a warning: they are as different as the ids of the service. `relation`: SQL after FROM that gives all rows.
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
        ? `has ${unseparatedCount(storedRows, 'row')} and no receipt`
        : `should have ${unseparatedCount(expectedRows, 'row')}, and has ${storedRows}`;
    addDifference('rows', `${dayOrTable} ${rowsText}`);
  }
  const rowsWithoutKey = await engine.count(`${relation} WHERE _key IS NULL`);
  if (rowsWithoutKey > 0)
    addDifference('keys', `${unseparatedCount(rowsWithoutKey, 'row has', 'rows have')} no _key in ${table.name}`);
  const repeatedKeys = await countRepeatedKeys(engine, relation);
  const keysOccur = unseparatedCount(repeatedKeys, 'key occurs', 'keys occur');
  return { differences, warnings: repeatedKeys > 0 ? [`${keysOccur} more than once in ${table.name}.`] : [] };
}

function countRepeatedKeys(engine: Engine, relation: string): Promise<number> {
  // Keys that may occur twice are found by their hashes, which take less memory than texts.
  return engine.count(`(
    SELECT _key
    FROM ${relation}
    WHERE _key IS NOT NULL AND hash(_key) IN (SELECT hash(_key) FROM ${relation} GROUP BY ALL HAVING count(*) > 1)
    GROUP BY _key
    HAVING count(*) > 1
  )`);
}
