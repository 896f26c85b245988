import { HOUR_MS } from '../base/clock.ts';
import { configError } from '../base/errors.ts';
import { formatDuration } from '../base/quantities.ts';

/** The difference (ms) from which it is told, and the one above which the wrong days would be read. */
const TOLD_FROM_MS = HOUR_MS;
const LIMIT_MS = 12 * HOUR_MS;

/**
 * Throws a configuration failure if the clocks of this machine and of the service differ by more than twelve hours.
 * Returns a warning above one hour, else undefined. `serverTime`: undefined for an answer without a `Date`.
 */
export function checkClocks(now: number, serverTime: number | undefined): string | undefined {
  if (serverTime === undefined) return undefined;
  const apart = Math.abs(now - serverTime);
  if (apart <= TOLD_FROM_MS) return undefined;
  const [machineTime, serviceTime] = [now, serverTime].map((time) => new Date(time).toISOString());
  const statement = `The clock of this machine (${machineTime}) and that of the service (${serviceTime}) are ${formatDuration(apart)} apart`;
  if (apart > LIMIT_MS) throw configError(`${statement}: set this clock right, nothing was stored with it.`);
  return `${statement}.`;
}
