import { HOUR_MS } from '../base/clock.ts';
import { configError } from '../base/errors.ts';
import { formatDuration } from '../base/quantities.ts';

/** The differences (ms) above which a run warns, and above which the wrong days would be read. */
const WARN_ABOVE_MS = HOUR_MS;
const REFUSE_ABOVE_MS = 12 * HOUR_MS;

/** Throws a configuration failure if the clocks of this machine and of the service differ by more than twelve hours. */
export function requireCloseClocks(now: number, serverTime: number | undefined): void {
  const difference = differenceAbove(REFUSE_ABOVE_MS, now, serverTime);
  if (difference !== undefined) throw configError(`${difference}: set this clock right, nothing was stored with it.`);
}

/** The warning of clocks that differ by more than an hour; undefined for others. */
export function clockWarning(now: number, serverTime: number | undefined): string | undefined {
  const difference = differenceAbove(WARN_ABOVE_MS, now, serverTime);
  return difference && `${difference}.`;
}

/** A clause about clocks that differ by more than `limitMs`. `serverTime`: undefined for an answer without a `Date`. */
function differenceAbove(limitMs: number, now: number, serverTime = now): string | undefined {
  const apart = Math.abs(now - serverTime);
  if (apart <= limitMs) return undefined;
  const [machineTime, serviceTime] = [now, serverTime].map((time) => new Date(time).toISOString());
  return `The clock of this machine (${machineTime}) and that of the service (${serviceTime}) are ${formatDuration(apart)} apart`;
}
