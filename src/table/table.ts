import { DETAIL_LOG_ID, EXTERNAL_ID, UNIFIED_ID } from '../cells/columns/groups.ts';
import type { ColumnType } from '../cells/types/type.ts';
import type { ExportState } from '../extract/receipt.ts';
import { FIRST_COLUMNS, type StoredColumn } from './columns.ts';
import { OWN_COLUMNS } from './names.ts';
import type { TableState } from './place-state.ts';
import { receiptsOf } from './receipts.ts';

/** A table of a place. Its unit, which a commit replaces whole, is a day, or the one snapshot that it holds. */
export interface Table {
  readonly name: 'events' | 'user_profiles';
  /** The column of the export whose cells are the keys of rows. */
  readonly idColumn: string;
  /** The columns of this program that it has. */
  readonly ownColumns: readonly (typeof OWN_COLUMNS)[number][];
  /** The columns that it has from the start. */
  readonly firstColumns: readonly StoredColumn[];
}

export const EVENTS: Table = {
  name: 'events',
  idColumn: DETAIL_LOG_ID,
  ownColumns: OWN_COLUMNS,
  firstColumns: FIRST_COLUMNS,
};

const profileId = (name: string, position: number, group: StoredColumn['group']): StoredColumn => ({
  ...{ source: name, occurrence: 1, name, itemName: null, group, type: 'string', forms: 0, position, firstShape: null },
});

export const USER_PROFILES: Table = {
  name: 'user_profiles',
  idColumn: UNIFIED_ID,
  ownColumns: OWN_COLUMNS.filter((name) => name !== 'event_date'),
  firstColumns: [profileId(UNIFIED_ID, 0, 'unified_id'), profileId(EXTERNAL_ID, 1, 'custom')],
};

/** The types that profiles have whatever the configuration says: both ids are texts. */
export const withProfileTypes = (types: ReadonlyMap<string, ColumnType>): ReadonlyMap<string, ColumnType> =>
  new Map([...types, [UNIFIED_ID, 'string'], [EXTERNAL_ID, 'string']]);

/** The state of the table of profiles, as of a table of one day; undefined if the place has none. */
export function profilesOf({ timezone, exportState, profiles }: TableState): TableState | undefined {
  if (profiles === undefined) return undefined;
  const { columns, receipt, hashing } = profiles;
  const { day } = receipt;
  const state: ExportState = {
    version: 1,
    from_date: day,
    ...(exportState?.service !== undefined && { service: exportState.service }),
    ...(hashing.columns.length > 0 && { hashed: [hashing] }),
  };
  return { timezone, columns, receipts: receiptsOf([receipt]), exportState: state, changes: [] };
}
