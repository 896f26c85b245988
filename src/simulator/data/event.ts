// This folder: the events that the embedded service makes up. Each row is a pure function of the seed and the day.

import { type Day, startOf } from '../../base/days.ts';
import { DAY_MS, HOUR_MS } from '../../base/durations.ts';
import type { Scenario } from '../scenario.ts';

/** Mixes two numbers into 32 bits; for a fixed `a`, different `b` have different results. */
export function mix(a: number, b: number): number {
  let hash = Math.imul((a ^ ((b + 0x9e3779b9) | 0)) | 0, 0x85ebca6b);
  hash ^= hash >>> 13;
  hash = Math.imul(hash, 0xc2b2ae35);
  hash ^= hash >>> 16;
  hash = Math.imul(hash, 0x27d4eb2f);
  return (hash ^ (hash >>> 15)) >>> 0;
}

/** FNV-1a over UTF-16 code units. */
export function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}

const TWO_32 = 2 ** 32;

/** A hash as a number in [0, 1). */
const unit = (hash: number): number => hash / TWO_32;

export const hex8 = (hash: number): string => hash.toString(16).padStart(8, '0');

/** Hours ahead of UTC of the service: its days begin there, and its datetimes are written so. */
export const ZONE_HOURS = 9;

interface EventKind {
  readonly name: string;
  /** Share of this kind among 1,024 events. */
  readonly weight: number;
  /** The number of rows of an event: `many` is one to five. */
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

/** The kind of an event, by ten bits of its hash. */
const KIND_OF: Uint8Array = Uint8Array.from(EVENT_KINDS.flatMap((kind, i) => Array<number>(kind.weight).fill(i)));

/** Kinds of event as a set of bits, one for each. */
export const kindsWhere = (fits: (kind: EventKind) => boolean): number =>
  EVENT_KINDS.reduce((bits, kind, i) => (fits(kind) ? bits | (1 << i) : bits), 0);

export const kindsOf = (...names: string[]): number => kindsWhere(({ name }) => names.includes(name));

export const ITEM_EVENTS = kindsWhere(({ items }) => items !== 'none');

/** The events of one day; `start` is its first instant (ms UTC). */
export interface SimulatedDay {
  /** Days since 1970. */
  readonly number: number;
  readonly hash: number;
  readonly start: number;
  readonly events: number;
  readonly compact: string;
}

/** `events_per_day` holds for a day that `days` does not name. */
export function simulateDay(
  seed: number,
  day: Day,
  { events_per_day: usual, days }: Pick<Scenario, 'events_per_day' | 'days'>,
): SimulatedDay {
  const number = startOf(day) / DAY_MS;
  const hash = mix(seed, number);
  const start = startOf(day) - ZONE_HOURS * HOUR_MS;
  return { number, hash, start, events: days[day] ?? varied(usual, day, hash), compact: day.replaceAll('-', '') };
}

/** About `usual` events: one tenth more or less, and a tenth more at the weekend. */
function varied(usual: number, day: Day, hash: number): number {
  const weekday = new Date(startOf(day)).getUTCDay();
  const weekend = weekday === 0 || weekday === 6 ? 0.1 : 0;
  return Math.round(usual * (0.9 + 0.2 * unit(mix(hash, 1)) + weekend));
}

const MAX_ITEMS = 5;
export const USERS = 2_000;

/** An event; instants in ms UTC. */
type SimulatedEvent = ReturnType<typeof eventAt>;

/** One row of an event: one of its items, or the event itself. */
export interface EventRow extends SimulatedEvent {
  readonly item: number;
}

/** Event `index` of a day. Events are numbered in the order of their arrival. */
export function eventAt(day: SimulatedDay, index: number) {
  const hash = mix(day.hash, index + 16);
  const server = day.start + Math.floor(((index + unit(mix(hash, 2))) / day.events) * DAY_MS);
  const kind = KIND_OF[hash >>> 22];
  const timing = mix(hash, 10);
  const correction = server - delayOf(timing);
  return {
    day,
    index,
    hash,
    kind,
    // Some users have far more events than others.
    user: Math.floor(unit(mix(hash, 7)) ** 2 * USERS),
    items: EVENT_KINDS[kind].items === 'many' ? 1 + (mix(hash, 9) % MAX_ITEMS) : 1,
    server,
    correction,
    occurred: correction - (timing % 50 === 0 ? timing % HOUR_MS : timing % 1_500),
  };
}

/** The delay of an event (ms): nine of ten within three seconds, one of fifty up to a day. */
function delayOf(timing: number): number {
  const percentile = timing % 100;
  const longest = percentile < 90 ? 3_000 : percentile < 98 ? HOUR_MS : DAY_MS;
  return Math.floor(unit(mix(timing, 11)) * longest);
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
