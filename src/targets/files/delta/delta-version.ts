import { newTableState, type RunRecord } from '../../../table/place-state.ts';
import { EVENTS, TABLES, USER_PROFILES } from '../../../table/tables.ts';
import type { OpenPlace } from '../format.ts';
import type { PlaceVersion } from '../place-version.ts';
import { type DeltaTable, emptyTable } from './delta-table.ts';

export interface DeltaTables {
  readonly events: DeltaTable;
  /** Undefined for a load of days alone, which costs no request for it, and if the table is somebody else's. */
  readonly user_profiles: DeltaTable | undefined;
}

export interface DeltaVersion extends PlaceVersion {
  readonly tables: DeltaTables;
}

/** The version of a place without a log. */
export function emptyVersion({ purpose }: OpenPlace): DeltaVersion {
  const readsProfiles = purpose.kind !== 'load' || purpose.loadsProfiles;
  const profiles = readsProfiles ? emptyTable(USER_PROFILES.name) : undefined;
  return versionOf({ events: emptyTable(EVENTS.name), user_profiles: profiles });
}

export const tablesOf = ({ tables }: DeltaVersion): DeltaTable[] => TABLES.flatMap(({ name }) => tables[name] ?? []);

export function versionOf(tables: DeltaTables, lastRun?: RunRecord): DeltaVersion {
  const { events, user_profiles: profiles } = tables;
  const [profilesReceipt] = profiles?.state?.receipts.values() ?? [];
  // Somebody may have removed the file of profiles.
  const hasProfiles = profilesReceipt !== undefined && profilesReceipt.pruned !== true;
  return {
    isLoaded: events.state !== undefined || hasProfiles,
    state: {
      events: events.state ?? newTableState(EVENTS, profiles?.state?.timezone ?? null),
      user_profiles: hasProfiles ? profiles?.state : undefined,
      suppressionLength: events.state?.suppressionLength,
      lastRun,
    },
    files: [...events.files, ...(profiles?.files ?? [])],
    damagedFiles: [],
    damageWarnings: [],
    removedDays: events.removedDays,
    tables,
  };
}
