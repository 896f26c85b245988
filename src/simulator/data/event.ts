// This folder: the data that the embedded service makes up. `event.ts` has the events of a day, `columns.ts` the texts of
// their cells, `profiles.ts` the users. `dataset.ts` is all of it. Each row is a pure function of the seed and the day.

import { type Day, startOf } from '../../base/days.ts';
import { DAY_MS, HOUR_MS } from '../../base/durations.ts';
import type { Scenario } from '../scenario.ts';
import { mix, unit } from './hashing.ts';
import { USERS } from './profiles.ts';

/** Hours ahead of UTC of the service: its days begin there, and its datetimes are written so. */
export const ZONE_HOURS = 9;

interface EventKind {
  readonly name: string;
  /** Share of this kind among 1,024 events. */
  readonly weight: number;
  /** How many items an event has: `many` is one to five. */
  readonly items: 'none' | 'one' | 'many';
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
  { name: 'df_refund', weight: 14, items: 'one' },
  { name: 'df_view_search_result', weight: 60, items: 'none' },
  { name: 'df_share_product', weight: 20, items: 'one' },
  { name: 'df_view_list', weight: 30, items: 'none' },
  { name: 'df_view_cart', weight: 12, items: 'none' },
  { name: 'df_remove_cart', weight: 8, items: 'one' },
  { name: 'df_add_payment_info', weight: 8, items: 'none' },
  { name: '설문 응답', weight: 8, items: 'none' },
  { name: 'survey, "second" page', weight: 4, items: 'none' },
];

/** The kind of an event, by the ten highest bits of its hash. */
const KIND_OF: Uint8Array = Uint8Array.from(EVENT_KINDS.flatMap((kind, i) => Array<number>(kind.weight).fill(i)));
if (KIND_OF.length !== 1 << 10) throw new Error('The weights of the kinds of event must add up to 1,024.');

/** Kinds of event as a set of bits, one for each. */
export const kindsWhere = (fits: (kind: EventKind) => boolean): number =>
  EVENT_KINDS.reduce((bits, kind, i) => (fits(kind) ? bits | (1 << i) : bits), 0);

export const kindsOf = (...names: string[]): number => kindsWhere(({ name }) => names.includes(name));

export const ITEM_EVENTS = kindsWhere(({ items }) => items !== 'none');

/** The hash of a day or an event is mixed with a salt for each of its values, so that they are independent. */
const SALTS = { eventCount: 1, server: 2, user: 7, items: 9, timing: 10, delay: 11 } as const;
/** The first event of a day is mixed with this number, behind the salts. */
const FIRST_EVENT_SALT = 16;

/** One day of events. */
export interface SimulatedDay {
  /** Days since 1970. */
  readonly number: number;
  readonly hash: number;
  /** The first instant (ms UTC). */
  readonly start: number;
  readonly eventCount: number;
  /** The day as `yyyyMMdd`. */
  readonly digits: string;
}

/** `events_per_day` holds for a day that `days` does not name. */
export function simulateDay(
  seed: number,
  day: Day,
  { events_per_day: meanCount, days }: Pick<Scenario, 'events_per_day' | 'days'>,
): SimulatedDay {
  const number = startOf(day) / DAY_MS;
  const hash = mix(seed, number);
  const start = startOf(day) - ZONE_HOURS * HOUR_MS;
  const eventCount = days[day] ?? drawnCount(meanCount, day, hash);
  return { number, hash, start, eventCount, digits: day.replaceAll('-', '') };
}

/** About `meanCount` events: one tenth more or less, and a tenth more at the weekend. */
function drawnCount(meanCount: number, day: Day, hash: number): number {
  const weekday = new Date(startOf(day)).getUTCDay();
  const weekend = weekday === 0 || weekday === 6 ? 0.1 : 0;
  return Math.round(meanCount * (0.9 + 0.2 * unit(mix(hash, SALTS.eventCount)) + weekend));
}

const MAX_ITEMS = 5;

/** An event; instants in ms UTC. */
interface SimulatedEvent {
  readonly day: SimulatedDay;
  /** Position among the events of the day, in the order of their arrival. */
  readonly index: number;
  readonly hash: number;
  /** Index into `EVENT_KINDS`. */
  readonly kind: number;
  readonly user: number;
  /** Number of rows: one for each item, or one for an event without items. */
  readonly rowCount: number;
  /** When the service received the event. */
  readonly server: number;
  /** When the device sent it. */
  readonly correction: number;
  /** When it happened. */
  readonly occurred: number;
}

/** One row of an event: one of its items, or the event itself. */
export interface EventRow extends SimulatedEvent {
  readonly item: number;
}

export function eventAt(day: SimulatedDay, index: number): SimulatedEvent {
  const hash = mix(day.hash, index + FIRST_EVENT_SALT);
  const server = day.start + Math.floor(((index + unit(mix(hash, SALTS.server))) / day.eventCount) * DAY_MS);
  const kind = KIND_OF[hash >>> 22];
  const timing = mix(hash, SALTS.timing);
  const correction = server - delayOf(timing);
  return {
    day,
    index,
    hash,
    kind,
    // Some users have far more events than others.
    user: Math.floor(unit(mix(hash, SALTS.user)) ** 2 * USERS),
    rowCount: EVENT_KINDS[kind].items === 'many' ? 1 + (mix(hash, SALTS.items) % MAX_ITEMS) : 1,
    server,
    correction,
    occurred: correction - (timing % 50 === 0 ? timing % HOUR_MS : timing % 1_500),
  };
}

/** The delay of an event (ms): nine of ten within three seconds, one of fifty up to a day. */
function delayOf(timing: number): number {
  const percentile = timing % 100;
  const longest = percentile < 90 ? 3_000 : percentile < 98 ? HOUR_MS : DAY_MS;
  return Math.floor(unit(mix(timing, SALTS.delay)) * longest);
}

/** Writes an instant (ms, UTC) in the service's zone as `yyyy-MM-dd HH:mm:ss.SSS`. */
export function fullStamp(ms: number): string {
  const iso = new Date(ms + ZONE_HOURS * HOUR_MS).toISOString();
  return `${iso.slice(0, 10)} ${iso.slice(11, 23)}`;
}

/** Writes an instant (ms, UTC) in the service's zone as `yyyy.M.d H:mm`. */
export function shortStamp(ms: number): string {
  const at = new Date(ms + ZONE_HOURS * HOUR_MS);
  const minutes = String(at.getUTCMinutes()).padStart(2, '0');
  return `${at.getUTCFullYear()}.${at.getUTCMonth() + 1}.${at.getUTCDate()} ${at.getUTCHours()}:${minutes}`;
}
