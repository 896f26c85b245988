import { configError } from '../base/errors.ts';
import { isPlaceholder } from '../base/placeholder.ts';
import { UNIFIED_ID } from '../cells/columns/groups.ts';
import { readColumns } from './list-file.ts';

/** Unified ids by external id. */
export type Mapping = ReadonlyMap<string, readonly string[]>;

/** The unified ids that a CSV or JSON Lines file with the columns external_id and df_unified_id gives these ids. */
export async function readMapping(path: string, ids: ReadonlySet<string>): Promise<Mapping> {
  const mapping = new Map<string, string[]>();
  for await (const { row, cells } of readColumns(path, ['external_id', UNIFIED_ID])) {
    // To skip such a cell would leave the person where it is, and its text might be another id.
    if (cells.some((cell) => cell !== undefined && cell !== null && typeof cell !== 'string')) {
      throw configError(`Row ${row} of ${path} holds a value that is not text: put it in quotes. Nothing was done.`);
    }
    const [id, person] = cells;
    if (typeof id !== 'string' || !ids.has(id) || typeof person !== 'string' || isPlaceholder(person)) continue;
    const people = mapping.get(id) ?? [];
    if (!people.includes(person)) mapping.set(id, [...people, person]);
  }
  return mapping;
}
