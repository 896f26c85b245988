import type { Day } from '../../base/days.ts';
import type { JsonObject } from '../../base/json.ts';
import type { PriorReceipt, PriorReceipts } from '../../extract/checked-day.ts';
import { type ExportState, parseState, StateError, stateAfter } from '../../extract/export-state.ts';
import type { Plan } from '../../extract/which-days.ts';

// The state of a stream of events, which the platform keeps: an `ExportState`, the receipts of the last days, and:

/** Keys of the state of a full refresh: the job that it belongs to, and the last day that was handed on. */
export interface RefreshKeys {
  readonly sync_id?: number | undefined;
  readonly refreshed_through?: Day;
}

/** Number of days of which a state keeps the row counts. What is usual for a weekday follows from four weeks. */
const KEPT_DAYS = 35;

/** The state before the first day of a first run: nothing was read under any filters. */
export const firstState = (cursor: Day, refresh: RefreshKeys | undefined) => ({
  version: 1,
  from_date: cursor,
  days: {},
  ...refresh,
});

/** The state that goes with the records of a day. */
export function nextState(
  before: ExportState | undefined,
  receipts: PriorReceipts,
  progress: Parameters<typeof stateAfter>[2],
  refresh: RefreshKeys | undefined,
): ExportState {
  const lastReceipts = new Map([...receipts].sort(([a], [b]) => (a < b ? -1 : 1)).slice(-KEPT_DAYS));
  return { ...stateAfter(before, lastReceipts, progress), days: Object.fromEntries(lastReceipts), ...refresh };
}

/** A saved state without the keys of one wait, and without those that Airbyte's own libraries add (`__ab_`). */
export function withoutTransientKeys(saved: JsonObject | undefined): JsonObject | undefined {
  const entries = Object.entries(saved ?? {}).filter(([key]) => !key.startsWith('__ab_') && key !== 'waiting_until');
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

/** What a state keeps of the days that were read. `parseState` checks it against the schema where it is used. */
export const receiptsIn = (state: JsonObject | undefined): PriorReceipts =>
  new Map(Object.entries((state?.days ?? {}) as Readonly<Record<Day, PriorReceipt>>));

/** The saved state, if an earlier attempt of the same job left it, with the same service and filters. */
export function stateOfJob(
  syncId: number | undefined,
  saved: JsonObject | undefined,
  { fingerprints }: Plan,
): (ExportState & RefreshKeys) | undefined {
  if (syncId === undefined || saved?.sync_id !== syncId) return undefined;
  try {
    const state = parseState(saved);
    return state?.filters === fingerprints.filters && state.service === fingerprints.service ? state : undefined;
  } catch (error) {
    if (error instanceof StateError) return undefined;
    throw error;
  }
}
