import type { DatasetParameters } from './dataset-parameters.ts';
import { type DayPlan, MS_PER_DAY } from './day-plan.ts';
import { EVENT_KINDS, KIND_OF, UNNAMED } from './event-name.ts';
import { mix, unit, within } from './hash.ts';

const MS_PER_HOUR = 3_600_000;
const MOST_ITEMS = 5;
const LAST_MS = 500;

/** One event, and which of its items. One object is reused for all rows of an export: read it before asking for the next. */
export interface Row {
  plan: DayPlan;
  index: number;
  /** The event's own hash: ids, kind, user, times. */
  hash: number;
  /** The hash that its cells are drawn from: changes when the event is corrected. */
  cells: number;
  kind: number;
  user: number;
  items: number;
  item: number;
  /** Instants, ms UTC. */
  server: number;
  correction: number;
  occurred: number;
}

export function emptyRow(plan: DayPlan): Row {
  const zeroes = { index: 0, hash: 0, cells: 0, kind: 0, user: 0, items: 0, item: 0 };
  return { plan, ...zeroes, server: 0, correction: 0, occurred: 0 };
}

/** Fills `row` with event `index` of a day, as it stands at `now`; false when the service does not have it (yet, or any more). */
export function loadEvent(row: Row, parameters: DatasetParameters, plan: DayPlan, index: number, now: number): boolean {
  const hash = mix(plan.hash, index + 16);
  row.plan = plan;
  row.index = index;
  row.hash = hash;
  row.server = plan.start + arrivalOf(parameters, plan, index, hash);
  if (!isThere(parameters, hash, now - row.server)) return false;
  const { corrected, users } = parameters.scenario.rows;
  const isCorrected = corrected.share > 0 && within(mix(hash, 5), corrected.share);
  row.cells = isCorrected && now - row.server >= corrected.hours * MS_PER_HOUR ? mix(hash, 6) : hash;
  row.user = userOf(mix(hash, 7), users);
  if (parameters.forgotten.size > 0 && parameters.forgotten.has(row.user)) return false;
  row.kind = kindOf(parameters, hash);
  row.items = itemsOf(parameters, row.kind, hash);
  row.item = 0;
  setTimes(row, parameters, hash);
  return true;
}

/** ms since the day began. */
function arrivalOf({ scenario }: DatasetParameters, { events }: DayPlan, index: number, hash: number): number {
  if (scenario.rows.at_day_end && index === events - 1) return MS_PER_DAY - 1 - (hash % LAST_MS);
  return Math.floor(((index + unit(mix(hash, 2))) / events) * MS_PER_DAY);
}

/** `age`: ms since the event arrived. Late events are seen hours after that, withdrawn ones no longer. */
function isThere(parameters: DatasetParameters, hash: number, age: number): boolean {
  if (age < 0) return false;
  const { late, withdrawn } = parameters.scenario.rows;
  if (late.share > 0 && within(mix(hash, 3), late.share) && age < late.hours * MS_PER_HOUR) return false;
  return !(withdrawn.share > 0 && within(mix(hash, 4), withdrawn.share) && age >= withdrawn.hours * MS_PER_HOUR);
}

/** Some users do far more than others. */
const userOf = (hash: number, users: number): number => Math.floor(unit(hash) ** 2 * users);

function kindOf(parameters: DatasetParameters, hash: number): number {
  if (within(mix(hash, 8), parameters.scenario.rows.unnamed_share)) return UNNAMED;
  return KIND_OF[hash >>> 22];
}

function itemsOf(parameters: DatasetParameters, kind: number, hash: number): number {
  const items = kind === UNNAMED ? 'none' : EVENT_KINDS[kind].items;
  if (items === 'many') return 1 + (mix(hash, 9) % MOST_ITEMS);
  if (items === 'refund' && parameters.scenario.ids.other_item_events !== 'single') return 1 + (mix(hash, 9) % 3);
  return 1;
}

function setTimes(row: Row, parameters: DatasetParameters, hash: number): void {
  const h = mix(hash, 10);
  row.correction = row.server - delayOf(h, parameters.scenario.rows.longest_delay_hours * MS_PER_HOUR);
  row.occurred = row.correction - (h % 50 === 0 ? h % MS_PER_HOUR : h % 1_500);
}

/** Nine of ten within three seconds, some within an hour, one of fifty up to the longest delay. */
function delayOf(h: number, longest: number): number {
  const of = h % 100;
  const fraction = unit(mix(h, 11));
  if (of < 90) return Math.floor(fraction * Math.min(3_000, longest));
  return Math.floor(fraction * (of < 98 ? Math.min(MS_PER_HOUR, longest) : longest));
}
