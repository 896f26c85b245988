import { HOUR_MS } from '../../base/durations.ts';
import type { Plan } from './plan.ts';

/** The documented limit of exports in an hour. */
const EXPORTS_PER_HOUR = 100;

export interface Forecast {
  /** Exports that the plan sends if nothing fails: one a day, and more to find out the end of an export. */
  readonly least: number;
  readonly most: number;
  /** Exports that the service allows in this hour. */
  readonly left: number;
  readonly startableNow: number;
  /** The earliest instant at which the last export may start (ms since 1970). */
  readonly earliestEnd: number;
}

/** What a plan costs by the documented limit; the service has not been asked. */
export function forecastOf({ days, endDayOn }: Plan, atOnce: number, now: number): Forecast {
  const isAsked = endDayOn !== undefined && days.length > 0;
  const least = days.length + (isAsked && !days.includes(endDayOn) ? 1 : 0);
  const most = least + (isAsked ? 2 : 0);
  const hours = Math.max(0, Math.ceil(most / EXPORTS_PER_HOUR) - 1);
  const left = EXPORTS_PER_HOUR;
  return { least, most, left, startableNow: Math.min(most, left, atOnce), earliestEnd: now + hours * HOUR_MS };
}
