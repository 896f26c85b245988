import { DAY_MS, HOUR_MS } from '../base/clock.ts';
import { type Day, startOf } from '../base/days.ts';
import { USER_COUNT } from './people.ts';
import { drawFrom, drawNumber, mix, seededRandom } from './random.ts';

/** Hours ahead of UTC of the service: its days begin there, and its datetimes are written so. */
export const ZONE_HOURS = 9;

/** `weight`: how often events of the name occur beside the others. `maxItems`: 0 if they have no items. */
const EVENT_KINDS = [
  { name: 'df_start_session', weight: 170, maxItems: 0 },
  { name: 'df_end_session', weight: 150, maxItems: 0 },
  { name: 'df_sign_up', weight: 30, maxItems: 0 },
  { name: 'df_purchase', weight: 110, maxItems: 5 },
  { name: 'df_login', weight: 70, maxItems: 0 },
  { name: 'df_logout', weight: 40, maxItems: 0 },
  { name: 'df_view_home', weight: 90, maxItems: 0 },
  { name: 'df_view_product_details', weight: 120, maxItems: 1 },
  { name: 'df_add_to_cart', weight: 60, maxItems: 1 },
  { name: 'df_add_to_wishlist', weight: 20, maxItems: 1 },
  { name: 'df_refund', weight: 14, maxItems: 1 },
  { name: 'df_view_search_result', weight: 60, maxItems: 0 },
  { name: 'df_share_product', weight: 20, maxItems: 1 },
  { name: 'df_view_list', weight: 30, maxItems: 0 },
  { name: 'df_view_cart', weight: 12, maxItems: 0 },
  { name: 'df_remove_cart', weight: 8, maxItems: 1 },
  { name: 'df_add_payment_info', weight: 8, maxItems: 0 },
  { name: '설문 응답', weight: 8, maxItems: 0 },
  { name: 'survey, "second" page', weight: 4, maxItems: 0 },
];

/** Each kind as many times as it weighs, so that one of them is drawn. */
const WEIGHTED_KINDS = EVENT_KINDS.flatMap((kind) => Array<typeof kind>(kind.weight).fill(kind));

export const ITEM_EVENTS = EVENT_KINDS.flatMap(({ name, maxItems }) => (maxItems > 0 ? [name] : []));

/** One row of an event; instants in ms UTC. */
export interface EventRow {
  readonly day: Day;
  /** Seed of what is the same for all events of the day. */
  readonly daySeed: number;
  /** Position among the events of the day, in the order of their arrival. */
  readonly index: number;
  /** Differs from that of every other event of the day. */
  readonly hash: number;
  readonly eventName: string;
  /** Number of the user, from 0. */
  readonly user: number;
  readonly serviceId: string;
  /** Number of rows: one for each item, or one for an event without items. */
  readonly rowCount: number;
  readonly receivedAt: number;
  readonly sentAt: number;
  readonly occurredAt: number;
  /** Number of the item that the row has, from 0; 0 for an event without items. */
  readonly item: number;
}

/** The events of a day, about `perDay` of them, in the order of their arrival. */
export function* eventsOf(day: Day, perDay: number, serviceId: string): Generator<Omit<EventRow, 'item'>> {
  const daySeed = mix(startOf(day) / DAY_MS, 0);
  const isWeekend = new Date(startOf(day)).getUTCDay() % 6 === 0;
  // One tenth more or less than `perDay`, and a tenth more at the weekend.
  const count = Math.round(perDay * (0.9 + 0.2 * seededRandom(daySeed, 0)() + (isWeekend ? 0.1 : 0)));
  for (let index = 0; index < count; index++) {
    const hash = mix(daySeed, index);
    const random = seededRandom(hash, 0);
    const { name: eventName, maxItems } = drawFrom(random, WEIGHTED_KINDS);
    // Some users have far more events than others.
    const user = Math.floor(random() ** 2 * USER_COUNT);
    const receivedAt = startOf(day) - ZONE_HOURS * HOUR_MS + Math.floor(((index + random()) / count) * DAY_MS);
    // Nine of ten events arrive within three seconds, one of fifty up to a day late.
    const lateness = random();
    const longestDelay = lateness < 0.9 ? 3_000 : lateness < 0.98 ? HOUR_MS : DAY_MS;
    const sentAt = receivedAt - drawNumber(random, longestDelay);
    const rowCount = 1 + drawNumber(random, Math.max(1, maxItems));
    const occurredAt = sentAt - drawNumber(random, random() < 0.02 ? HOUR_MS : 1_500);
    yield { day, daySeed, index, hash, eventName, user, serviceId, rowCount, receivedAt, sentAt, occurredAt };
  }
}

/** Writes an instant (ms, UTC) in the service's zone as `yyyy-MM-dd HH:mm:ss.SSS`. */
export function fullTimestamp(ms: number): string {
  const iso = new Date(ms + ZONE_HOURS * HOUR_MS).toISOString();
  return `${iso.slice(0, 10)} ${iso.slice(11, 23)}`;
}

/** Writes an instant (ms, UTC) in the service's zone as `yyyy.M.d H:mm`. */
export function shortTimestamp(ms: number): string {
  const at = new Date(ms + ZONE_HOURS * HOUR_MS);
  const minutes = String(at.getUTCMinutes()).padStart(2, '0');
  return `${at.getUTCFullYear()}.${at.getUTCMonth() + 1}.${at.getUTCDate()} ${at.getUTCHours()}:${minutes}`;
}
