import fc from 'fast-check';
import { addDays } from '../../src/base/days.ts';
import { type Json, once, pick, START } from './common.ts';

/*
 * The properties of a service and the configuration of its user, as data that fast-check generates.
 */

export const USERS = 12;

const someDays = fc.uniqueArray(fc.integer({ min: 0, max: 9 }), { maxLength: 3 });

const days = fc.record({
  to_date_inclusive: pick(true, false),
  single_days: pick('as_ranges', 'as_ranges', 'as_ranges', 'whole', 'empty', 'error'),
  selects_on: pick('server', 'correction', 'event'),
  zone_hours: pick(0, 9, -12, -5, 14),
  cell_zone_hours: pick(0, 9),
  future: pick('empty', 'error'),
});

const format = fc.record({
  framing: pick('chunked', 'length'),
  final_newline: pick(true, true, false),
  bom: pick(false, false, false, true),
  crlf: pick(false, false, false, true),
  content_type: pick('text/csv;charset=UTF-8', 'application/octet-stream', 'text/plain'),
});

const limits = fc.record({
  exports_per_hour: pick(100, 12, 5, 2),
  window: pick('fixed', 'sliding'),
  failed_exports_count: pick(true, false),
  concurrent_remaining: pick('actual', 'zero'),
  headers: pick('x-ratelimit', 'X-Rate-Limit', 'none'),
  headers_on: pick('all', 'all', '429'),
  reset: pick('ms', 's', 'absent', 'nonsense', 'past'),
});

const tooBig = pick('nothing', 'nothing', 'nothing', 'nothing', 'day', 'days', 'span').map((what): Json => {
  if (what === 'day') return { days: [addDays(START, 3)], status: 500 };
  if (what === 'days') return { days: [3, 4, 5, 6].map((n) => addDays(START, n)), status: 500 };
  return what === 'span' ? { longest_days: 1, status: 504 } : {};
});

/** Lines pasted from a spreadsheet: cells of one row that look like rows. */
const PASTED = ['u1,v1,df_login,,\n'.repeat(40), 'a\tb\r\n"1"\t2\r\n'.repeat(40), '\n\n,,,\n'];

/** Custom columns: one that is added later, one whose type changes with the day, one with pasted rows. */
const own = once(2, fc.integer({ min: 1, max: 6 })).map((first) => [
  { name: 'plan code', values: ['7', '8.5', 'x'], per: 'day', share: 0.5 },
  { name: 'pasted', values: PASTED, share: 0.2 },
  ...(first === undefined
    ? []
    : [{ name: 'later', values: ['1', '2'], days: Array.from({ length: 8 }, (_, i) => addDays(START, first + i)) }]),
]);

export const settings = fc.record({
  days,
  format,
  limits,
  tooBig,
  own,
  quiet: someDays,
  share: pick(0, 0, 0.2),
  isSettled: pick(false, false, false, true),
  /** Each day has one row. */
  oneRow: fc.constant<boolean>(false),
  repeats: pick(false, true),
  carried: pick(0, 0, 0.5),
  hasLastMoment: pick(false, true),
  anonymous: pick(0, 0, 0.15),
  eventName: pick('event_name', 'df_event_name'),
  order: pick('time', 'reverse', 'shuffled', 'items_apart'),
  firstItem: pick(0, 1),
  otherItemEvents: pick('single', 'repeat_id', 'numbered'),
  ofDeleted: pick('kept', 'kept', 'removed'),
  hasDate: pick(true, true, true, false),
  users: fc.constant(USERS),
});

export type ServiceSettings = typeof settings extends fc.Arbitrary<infer T> ? T : never;

export function scenarioOf(t: ServiceSettings, { max_concurrent_exports: concurrent_exports }: UserSettings): Json {
  const share = t.isSettled ? 0 : t.share;
  return {
    days: t.days,
    columns: { event_name: t.eventName, type_drift: true, own: t.own },
    rows: {
      by_day: Object.fromEntries(
        t.oneRow
          ? Array.from({ length: 12 }, (_, n) => [addDays(START, n), 1])
          : t.quiet.map((n) => [addDays(START, n), n % 3]),
      ),
      order: t.order,
      late: { share, hours: 7 },
      corrected: { share, hours: 8 },
      longest_delay_hours: t.isSettled ? 1 : 8,
      at_day_end: t.hasLastMoment,
      anonymous_share: t.anonymous,
      users: t.users,
      of_deleted_profiles: t.ofDeleted,
    },
    ids: {
      first_item: t.firstItem,
      duplicate_share: t.repeats && t.days.selects_on === 'server' ? 0.3 : 0,
      carried_share: t.carried,
      other_item_events: t.otherItemEvents,
    },
    format: t.format,
    limits: { ...t.limits, concurrent_exports },
    answers: { date_header: t.hasDate },
    too_big: t.tooBig,
  };
}

export const userSettings = fc.record({
  window_days: pick(3, 2, 1, 5),
  knowsEnd: pick(false, false, false, true),
  knowsQuota: fc.boolean(),
  max_concurrent_exports: pick(3, 1, 5),
  isZoned: pick(false, false, true),
  settle_hours: pick(3, 2),
  lookback_days: pick(1, 1, 1, 2, 3, 0),
  events: pick('all', 'all', 'all', 'include', 'exclude'),
  hidden: pick('nothing', 'nothing', 'nothing', 'hashed', 'dropped'),
});

export type UserSettings = typeof userSettings extends fc.Arbitrary<infer T> ? T : never;

export function configOf(
  t: ServiceSettings,
  { knowsEnd, knowsQuota, isZoned, events, hidden: _, ...plain }: UserSettings,
): Json {
  const { headers, headers_on, reset, exports_per_hour: quota } = t.limits;
  // If the service does not say its limit in time, the configuration has to.
  const isKnown = headers !== 'none' && headers_on === 'all' && (reset === 'ms' || reset === 's');
  return {
    ...plain,
    delivery: t.isSettled ? 'settled' : 'auto',
    // One setting cannot say that ranges differ from single days.
    to_date_inclusive: knowsEnd && t.days.single_days === 'as_ranges' ? String(t.days.to_date_inclusive) : 'auto',
    exports_per_hour: isKnown && !knowsQuota ? 100 : quota,
    ...(isZoned && { timezone: 'Asia/Seoul' }),
    ...(events !== 'all' && { events: NAMES[events], events_condition_type: events }),
  };
}

const NAMES = {
  include: ['df_purchase', 'df_login', 'df_start_session', 'df_view_home', 'df_refund', 'df_share_product'],
  exclude: ['df_end_session', 'df_view_list'],
} as const;

/** Columns that are dropped, and those that are hashed. */
export interface Hidden {
  readonly dropped: readonly string[];
  readonly hashed: readonly string[];
}

export function hiddenOf({ hidden }: UserSettings): Hidden {
  return { dropped: hidden === 'dropped' ? ['memo', 'Grade'] : [], hashed: hidden === 'hashed' ? ['member_no'] : [] };
}
