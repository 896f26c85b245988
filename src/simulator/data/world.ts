import { addDays, type Day, startOf } from '../../base/days.ts';
import type { Scenario } from '../scenario.ts';
import { columnsOf } from './catalog.ts';
import type { Column } from './column.ts';
import { hashText, mix, unit } from './hash.ts';
import { createStamps, type Stamps } from './stamp.ts';

const MS_PER_HOUR = 3_600_000;
export const MS_PER_DAY = 24 * MS_PER_HOUR;

/** All that every row is a function of, together with its day and index. Holds no row. */
export interface World {
  readonly seed: number;
  readonly serviceId: string;
  readonly scenario: Scenario;
  readonly columns: readonly Column[];
  readonly stamps: Stamps;
  /** Users (by number) whose events are no longer exported. */
  readonly forgotten: ReadonlySet<number>;
}

export interface WorldOptions {
  readonly seed: number | string;
  readonly serviceId: string;
  readonly scenario: Scenario;
  readonly forgotten: ReadonlySet<number>;
}

export function createWorld(options: WorldOptions): World {
  const { scenario, serviceId, forgotten } = options;
  const seed = hashText(String(options.seed));
  const stamps = createStamps(scenario.days.cell_zone_hours * MS_PER_HOUR);
  return { seed, serviceId, scenario, stamps, forgotten, columns: columnsOf(scenario) };
}

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

export function planDay(world: World, day: Day): DayPlan {
  const number = startOf(day) / MS_PER_DAY;
  const hash = mix(world.seed, number);
  const start = instantOf(world.scenario, day);
  return { day, number, hash, start, events: eventsOn(world, day, hash), compact: day.replaceAll('-', '') };
}

function eventsOn(world: World, day: Day, hash: number): number {
  const { per_day, by_day, variation } = world.scenario.rows;
  const fixed = by_day.get(day);
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
