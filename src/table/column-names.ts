import { compareUtf8 } from '../base/text.ts';
import { ITEM_PREFIX } from '../cells/csv/header.ts';
import type { DuckDbColumn } from '../cells/types/duckdb-types.ts';

/** The program's columns of `events`, with their types. */
export const PROGRAM_COLUMNS = [
  { name: '_key', type: 'VARCHAR' },
  { name: 'event_date', type: 'DATE' },
  { name: '_rescued', type: 'VARCHAR' },
  { name: '_loaded_at', type: 'TIMESTAMP' },
] as const satisfies readonly DuckDbColumn[];
export type ProgramColumn = (typeof PROGRAM_COLUMNS)[number];

export const ITEM_POSITION = 'item_position';

/** Reserved column names; a column of the export with such a name gets a suffix. */
export const RESERVED_NAMES: readonly string[] = [...PROGRAM_COLUMNS.map(({ name }) => name), ITEM_POSITION];

/** The name of a column whose header cell is empty. */
export const UNNAMED = 'column';

/** A name as DuckDB and Spark compare it: they ignore case. */
export const foldName = (name: string): string => name.toLowerCase();

/** Table names for new columns, in the order given: equal ones get `_2`, `_3`… in order of their bytes. */
export function assignNames(takenNames: Iterable<string>, newNames: readonly string[]): string[] {
  const usedNames = new Set([...takenNames].map(foldName));
  const names = new Array<string>(newNames.length);
  const order = newNames.map((_, i) => i).sort((a, b) => compareUtf8(newNames[a], newNames[b]) || a - b);
  for (const i of order) names[i] = takeFreeName(usedNames, newNames[i].replaceAll('\0', '\ufffd') || UNNAMED);
  return names;
}

/** Names of item columns without their prefix, by those with it. The prefix stays where the short name is taken. */
export function assignItemNames(takenNames: Iterable<string>, names: readonly string[]): Map<string, string> {
  const usedNames = new Set([...takenNames].map(foldName));
  return new Map(
    names.map((name) => {
      const shortName = name.slice(ITEM_PREFIX.length);
      const isTaken = shortName === '' || usedNames.has(foldName(shortName));
      return [name, takeFreeName(usedNames, isTaken ? name : shortName)];
    }),
  );
}

function takeFreeName(usedNames: Set<string>, name: string): string {
  let freeName = name;
  for (let n = 2; usedNames.has(foldName(freeName)); n++) freeName = `${name}_${n}`;
  usedNames.add(foldName(freeName));
  return freeName;
}
