import type { ColumnScan } from '../cells/columns/column-scan.ts';
import { columnKey, EVENT_NAME_ALTERNATIVE, headerColumns } from '../cells/csv/header.ts';
import type { ColumnType } from '../cells/types/column-types.ts';
import type { SchemaMode } from '../config/source.ts';
import type { CheckedFile } from '../extract/checked-day.ts';
import { assignItemNames, assignNames, RESERVED_NAMES } from './column-names.ts';
import { FIRST_COLUMNS, isItemGroup, newColumn, type StoredColumn } from './tables.ts';

/** The settings that decide, beside the data, the columns of a table. */
export interface ColumnRules {
  /** Zone of datetimes that name none; fixed by the first load of a target. */
  readonly timezone: string | null;
  /** Types by source name, which take precedence over everything else. */
  readonly columnTypes: ReadonlyMap<string, ColumnType>;
  readonly schemaMode: SchemaMode;
  /** Types of a pinned schema, by source name. */
  readonly pinnedTypes?: ReadonlyMap<string, ColumnType> | undefined;
  /** Derives the name of a column from that in the export, before equal names are numbered; absent: the same. */
  readonly columnName?: ((source: string) => string) | undefined;
}

/** One column of the files of a day, or of a batch, as their scans together describe it. */
export type ScannedColumn = Pick<
  ColumnScan,
  'key' | 'source' | 'occurrence' | 'group' | 'declared' | 'forms' | 'firstCells'
>;

/** The columns of some files by key, in the order of first occurrence. */
export function scannedColumns(files: readonly CheckedFile[]): ReadonlyMap<string, ScannedColumn> {
  const columns = new Map<string, ScannedColumn>();
  for (const file of files) {
    for (const column of file.columns) {
      const before = columns.get(column.key);
      const forms = column.forms | (before?.forms ?? 0);
      columns.set(column.key, { ...column, forms, firstCells: [...(before?.firstCells ?? []), ...column.firstCells] });
    }
  }
  return columns;
}

/** Columns of a pinned schema and of a batch that the table lacks, with their names. */
export function newColumns(
  storedColumns: readonly StoredColumn[],
  batchColumns: ReadonlyMap<string, ScannedColumn>,
  { pinnedTypes, columnName = (source) => source }: ColumnRules,
): StoredColumn[] {
  const storedKeys = new Set(storedColumns.map(columnKey));
  // The other name means the event name, which every place has, or a column that only a header can add.
  const pinnedNames = [...(pinnedTypes?.keys() ?? [])].filter((source) => source !== EVENT_NAME_ALTERNATIVE);
  const pinnedColumns = headerColumns(pinnedNames).filter(({ key }) => !batchColumns.has(key));
  const addedColumns = [...batchColumns.values(), ...pinnedColumns].filter(({ key }) => !storedKeys.has(key));
  const names = assignNames(
    [...RESERVED_NAMES, ...storedColumns.map(({ name }) => name)],
    addedColumns.map(({ source }) => columnName(source)),
  );
  // `event_items` also has the id of the person and the system columns, which every export has.
  const reservedItemNames = [...RESERVED_NAMES, ...FIRST_COLUMNS.map(({ name }) => name)];
  const itemNames = assignItemNames(
    [...reservedItemNames, ...storedColumns.flatMap(({ itemName }) => itemName ?? [])],
    names.filter((_, i) => isItemGroup(addedColumns[i].group)),
  );
  return addedColumns.map(({ source, occurrence, group }, i) => {
    const itemName = itemNames.get(names[i]) ?? null;
    return newColumn({ source, occurrence, position: storedColumns.length + i, group, name: names[i], itemName });
  });
}
