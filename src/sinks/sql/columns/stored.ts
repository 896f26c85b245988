import { KNOWN_COLUMNS } from '../../../schema/groups.ts';
import type { ColumnGroup } from '../../../schema/scan.ts';
import type { ColumnType, Evidence } from '../../../types/type.ts';

/** A column of the export as a target remembers it. */
export interface StoredColumn {
  /** Its name in the export; the event name's is always `df_event_name`. */
  readonly source: string;
  /** 1; 2, 3… for further columns of the same name in one header. */
  readonly occurrence: number;
  /** Its name in `events`, given once and for all. */
  readonly name: string;
  /** Its name in `event_items`; none for columns of other groups. */
  readonly itemName: string | null;
  readonly group: ColumnGroup;
  /** None while it has no table column. */
  readonly type: ColumnType | null;
  /** Union over all committed windows. */
  readonly evidence: Evidence;
  readonly position: number;
  /** Of the first cell seen. */
  readonly firstShape: string | null;
}

/** The columns that every export has, as a new file starts with them. */
export const FIRST_COLUMNS: readonly StoredColumn[] = [...KNOWN_COLUMNS.values()]
  .filter((column) => column.required)
  .map((column, position) => ({
    source: column.name,
    occurrence: 1,
    name: column.name,
    itemName: null,
    group: column.group,
    type: column.type,
    evidence: 0,
    position,
    firstShape: null,
  }));

/** What tells the columns of an export apart. */
export const columnKey = (source: string, occurrence: number): string => `${occurrence}\0${source}`;
