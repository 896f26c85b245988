import { configError, transientError, type UserError } from '../base/errors.ts';
import { EVENT_NAME_ALTERNATIVE } from '../cells/header.ts';
import type { SettingsFingerprints } from '../extract/export-settings.ts';
import { refuseOtherHashKey, refuseOtherService } from '../extract/export-state.ts';
import { acceptedTypeOf, settingsOfTable } from '../table/column-type.ts';
import type { PlaceState, TableState } from '../table/place-state.ts';
import { EVENTS, TABLES, type Table } from '../table/tables.ts';
import type { LoadOptions } from './contract.ts';

/** The failure for a place that a command needs and that was never loaded. */
export const notLoadedError = (address: string): UserError =>
  configError(`${address} does not exist, or holds no table of this program. Is the path right, and its disk mounted?`);

/** The tables of a place that have a receipt. */
export const loadedTables = (state: PlaceState | undefined): TableState[] =>
  TABLES.flatMap((table) => loadedTable(state, table) ?? []);

/** Throws a configuration failure if the configured time zone is not that of the first load of these tables. */
export function checkTimezone(tables: readonly TableState[], { address, columnSettings }: LoadOptions): void {
  const { timezone } = columnSettings;
  const otherTable = tables.find((table) => table.timezone !== timezone);
  if (otherTable === undefined) return;
  throw configError(
    `timezone is ${timezone ?? 'not set'}, but ${address} was loaded with ${otherTable.timezone ?? 'none'}: go on with ` +
      'that, load into another place, or move this one away and sync again.',
  );
}

/**
 * Throws a configuration failure if a table of a place is of another service, or was hashed under another key. A run may
 * have made it since this one was planned, or have stored the profiles alone.
 */
export function checkFingerprints(state: PlaceState | undefined, fingerprints: SettingsFingerprints): void {
  for (const { exportState } of loadedTables(state)) {
    refuseOtherService(exportState, fingerprints);
    refuseOtherHashKey(exportState, fingerprints);
  }
}

/** Throws a configuration failure if a run's settings give columns of a place a type that their values may not fit. */
export function checkColumnTypes(
  state: PlaceState | undefined,
  { columnSettings, loadsProfiles }: Pick<LoadOptions, 'columnSettings' | 'loadsProfiles'>,
): void {
  for (const table of loadsProfiles ? TABLES : [EVENTS]) {
    const settings = settingsOfTable(table, columnSettings);
    const columns = loadedTable(state, table)?.columns ?? table.initialColumns;
    // A day may bring a column `event_name`, which a setting of this name then means.
    const possibleColumns = [...columns, { source: EVENT_NAME_ALTERNATIVE }];
    for (const column of columns) acceptedTypeOf(column, possibleColumns, settings);
  }
}

/** A table with a receipt. A killed first load may leave one without, with columns: the next load begins it anew. */
function loadedTable(state: PlaceState | undefined, { name }: Table): TableState | undefined {
  const tableState = state?.[name];
  return tableState !== undefined && tableState.receipts.size > 0 ? tableState : undefined;
}

/**
 * Throws a transient failure if people were purged from a place since a run opened it. The run has read the suppression
 * list before they were on it, and would bring them back. A list that a purge began anew may be shorter.
 */
export function checkNotPurged(
  address: string,
  stateAtOpen: PlaceState | undefined,
  stateNow: PlaceState | undefined,
): void {
  if ((stateNow?.suppressionLength ?? 0) === (stateAtOpen?.suppressionLength ?? 0)) return;
  throw transientError(`People were purged from ${address} while this run was under way: run again.`);
}
