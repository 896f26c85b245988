import { compareUtf8 } from '../base/text.ts';
import {
  columnKey,
  EVENT_NAME,
  EVENT_NAME_ALTERNATIVE,
  type HeaderColumn,
  headerColumns,
  ITEM_PREFIX,
} from '../cells/header.ts';
import type { ColumnSettings } from './column-type.ts';
import { EVENTS, isItemGroup, newColumn, type StoredColumn } from './tables.ts';

export const ITEM_POSITION = 'item_position';

/** DuckDB numbers the rows of a table under this name, unless the table has a column of this name. */
const ROW_ID = 'rowid';

/** A column of the export with such a name gets a suffix. */
const RESERVED_NAMES: readonly string[] = [...EVENTS.programColumns.map(({ name }) => name), ITEM_POSITION, ROW_ID];

/** `event_items` also has the id of the person and the system columns, which every export has. */
const RESERVED_ITEM_NAMES: readonly string[] = [...RESERVED_NAMES, ...EVENTS.initialColumns.map(({ name }) => name)];

/** The name of a column whose header cell is empty. */
export const UNNAMED_COLUMN = 'column';

/** Names that are the same in this form are one name: Spark ignores case, DuckDB that of ASCII letters. */
export const foldName = (name: string): string => name.toLowerCase();

/** Columns of a day and of a pinned schema that the table lacks, with their names. */
export function columnsToAdd(
  storedColumns: readonly StoredColumn[],
  dayColumns: ReadonlyMap<string, HeaderColumn>,
  { pinnedTypes, columnNameOf = (source) => source }: ColumnSettings,
): StoredColumn[] {
  const storedKeys = new Set(storedColumns.map(columnKey));
  // Without `df_event_name` beside it `event_name` means that column, which every place has.
  const pinnedNames = [...(pinnedTypes?.keys() ?? [])].filter(
    (source) => source !== EVENT_NAME_ALTERNATIVE || pinnedTypes?.has(EVENT_NAME),
  );
  const pinnedOnlyColumns = headerColumns(pinnedNames).filter(({ key }) => !dayColumns.has(key));
  const addedColumns = [...dayColumns.values(), ...pinnedOnlyColumns].filter(({ key }) => !storedKeys.has(key));
  const names = assignNames(
    [...RESERVED_NAMES, ...storedColumns.map(({ name }) => name)],
    addedColumns.map(({ source }) => columnNameOf(source)),
  );
  const usedItemNames = foldNames([...RESERVED_ITEM_NAMES, ...storedColumns.flatMap(({ itemName }) => itemName ?? [])]);
  return addedColumns.map(({ source, occurrence, group }, i) => {
    const itemName = isItemGroup(group) ? takeItemName(usedItemNames, names[i]) : null;
    return newColumn({ source, occurrence, position: storedColumns.length + i, group, name: names[i], itemName });
  });
}

/** Table names for new columns, in the order given: equal ones get `_2`, `_3`… in order of their bytes. */
function assignNames(takenNames: readonly string[], newNames: readonly string[]): string[] {
  const usedNames = foldNames(takenNames);
  const names = new Array<string>(newNames.length);
  const order = newNames.map((_, i) => i).sort((a, b) => compareUtf8(newNames[a], newNames[b]) || a - b);
  for (const i of order) names[i] = takeFreeName(usedNames, newNames[i].replaceAll('\0', '\ufffd') || UNNAMED_COLUMN);
  return names;
}

/** The name of an item column without its prefix. The prefix stays where the short name is taken. */
function takeItemName(usedNames: Set<string>, name: string): string {
  const shortName = name.slice(ITEM_PREFIX.length);
  return takeFreeName(usedNames, usedNames.has(foldName(shortName)) ? name : shortName);
}

function takeFreeName(usedNames: Set<string>, name: string): string {
  let freeName = name;
  for (let n = 2; usedNames.has(foldName(freeName)); n++) freeName = `${name}_${n}`;
  usedNames.add(foldName(freeName));
  return freeName;
}

const foldNames = (names: readonly string[]): Set<string> => new Set(names.map(foldName));
