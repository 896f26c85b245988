// This folder: one export, from its bytes to the types of its columns. `csv/` finds its rows and cells, `types/` says what
// a cell is, and `columns/` scans the cells of each column. This file is the columns that the service fixes, and what the
// names of a header make of them.

import columns from '../../schemas/columns.json' with { type: 'json' };
import type { ColumnType } from './types/column-types.ts';

export const UNIFIED_ID = 'df_unified_id';
/** The id by which the company knows a profile. */
export const EXTERNAL_ID = 'df_external_id';
export const EVENT_NAME = 'df_event_name';
/** The other name of the event name's column; a custom column if an export has both. */
export const EVENT_NAME_ALTERNATIVE = 'event_name';
export const SERVER_DATETIME = 'df_server_datetime';
export const CORRECTION_DATETIME = 'df_correction_datetime';
export const DETAIL_LOG_ID = 'df_event_detail_log_id';
export const LOG_ID = 'df_event_log_id';
export const ITEM_PREFIX = 'df_items_';

export type ColumnGroup = 'unified_id' | 'system' | 'standard' | 'standard_item' | 'custom_item' | 'custom';

/** A column of `schemas/columns.json`. */
interface KnownColumn {
  readonly name: string;
  readonly group: ColumnGroup;
  readonly type: ColumnType;
  /** True if every export has the column; the event name may have its other name. */
  readonly required?: boolean;
}

const knownColumns = columns.columns as readonly KnownColumn[];

/** The columns whose meaning the service fixes, by name; the event name's is `df_event_name`. */
export const KNOWN_COLUMNS: ReadonlyMap<string, KnownColumn> = new Map(knownColumns.map((c) => [c.name, c]));

/** The columns that every export has. */
export const REQUIRED_COLUMNS = knownColumns.filter(({ required }) => required).map(({ name }) => name);

/**
 * The group of a column that is not known. Names are compared exactly: `DF_KEYWORD`, `df_anything_else` and a bare
 * `df_items_` are custom. `df_items_df_new` is a custom item.
 */
const customGroup = (name: string): ColumnGroup =>
  name.startsWith(ITEM_PREFIX) && name.length > ITEM_PREFIX.length ? 'custom_item' : 'custom';

/** Identifies a column of an export, whichever header it is in. */
export const columnKey = ({ source, occurrence }: Pick<HeaderColumn, 'source' | 'occurrence'>): string =>
  `${occurrence}\0${source}`;

/** A column of one header. */
export interface HeaderColumn {
  /** Its name as this header has it. */
  readonly headerName: string;
  /** The name that it has in every header: the event name's is always `df_event_name`. */
  readonly source: string;
  /** 1 for the first column of that source in the header, 2, 3… for further ones. */
  readonly occurrence: number;
  /** `columnKey` of source and occurrence; group and declared type follow from it. */
  readonly key: string;
  readonly group: ColumnGroup;
  /** The type that a known column has whatever its cells hold; undefined for custom ones. */
  readonly declaredType: ColumnType | undefined;
}

/**
 * The columns of a header. `event_name` is custom beside `df_event_name`, and in profiles, which have no event. Of
 * equal names all but the first are custom.
 */
export function headerColumns(header: readonly string[]): HeaderColumn[] {
  const isOfProfiles = header.includes(UNIFIED_ID) && !header.includes(SERVER_DATETIME);
  const acceptsAlternative = !header.includes(EVENT_NAME) && !isOfProfiles;
  const alternativeIndex = acceptsAlternative ? header.indexOf(EVENT_NAME_ALTERNATIVE) : -1;
  const counts = new Map<string, number>();
  return header.map((headerName, index) => {
    const source = index === alternativeIndex ? EVENT_NAME : headerName;
    const occurrence = (counts.get(source) ?? 0) + 1;
    counts.set(source, occurrence);
    const knownColumn = occurrence === 1 ? KNOWN_COLUMNS.get(source) : undefined;
    const group = knownColumn?.group ?? customGroup(source);
    const key = columnKey({ source, occurrence });
    return { headerName, source, occurrence, key, group, declaredType: knownColumn?.type };
  });
}

/** The names of a column in settings. `event_name` also means `df_event_name`, unless one of `columns` has that name. */
export function settingNames(source: string, columns: readonly Pick<HeaderColumn, 'source'>[]): string[] {
  const hasTwoNames = source === EVENT_NAME && !columns.some((column) => column.source === EVENT_NAME_ALTERNATIVE);
  return hasTwoNames ? [source, EVENT_NAME_ALTERNATIVE] : [source];
}

/** The setting of a column by the first of its names that has one. */
export const settingOf = <T extends string>(
  settings: ReadonlyMap<string, T> | undefined,
  source: string,
  columns: readonly Pick<HeaderColumn, 'source'>[],
): T | undefined => settingNames(source, columns).flatMap((name) => settings?.get(name) ?? [])[0];

/** Those of `REQUIRED_COLUMNS` that this header lacks. */
export function missingColumns(header: readonly string[]): string[] {
  const sources = new Set(headerColumns(header).map(({ source }) => source));
  return REQUIRED_COLUMNS.filter((name) => !sources.has(name));
}
