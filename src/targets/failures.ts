import { configError, transientError, type UserError } from '../base/errors.ts';
import type { PlaceState } from '../table/place-state.ts';

/** The failure for a place that a command needs and that was never loaded. */
export const notLoadedError = (address: string): UserError =>
  configError(`${address} does not exist, or holds no table of this program. Is the path right, and its disk mounted?`);

/** The failure for a configured time zone that is not that of the place's first load. */
export function otherTimezoneError(address: string, configured: string | null, stored: string | null): UserError {
  return configError(
    `timezone is ${configured ?? 'not set'}, but ${address} was loaded with ${stored ?? 'none'}: go on with that, load into another place, or move this one away and sync again.`,
  );
}

/**
 * Throws a transient failure if people were purged from a place since a run opened it. The run has read the suppression
 * list before they were on it, and would bring them back. A purge with `--new-list` shortens the list: unnoticed.
 */
export function checkNotPurged(
  address: string,
  stateAtOpen: PlaceState | undefined,
  stateNow: PlaceState | undefined,
): void {
  if ((stateNow?.suppressionLength ?? 0) <= (stateAtOpen?.suppressionLength ?? 0)) return;
  throw transientError(`People were purged from ${address} while this run was under way: run again.`);
}
