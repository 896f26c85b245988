import fc from 'fast-check';
import { addDays } from '../../src/base/days.ts';
import { actOf, CAP, type End, type Step, stepOf } from './acts.ts';
import { type Json, pick, START } from './drawn.ts';
import { how, side, users } from './ends.ts';
import { FAILING, LIMITED } from './faults.ts';
import type { Habits, ServiceSettings } from './service-settings.ts';

/*
 * What comes together too rarely by chance, as steps.
 */

interface Drawn {
  readonly users: readonly number[];
  readonly end: End;
  readonly hours: readonly number[];
  readonly n: readonly number[];
}

const SCENARIOS: Readonly<Record<string, (drawn: Drawn) => Step[]>> = {
  /** Two loads in a row that are broken off early. */
  broken: ({ end, hours: [a, b], n: [nth] }) => [
    stepOf([actOf('sync', { end })], { hours: a }),
    stepOf([actOf('sync', { end: { ...end, nth: nth + 1 } })], { hours: b }),
  ],
  /** What a dead run has downloaded names people who are purged then. */
  spool: ({ users: all, end, hours: [a, b, c] }) => [
    stepOf([actOf('sync')], { hours: a }),
    stepOf([actOf('sync', { end: { ...end, effect: 'commit', nth: 1 + (end.nth % 2) } })], { hours: b }),
    stepOf([actOf('purge', { users: all.slice(0, CAP) })], { hours: c % 3 }),
  ],
  /** A list that is broken off, and given again: the same day, or when a day is over. */
  again: ({ users: all, end, hours: [a, b, c, d], n: [kind, more, some] }) => {
    // The cap may have been a wider one before.
    const isWider = more % 2 === 0;
    const people = isWider ? [0, 1, 2, 3].map((n) => n + (some % 4)) : all.slice(0, CAP);
    const list = actOf(LISTS[kind % LISTS.length], { users: people });
    const early: End = some % 3 === 0 ? end : { ...end, effect: 'send', nth: Math.ceil(end.nth / 2) };
    // Or not broken off at all; or some of it failed before.
    const ended = some % 4 === 1 ? undefined : early;
    return [
      stepOf([actOf('sync')], { hours: a }),
      stepOf([{ ...list, end: ended, cap: isWider ? 2 * CAP : CAP }], {
        hours: b,
        faults: more % 2 === 0 ? FAILING : [],
      }),
      stepOf([list], { hours: c }),
      stepOf([actOf('sync')], { hours: d }),
    ];
  },
  /** Days after one that no run has read yet. */
  hole: ({ end, hours: [a, b, c], n: [first, more, gap] }) => {
    const from = (first % 4) + (gap % 4 === 0 ? 2 : 1);
    const early = actOf('part', { from: 0, to: first % 4 });
    return [
      stepOf([actOf('part', { from, to: from + (more % 3) })], { hours: a }),
      stepOf([{ ...early, end: more % 4 === 0 ? end : undefined }], { hours: b }),
      stepOf([early], { hours: c }),
    ];
  },
  /** Two loads at once, of which one reads a single day. */
  twice: ({ hours: [a, b, c], n: [day] }) => [
    stepOf([actOf('sync')], { hours: a }),
    stepOf([actOf('sync'), actOf('part', { from: day % 5, to: day % 5 })], { hours: b % 3 }),
    stepOf([actOf('sync')], { hours: c }),
  ],
  /** The power is cut while a load or a deletion stores something; then the same is done again at once. */
  dark: ({ users: all, end, hours: [a, b, c], n: [kind, more] }) => {
    const what = kind % 3 === 0 ? actOf('purge', { users: all.slice(0, CAP) }) : actOf('sync');
    return [
      ...(kind % 2 === 0 ? [stepOf([actOf('sync')], { hours: a })] : []),
      stepOf([{ ...what, end: { ...end, how: 'power', nth: 1 + (end.nth % (RARE.has(end.effect) ? 3 : 12)) } }], {
        hours: b,
      }),
      stepOf([what], { hours: more % 3 }),
      stepOf([actOf('sync')], { hours: c }),
    ];
  },
  /** A load that begins right before a day is over, and whose requests go on behind that. */
  noon: ({ hours: [a, b], n: [n, more] }) => [
    ...(more % 2 === 0 ? [stepOf([actOf('sync')], { hours: a })] : []),
    stepOf([actOf('sync')], { hours: b, beforeNoonMs: BEFORE_NOON[n] }),
  ],
  /** Somebody else loads the same into a place of theirs, with the same token. */
  beside: ({ end, hours: [a, b, c], n: [n, more, some] }) => [
    stepOf([actOf('other', more % 2 === 0 ? { end } : {}), actOf(n % 4 === 0 ? 'refresh' : 'sync')], { hours: a }),
    stepOf([actOf(some % 3 === 0 ? 'purge' : 'sync', { users: [n % 6, 6 + (more % 6)] })], { hours: b % 3 }),
    stepOf([actOf('other'), actOf('sync')], { hours: c }),
  ],
  /** Two lists at once. */
  lists: ({ users: all, end, hours: [a, b], n: [kind, more] }) => [
    stepOf([actOf('sync')], { hours: a }),
    stepOf(
      [
        actOf(LISTS[kind % LISTS.length], { users: all.slice(0, CAP), ...(more % 2 === 0 && { end }) }),
        actOf(LISTS[more % LISTS.length], { users: [kind, (kind + 1 + (more % 3)) % 12] }),
      ],
      { hours: b },
    ),
  ],
  /** A limit of the service that lasts for longer than anything is tried again. */
  patient: ({ users: all, hours: [a, b], n: [kind] }) => [
    stepOf([actOf('sync')], { hours: a }),
    stepOf([actOf(LISTS[kind % LISTS.length], { users: all.slice(0, CAP) })], { hours: b + 1, faults: [LIMITED] }),
  ],
};

/** From right before noon to as many seconds as a load of some days takes at a slow service. */
const BEFORE_NOON = [200, 400, 1_000, 3_000, 6_000, 9_000, 12_000, 15_000, 18_000, 21_000, 24_000, 30_000];
/** Effects of which a load of few days has few. */
const RARE: ReadonlySet<End['effect']> = new Set(['commit', 'rename', 'store']);
const LISTS = ['forget', 'purge', 'write'] as const;

/** A service, a configuration and a target in which a scene tells most. */
interface Suited {
  readonly settings?: Partial<ServiceSettings>;
  readonly habits?: Partial<Habits>;
  readonly target?: 'parquet' | 'delta';
  readonly tables?: string;
  readonly latencyMs?: number;
}

/** Each day ends at noon in UTC, with a row in its last moment. */
const endsAtNoon = (days: ServiceSettings['days']): Partial<ServiceSettings> => ({
  days: { ...days, zone_hours: -12 },
  hasLastMoment: true,
});

/** No day can be exported whole: its events are asked for by their names. */
const everyDay = (): Json => ({ days: Array.from({ length: 12 }, (_, n) => addDays(START, n)), status: 500 });

const SUITED: Readonly<Record<string, (settings: ServiceSettings, n: readonly number[]) => Suited>> = {
  /** Events that lie on days of both loads. */
  hole: (_, [n]) => ({
    settings: { carried: 0.5, quiet: [] },
    target: n % 2 === 0 ? 'parquet' : 'delta',
    tables: 'events,event_items,event_logs',
  }),
  /** The day that ends is asked for in parts, before its last row and after it; or that row is the only one. */
  noon: (settings, [, n]) => ({
    latencyMs: 2_500,
    ...(n % 4 < 2
      ? { settings: { ...endsAtNoon(settings.days), tooBig: everyDay(), quiet: [] }, habits: { window_days: 1 } }
      : {
          settings: {
            ...endsAtNoon({ ...settings.days, to_date_inclusive: true }),
            oneRow: true,
            tooBig: {},
            quiet: [],
          },
          habits: { knowsEnd: false, events: 'all' },
        }),
  }),
};

const NAMES = [
  ...(['broken', 'broken', 'broken', 'spool', 'spool', 'again', 'again', 'again'] as const),
  ...([
    'dark',
    'dark',
    'noon',
    'noon',
    'noon',
    'beside',
    'beside',
    'lists',
    'hole',
    'hole',
    'twice',
    'patient',
  ] as const),
];

/** Steps, and what suits them, if that is to be so. */
export interface ScenarioName {
  readonly steps: readonly Step[];
  readonly suited?: (settings: ServiceSettings) => Suited;
}

export const scene: fc.Arbitrary<ScenarioName> = fc
  .record({
    name: pick(...NAMES),
    users,
    how,
    side,
    effect: pick('commit', 'commit', 'commit', 'rename', 'store', 'write', 'sync', 'send', 'remove'),
    nth: fc.integer({ min: 1, max: 12 }),
    hours: fc.array(fc.integer({ min: 0, max: 30 }), { minLength: 4, maxLength: 4 }),
    n: fc.array(fc.nat(11), { minLength: 3, maxLength: 3 }),
    isSuited: pick(true, true, false),
  })
  .map(({ name, how: by, side: at, effect, nth, isSuited, ...rest }) => ({
    steps: SCENARIOS[name]({ ...rest, end: { how: by, side: at, effect, nth } }),
    ...(isSuited && { suited: (settings: ServiceSettings) => SUITED[name]?.(settings, rest.n) ?? {} }),
  }));
