import { configError } from '../../base/errors.ts';
import { isPlaceholder } from '../../base/placeholder.ts';
import { UNIFIED_ID } from '../../cells/columns/groups.ts';
import type { ListedId } from './deletion-list.ts';
import { rowsFromFile } from './id-list.ts';

/** Unified ids by external id. */
export type Mapping = ReadonlyMap<string, readonly string[]>;

/** The unified ids that a CSV or JSON Lines file with the columns external_id and df_unified_id gives these ids. */
export async function readMapping(path: string, ids: readonly ListedId[]): Promise<Mapping> {
  const wanted = new Set(ids.map(({ id }) => id));
  const mapping = new Map<string, string[]>();
  const columns = ['external_id', UNIFIED_ID];
  const lacking = new Set(columns);
  let row = 0;
  for await (const cells of rowsFromFile(path, columns)) {
    row++;
    for (const [i, column] of columns.entries()) {
      const cell = cells[i];
      if (cell !== undefined) lacking.delete(column);
      // To skip it would leave the person where it is, and to write it as a text might make another id.
      if (cell === undefined || cell === null || typeof cell === 'string') continue;
      throw configError(
        `Row ${row} of ${path} holds a value of ${column} that is no text: put it in quotes. Nothing was done.`,
      );
    }
    const [id, person] = cells;
    if (typeof id !== 'string' || !wanted.has(id) || typeof person !== 'string' || isPlaceholder(person)) continue;
    const known = mapping.get(id) ?? [];
    if (!known.includes(person)) mapping.set(id, [...known, person]);
  }
  const [column] = lacking;
  if (row > 0 && column !== undefined) throw configError(`No row of ${path} has ${column}: nothing was done.`);
  return mapping;
}
