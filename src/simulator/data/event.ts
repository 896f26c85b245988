// This folder: the events that the embedded service makes up: each row is a pure function of the scenario.

import { addDays, type Day, startOf } from '../../base/days.ts';
import { DAY_MS, HOUR_MS } from '../../base/durations.ts';
import type { Scenario } from '../scenario.ts';
import { mix, unit, within } from './hash.ts';

/** The parameters that decide every cell, together with its column and its row. */
export interface DatasetParameters {
  readonly seed: number;
  readonly serviceId: string;
  readonly scenario: Scenario;
  /** Users (by number) whose events are no longer exported. */
  readonly deletedUsers: ReadonlySet<number>;
}

/** The number of rows of an event: `many` one to five, `refund` one or, by scenario, up to three. */
type Items = 'none' | 'one' | 'many' | 'refund';

interface EventKind {
  readonly name: string;
  /** Share of this kind among 1,024 events. */
  readonly weight: number;
  readonly items: Items;
}

export const EVENT_KINDS: readonly EventKind[] = [
  { name: 'df_start_session', weight: 170, items: 'none' },
  { name: 'df_end_session', weight: 150, items: 'none' },
  { name: 'df_sign_up', weight: 30, items: 'none' },
  { name: 'df_purchase', weight: 110, items: 'many' },
  { name: 'df_login', weight: 70, items: 'none' },
  { name: 'df_logout', weight: 40, items: 'none' },
  { name: 'df_view_home', weight: 90, items: 'none' },
  { name: 'df_view_product_details', weight: 120, items: 'one' },
  { name: 'df_add_to_cart', weight: 60, items: 'one' },
  { name: 'df_add_to_wishlist', weight: 20, items: 'one' },
  { name: 'df_refund', weight: 14, items: 'refund' },
  { name: 'df_view_search_result', weight: 60, items: 'none' },
  { name: 'df_share_product', weight: 20, items: 'one' },
  { name: 'df_view_list', weight: 30, items: 'none' },
  { name: 'df_view_cart', weight: 12, items: 'none' },
  { name: 'df_remove_cart', weight: 8, items: 'one' },
  { name: 'df_add_payment_info', weight: 8, items: 'none' },
  { name: '설문 응답', weight: 8, items: 'none' },
  { name: 'survey, "second" page', weight: 4, items: 'none' },
];

/** The kind of an event, by ten bits of its hash. */
const KIND_OF: Uint8Array = Uint8Array.from(EVENT_KINDS.flatMap((kind, i) => Array<number>(kind.weight).fill(i)));

export const UNNAMED = -1;

export function maskOf(...names: string[]): number {
  return EVENT_KINDS.reduce((mask, kind, i) => (names.includes(kind.name) ? mask | (1 << i) : mask), 0);
}

export const ITEM_EVENTS = EVENT_KINDS.reduce((mask, kind, i) => (kind.items === 'none' ? mask : mask | (1 << i)), 0);

/** The events of one day, in the zone in which the service counts days; `start` is its first instant (ms UTC). */
export type DayPlan = Readonly<ReturnType<typeof planDay>>;

export function planDay(parameters: DatasetParameters, day: Day) {
  const number = startOf(day) / DAY_MS;
  const hash = mix(parameters.seed, number);
  const start = instantOf(parameters.scenario, day);
  return { day, number, hash, start, events: eventsOn(parameters, day, hash), compact: day.replaceAll('-', '') };
}

function eventsOn(parameters: DatasetParameters, day: Day, hash: number): number {
  const { per_day, by_day, variation } = parameters.scenario.rows;
  const fixed = by_day[day];
  if (fixed !== undefined) return fixed;
  const weekday = ((startOf(day) / DAY_MS) % 7) + 7;
  const weekend = weekday % 7 === 2 || weekday % 7 === 3 ? 0.5 : 0;
  return Math.round(per_day * (1 + variation * (unit(mix(hash, 1)) - 0.5 + weekend)));
}

/** The instant (ms, UTC) at which a day begins for the service. */
export const instantOf = (scenario: Scenario, day: Day): number => startOf(day) - scenario.days.zone_hours * HOUR_MS;

/** The days whose events may be dated within [from, to] by the selecting column: events arrive late, never early. */
export function daysTouching(scenario: Scenario, from: Day, to: Day): readonly [Day, Day] {
  if (scenario.days.selects_on === 'server') return [from, to];
  return [from, addDays(to, Math.ceil((scenario.rows.longest_delay_hours + 1) / 24))];
}

export const MAX_ITEMS = 5;
const LAST_MS = 500;

/** One event and the number of one of its items; instants in ms UTC. */
export type Row = NonNullable<ReturnType<typeof eventAt>>;

/** Event `index` of a day, as it is at `now`; undefined if the service does not have it (yet, or any more). */
export function eventAt(parameters: DatasetParameters, plan: DayPlan, index: number, now: number) {
  const { corrected, users, longest_delay_hours } = parameters.scenario.rows;
  const hash = mix(plan.hash, index + 16);
  const server = plan.start + arrivalOf(parameters, plan, index, hash);
  const user = userOf(mix(hash, 7), users);
  if (!isThere(parameters, hash, now - server) || parameters.deletedUsers.has(user)) return undefined;
  const isCorrected = within(mix(hash, 5), corrected.share) && now - server >= corrected.hours * HOUR_MS;
  const kind = within(mix(hash, 8), parameters.scenario.rows.unnamed_share) ? UNNAMED : KIND_OF[hash >>> 22];
  const h = mix(hash, 10);
  const correction = server - delayOf(h, longest_delay_hours * HOUR_MS);
  return {
    plan,
    index,
    // Decides ids, kind, user and times.
    hash,
    // Decides the cells; it changes when the event is corrected.
    cells: isCorrected ? mix(hash, 6) : hash,
    kind,
    user,
    items: itemsOf(parameters, kind, hash),
    // Changed while it is read: the same object represents one item after the other.
    item: 0,
    server,
    correction,
    occurred: correction - (h % 50 === 0 ? h % HOUR_MS : h % 1_500),
  };
}

/** Milliseconds from the begin of the day to the event's arrival. */
function arrivalOf({ scenario }: DatasetParameters, { events }: DayPlan, index: number, hash: number): number {
  if (scenario.rows.at_day_end && index === events - 1) return DAY_MS - 1 - (hash % LAST_MS);
  return Math.floor(((index + unit(mix(hash, 2))) / events) * DAY_MS);
}

/** True if the service shows the event, which arrived `age` ms ago: late ones not yet, withdrawn ones no longer. */
function isThere(parameters: DatasetParameters, hash: number, age: number): boolean {
  if (age < 0) return false;
  const { late, withdrawn } = parameters.scenario.rows;
  if (within(mix(hash, 3), late.share) && age < late.hours * HOUR_MS) return false;
  return !(within(mix(hash, 4), withdrawn.share) && age >= withdrawn.hours * HOUR_MS);
}

/** The user of an event; some users have far more events than others. */
const userOf = (hash: number, users: number): number => Math.floor(unit(hash) ** 2 * users);

function itemsOf(parameters: DatasetParameters, kind: number, hash: number): number {
  const items = kind === UNNAMED ? 'none' : EVENT_KINDS[kind].items;
  if (items === 'many') return 1 + (mix(hash, 9) % MAX_ITEMS);
  if (items === 'refund' && parameters.scenario.ids.other_item_events !== 'single') return 1 + (mix(hash, 9) % 3);
  return 1;
}

/** The delay of an event (ms): nine of ten within three seconds, one of fifty up to the longest. */
function delayOf(h: number, longest: number): number {
  const of = h % 100;
  const fraction = unit(mix(h, 11));
  if (of < 90) return Math.floor(fraction * Math.min(3_000, longest));
  return Math.floor(fraction * (of < 98 ? Math.min(HOUR_MS, longest) : longest));
}

/** Writes an instant (ms, UTC) as `yyyy-MM-dd HH:mm:ss.SSS`, for a place `hours` ahead of UTC. */
export function fullStamp(ms: number, hours: number): string {
  const iso = new Date(ms + hours * HOUR_MS).toISOString();
  return `${iso.slice(0, 10)} ${iso.slice(11, 23)}`;
}

/** Writes an instant (ms, UTC) without a zone, for a place `hours` ahead of UTC: `yyyy.M.d H:mm`. */
export function shortStamp(ms: number, hours: number): string {
  const at = new Date(ms + hours * HOUR_MS);
  const minutes = String(at.getUTCMinutes()).padStart(2, '0');
  return `${at.getUTCFullYear()}.${at.getUTCMonth() + 1}.${at.getUTCDate()} ${at.getUTCHours()}:${minutes}`;
}
