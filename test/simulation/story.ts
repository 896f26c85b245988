import fc from 'fast-check';
import { addDays, type Day } from '../../src/base/days.ts';
import { DELETE_FAULTS, EXPORT_FAULTS } from './faults.ts';
import type { Effect, Kill } from './machine/process.ts';

/*
 * What happens in a world, as data: fast-check draws it from a seed, and makes it smaller when it fails. Each list begins
 * with its simplest member, so that what is left of a failing story is what matters.
 */

export const START: Day = '2026-03-02';
const USERS = 12;
/** The most that one list may delete. */
export const CAP = 3;

type Json = Readonly<Record<string, unknown>>;
export type TargetName = 'duckdb' | 'parquet' | 'delta';

/** How a process may come to its end before its work does. */
export interface End extends Kill {
  /** `stop`: by SIGTERM; `kill`: by SIGKILL, so that it does nothing any more. */
  readonly how: 'stop' | 'kill';
}

/** One process of the machine. */
export interface Act {
  readonly what: 'sync' | 'refresh' | 'compact' | 'forget' | 'purge';
  /** People whom a list names, by number. */
  readonly users: readonly number[];
  readonly end: End | undefined;
  /** Bytes that its disk still takes. */
  readonly disk: number | undefined;
}

/** Some hours pass, then one or two processes run at once. */
export interface Step {
  readonly hours: number;
  /** How far the machine's clock is ahead of the service's, and by how much that changes on the way. */
  readonly skewHours: number;
  readonly jumpHours: number;
  readonly faults: readonly Json[];
  /** The tokens are reissued before; the configuration learns of it only after. */
  readonly isReissued: boolean;
  readonly acts: readonly Act[];
}

export interface Story {
  readonly scenario: Json;
  readonly config: Json;
  readonly target: TargetName;
  /** Tables that are kept. */
  readonly tables: string;
  readonly isSettled: boolean;
  readonly rowsPerDay: number;
  /** Days and hours of the service before the first step. */
  readonly hoursBefore: number;
  /** Draws the order of events; 0: each in its turn. */
  readonly order: number;
  /** Whether the ledger's key is configured, or its folder's own. */
  readonly hasLedgerKey: boolean;
  readonly steps: readonly Step[];
}

const pick = <const T>(...values: T[]) => fc.constantFrom(...values);
/** Once in so many. */
const once = <T>(inMany: number, value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.oneof({ weight: inMany - 1, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: value });

/** What is stored by it is stored at once or not at all: where a kill tells most comes most often. */
const EFFECTS: readonly Effect[] = [
  ...(['commit', 'commit', 'commit', 'rename', 'rename'] as const),
  ...(['write', 'remove', 'statement', 'create', 'send', 'sync'] as const),
];

const how = pick('stop', 'kill', 'kill');
const side = pick('before', 'after');

const end: fc.Arbitrary<End> = fc.oneof(
  fc.record({ how, side, effect: fc.constant('any' as const), nth: fc.integer({ min: 1, max: 450 }) }),
  fc.record({ how, side, effect: fc.constantFrom(...EFFECTS), nth: fc.integer({ min: 1, max: 10 }) }),
  fc.record({ how, side, effect: fc.constantFrom(...EFFECTS), nth: fc.integer({ min: 1, max: 40 }) }),
);

const users = fc.uniqueArray(fc.integer({ min: 0, max: USERS - 1 }), { minLength: 1, maxLength: CAP + 1 });

const actOf = (what: fc.Arbitrary<Act['what']>): fc.Arbitrary<Act> =>
  fc.record({ what, users, end: once(2, end), disk: once(12, fc.integer({ min: 0, max: 40_000 })) });

const act = actOf(pick('sync', 'sync', 'sync', 'refresh', 'compact', 'forget', 'purge', 'purge'));

const fault = (faults: readonly Json[], operation: string) =>
  fc
    .record({
      fault: fc.constantFrom(...faults),
      probability: pick(0.3, 0.7, 1),
      times: fc.integer({ min: 1, max: 4 }),
    })
    .map(({ fault: one, ...when }): Json => ({ ...one, when: { operation, ...when } }));

const faults = fc.array(
  fc.oneof(fault(EXPORT_FAULTS, 'export'), fault(EXPORT_FAULTS, 'export'), fault(DELETE_FAULTS, 'delete')),
  {
    maxLength: 3,
  },
);

const step: fc.Arbitrary<Step> = fc.record({
  hours: fc.integer({ min: 0, max: 40 }),
  skewHours: pick(0, 0, 0, 0, 0, 0, -1.5, 1.5, -30, 30),
  jumpHours: pick(0, 0, 0, 0, 0, 0, 0, -5, 5),
  faults,
  isReissued: pick(false, false, false, false, false, false, false, true),
  acts: fc.oneof(
    { weight: 3, arbitrary: fc.tuple(act) },
    { weight: 1, arbitrary: fc.tuple(actOf(pick('sync', 'refresh')), act) },
  ),
});

const someDays = fc.uniqueArray(fc.integer({ min: 0, max: 9 }), { maxLength: 3 });

const days = fc.record({
  to_date_inclusive: pick(true, false),
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
  exports_per_hour: pick(100, 100, 12),
  window: pick('fixed', 'sliding'),
  failed_exports_count: pick(true, false),
  concurrent_remaining: pick('actual', 'zero'),
  headers: pick('x-ratelimit', 'X-Rate-Limit', 'none'),
  headers_on: pick('all', 'all', '429'),
  reset: pick('ms', 's', 'absent', 'nonsense', 'past'),
});

const tooBig = pick('nothing', 'nothing', 'nothing', 'day', 'span').map((what): Json => {
  if (what === 'day') return { days: [addDays(START, 3)], status: 500 };
  return what === 'span' ? { longest_days: 1, status: 504 } : {};
});

/** Columns of the customer's: one that comes later, one whose type changes with the day. */
const own = once(2, fc.integer({ min: 1, max: 6 })).map((first) => [
  { name: 'plan code', values: ['7', '8.5', 'x'], per: 'day', share: 0.5 },
  ...(first === undefined
    ? []
    : [{ name: 'later', values: ['1', '2'], days: Array.from({ length: 8 }, (_, i) => addDays(START, first + i)) }]),
]);

const traits = fc.record({
  days,
  format,
  limits,
  tooBig,
  own,
  quiet: someDays,
  share: pick(0, 0, 0.2),
  isSettled: pick(false, false, false, true),
  repeats: pick(false, false, true),
  eventName: pick('event_name', 'df_event_name'),
  order: pick('time', 'reverse', 'shuffled', 'items_apart'),
  firstItem: pick(0, 1),
  otherItemEvents: pick('single', 'repeat_id', 'numbered'),
  ofDeleted: pick('kept', 'kept', 'removed'),
  hasDate: pick(true, true, true, false),
  users: fc.constant(USERS),
});

type Traits = typeof traits extends fc.Arbitrary<infer T> ? T : never;

function scenarioOf(t: Traits): Json {
  const share = t.isSettled ? 0 : t.share;
  return {
    days: t.days,
    columns: { event_name: t.eventName, type_drift: true, own: t.own },
    rows: {
      by_day: Object.fromEntries(t.quiet.map((n) => [addDays(START, n), n % 3])),
      order: t.order,
      late: { share, hours: 7 },
      corrected: { share, hours: 8 },
      longest_delay_hours: t.isSettled ? 1 : 8,
      users: t.users,
      of_deleted_profiles: t.ofDeleted,
    },
    ids: {
      first_item: t.firstItem,
      duplicate_share: t.repeats && t.days.selects_on === 'server' ? 0.1 : 0,
      other_item_events: t.otherItemEvents,
    },
    format: t.format,
    limits: t.limits,
    answers: { date_header: t.hasDate },
    too_big: t.tooBig,
  };
}

const habits = fc.record({
  window_days: pick(3, 2, 1, 5),
  knowsEnd: pick(false, false, false, true),
  knowsQuota: fc.boolean(),
  max_concurrent_exports: pick(3, 1, 5),
  isZoned: pick(false, false, true),
});

type Habits = typeof habits extends fc.Arbitrary<infer T> ? T : never;

function configOf(t: Traits, { knowsEnd, knowsQuota, isZoned, ...plain }: Habits): Json {
  const { headers, headers_on, reset, exports_per_hour: quota } = t.limits;
  // Where nothing is said in time, only the configuration can know.
  const isTold = headers !== 'none' && headers_on === 'all' && (reset === 'ms' || reset === 's');
  return {
    ...plain,
    delivery: t.isSettled ? 'settled' : 'auto',
    to_date_inclusive: knowsEnd ? String(t.days.to_date_inclusive) : 'auto',
    exports_per_hour: isTold && !knowsQuota ? 100 : quota,
    ...(isZoned && { timezone: 'Asia/Seoul' }),
  };
}

/** A clock that is ahead can only be found out where the service tells the date. */
const honest = (one: Step, hasDate: boolean): Step =>
  hasDate ? one : { ...one, skewHours: Math.min(0, one.skewHours), jumpHours: Math.min(0, one.jumpHours) };

export const story: fc.Arbitrary<Story> = fc
  .record({
    steps: fc.array(step, { minLength: 1, maxLength: 4 }),
    target: pick<TargetName>('duckdb', 'parquet', 'delta'),
    tables: pick('events', 'events', 'events,event_items,event_logs'),
    order: fc.nat(1_000_000),
    rowsPerDay: fc.integer({ min: 4, max: 9 }),
    hoursBefore: fc.integer({ min: 60, max: 120 }),
    traits,
    habits,
  })
  .map(({ traits: t, habits: h, steps, ...rest }) => ({
    ...rest,
    hasLedgerKey: rest.order % 2 === 1,
    scenario: scenarioOf(t),
    config: configOf(t, h),
    isSettled: t.isSettled,
    steps: steps.map((one) => honest(one, t.hasDate)),
  }));
