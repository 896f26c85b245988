import { addDays, type Day, startOf } from '../../base/days.ts';
import type { Scenario } from '../scenario.ts';
import type { DatasetParameters } from './dataset-parameters.ts';
import { mix, unit } from './hash.ts';

const MS_PER_HOUR = 3_600_000;
export const MS_PER_DAY = 24 * MS_PER_HOUR;

/** A day's worth of events, in the zone in which the service counts days. */
export interface DayPlan {
  readonly day: Day;
  readonly number: number;
  readonly hash: number;
  readonly events: number;
  /** First instant, ms UTC. */
  readonly start: number;
  readonly compact: string;
}

export function planDay(parameters: DatasetParameters, day: Day): DayPlan {
  const number = startOf(day) / MS_PER_DAY;
  const hash = mix(parameters.seed, number);
  const start = instantOf(parameters.scenario, day);
  return { day, number, hash, start, events: eventsOn(parameters, day, hash), compact: day.replaceAll('-', '') };
}

function eventsOn(parameters: DatasetParameters, day: Day, hash: number): number {
  const { per_day, by_day, variation } = parameters.scenario.rows;
  const fixed = by_day[day];
  if (fixed !== undefined) return fixed;
  const weekday = ((startOf(day) / MS_PER_DAY) % 7) + 7;
  const weekend = weekday % 7 === 2 || weekday % 7 === 3 ? 0.5 : 0;
  return Math.round(per_day * (1 + variation * (unit(mix(hash, 1)) - 0.5 + weekend)));
}

/** The instant (ms, UTC) at which a day begins for the service. */
export const instantOf = (scenario: Scenario, day: Day): number =>
  startOf(day) - scenario.days.zone_hours * MS_PER_HOUR;

/** The days whose events may be dated within [from, to] by the selecting column: events arrive late, never early. */
export function daysTouching(scenario: Scenario, from: Day, to: Day): readonly [Day, Day] {
  if (scenario.days.selects_on === 'server') return [from, to];
  return [from, addDays(to, Math.ceil((scenario.rows.longest_delay_hours + 1) / 24))];
}
