import { formatDuration, HOUR_MS } from '../../base/durations.ts';
import { configError } from '../../base/errors.ts';
import type { Runtime } from '../../base/runtime.ts';

/** Differences between the clocks (ms) from which a run warns, and from which it ends. */
const CLOCK_WARNING_MS = HOUR_MS;
const CLOCK_LIMIT_MS = 12 * HOUR_MS;

/**
 * Compares the service's clock (ms) with that of this machine. Warns of the first difference of more than an hour. Above
 * twelve hours the wrong days would be read: throws a configuration failure.
 */
export function checkClock(
  serverTime: number,
  counts: { clockWarnings: number },
  { clock, logger }: Pick<Runtime, 'clock' | 'logger'>,
): void {
  const now = clock.now();
  const apart = Math.abs(now - serverTime);
  if (apart <= CLOCK_WARNING_MS) return;
  const [here, there] = [now, serverTime].map((time) => new Date(time).toISOString());
  const message = `The clock of this machine (${here}) and that of the service (${there}) are ${formatDuration(apart)} apart`;
  if (apart > CLOCK_LIMIT_MS) throw configError(`${message}: set this clock right, nothing was stored with it.`);
  if (counts.clockWarnings++ === 0) logger.warn('clock.apart', `${message}.`);
}
