import { plainCount } from '../../base/quantities.ts';
import type { Receipts } from '../../table/receipts.ts';
import type { Engine } from '../session/engine.ts';
import { rowsByDay } from './counts.ts';

// What `verify` finds in the rows of a place. `from` is SQL after FROM that gives all rows of a table; undefined if
// there are none.

export interface Difference {
  readonly check: 'files' | 'rows' | 'keys' | 'columns';
  /** Sentence for a person; names files, days and columns, never a key. */
  readonly message: string;
}

export const difference = (check: Difference['check'], message: string): Difference => ({ check, message });

export interface Verified {
  /** What does not agree with what was loaded: exit 1. */
  readonly differences: readonly Difference[];
  /** Sentences about what is worth knowing: pruned days, keys under two days. */
  readonly warnings: readonly string[];
}

/**
 * Compares the rows of `events` with the receipts. A day without rows is no difference: somebody removed it. Keys under
 * two days are only a warning.
 */
export async function checkEvents(engine: Engine, from: string | undefined, receipts: Receipts): Promise<Verified> {
  if (from === undefined) return { differences: [], warnings: [] };
  const differences: Difference[] = [];
  for (const [day, rows] of await rowsByDay(engine, from)) {
    const expected = receipts.get(day)?.rows_stored;
    if (rows === expected) continue;
    const message =
      expected === undefined
        ? `${day} has ${plainCount(rows, 'row')} and no receipt`
        : `${day} should have ${plainCount(expected, 'row')}, and has ${rows}`;
    differences.push(difference('rows', message));
  }
  // Keys that may occur twice are found by their hashes, which take less memory than texts.
  const keys = await engine.row(`
    WITH many AS MATERIALIZED (SELECT hash(_key) FROM ${from} GROUP BY ALL HAVING count(*) > 1),
    keyed AS MATERIALIZED (
      SELECT _key, event_date, count(*) AS n
      FROM ${from}
      WHERE hash(_key) IN (FROM many)
      GROUP BY ALL
    )
    SELECT
      (SELECT count(*) FROM ${from} WHERE _key IS NULL) AS absent,
      (SELECT count(*) FROM keyed WHERE n > 1 AND _key IS NOT NULL) AS repeated,
      (SELECT count(*) FROM (SELECT _key FROM keyed WHERE _key IS NOT NULL GROUP BY _key HAVING count(*) > 1)) AS shared`);
  const [absent, repeated, shared] = [keys.absent, keys.repeated, keys.shared].map(Number);
  if (absent > 0) differences.push(difference('keys', `${plainCount(absent, 'row has', 'rows have')} no _key`));
  if (repeated > 0) {
    differences.push(difference('keys', `${plainCount(repeated, 'key occurs', 'keys occur')} more than once in a day`));
  }
  const warnings = shared === 0 ? [] : [`${plainCount(shared, 'key occurs', 'keys occur')} under more than one day.`];
  return { differences, warnings };
}

/** Compares the rows of `user_profiles` with their number, each of which has a key of its own. */
export async function checkProfiles(
  engine: Engine,
  from: string | undefined,
  { rows_stored: expected }: { readonly rows_stored: number },
): Promise<Difference[]> {
  const rows = from === undefined ? 0 : await engine.count(from);
  const keys =
    from === undefined ? 0 : await engine.count(`(SELECT DISTINCT _key FROM ${from} WHERE _key IS NOT NULL)`);
  const differences = [];
  if (rows !== expected) {
    differences.push(difference('rows', `user_profiles should have ${plainCount(expected, 'row')}, and has ${rows}`));
  }
  if (keys !== rows) {
    const without = plainCount(rows - keys, 'row');
    differences.push(difference('keys', `user_profiles has ${without} without a key of its own`));
  }
  return differences;
}
