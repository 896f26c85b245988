import fc from 'fast-check';
import { addDays } from '../../src/base/days.ts';
import { actionOf, CAP, type End, type Step, stepOf } from './actions.ts';
import { type Json, pick, START } from './common.ts';
import { how, side, users } from './ends.ts';
import { FAILING, LIMITED } from './faults.ts';
import { type StoredTarget, TARGET_NAMES } from './places.ts';
import type { ServiceSettings, UserSettings } from './service-settings.ts';

/*
 * Sequences of steps that generated steps would rarely form.
 */

interface Generated {
  readonly users: readonly number[];
  readonly end: End;
  readonly hours: readonly number[];
  readonly n: readonly number[];
}

const SEQUENCES: Readonly<Record<string, (generated: Generated) => Step[]>> = {
  /** Two loads in a row that are ended early. */
  broken: ({ end, hours: [a, b], n: [nth] }) => [
    stepOf([actionOf('sync', { end })], { hours: a }),
    stepOf([actionOf('sync', { end: { ...end, nth: nth + 1 } })], { hours: b }),
  ],
  /** A purge of people whom the downloads of a dead run name. */
  spool: ({ users: all, end, hours: [a, b, c] }) => [
    stepOf([actionOf('sync')], { hours: a }),
    stepOf([actionOf('sync', { end: { ...end, effect: 'commit', nth: 1 + (end.nth % 2) } })], { hours: b }),
    stepOf([actionOf('purge', { users: all.slice(0, CAP) })], { hours: c % 3 }),
  ],
  /** A deletion that is ended early, and its list again: on the same day, or more than a day later. */
  again: ({ users: all, end, hours: [a, b, c, d], n: [kind, more, some] }) => {
    // The cap may have been a wider one before.
    const isWider = more % 2 === 0;
    const people = isWider ? [0, 1, 2, 3].map((n) => n + (some % 4)) : all.slice(0, CAP);
    const list = actionOf(LISTS[kind % LISTS.length], { users: people });
    const early: End = some % 3 === 0 ? end : { ...end, effect: 'send', nth: Math.ceil(end.nth / 2) };
    // Or it is not ended early; or some requests failed.
    const ended = some % 4 === 1 ? undefined : early;
    return [
      stepOf([actionOf('sync')], { hours: a }),
      stepOf([{ ...list, end: ended, cap: isWider ? 2 * CAP : CAP }], {
        hours: b,
        faults: more % 2 === 0 ? FAILING : [],
      }),
      stepOf([list], { hours: c }),
      stepOf([actionOf('sync')], { hours: d }),
    ];
  },
  /** Loads of days after a day that no run has read yet. */
  hole: ({ end, hours: [a, b, c], n: [first, more, gap] }) => {
    const from = (first % 4) + (gap % 4 === 0 ? 2 : 1);
    const early = actionOf('part', { from: 0, to: first % 4 });
    return [
      stepOf([actionOf('part', { from, to: from + (more % 3) })], { hours: a }),
      stepOf([{ ...early, end: more % 4 === 0 ? end : undefined }], { hours: b }),
      stepOf([early], { hours: c }),
    ];
  },
  /** Two loads at the same time, of which one reads a single day. */
  twice: ({ hours: [a, b, c], n: [day] }) => [
    stepOf([actionOf('sync')], { hours: a }),
    stepOf([actionOf('sync'), actionOf('part', { from: day % 5, to: day % 5 })], { hours: b % 3 }),
    stepOf([actionOf('sync')], { hours: c }),
  ],
  /** A power cut while a load or a purge stores something; then the same again at once. */
  powerCut: ({ users: all, end, hours: [a, b, c], n: [kind, more] }) => {
    const what = kind % 3 === 0 ? actionOf('purge', { users: all.slice(0, CAP) }) : actionOf('sync');
    return [
      ...(kind % 2 === 0 ? [stepOf([actionOf('sync')], { hours: a })] : []),
      stepOf([{ ...what, end: { ...end, how: 'power', nth: 1 + (end.nth % (RARE.has(end.effect) ? 3 : 12)) } }], {
        hours: b,
      }),
      stepOf([what], { hours: more % 3 }),
      stepOf([actionOf('sync')], { hours: c }),
    ];
  },
  /** A load that begins right before a day is over, and ends after that. */
  noon: ({ hours: [a, b], n: [n, more] }) => [
    ...(more % 2 === 0 ? [stepOf([actionOf('sync')], { hours: a })] : []),
    stepOf([actionOf('sync')], { hours: b, beforeNoonMs: BEFORE_NOON[n] }),
  ],
  /** Another user loads the same days into another place, with the same token. */
  otherPlace: ({ end, hours: [a, b, c], n: [n, more, some] }) => [
    stepOf([actionOf('other', more % 2 === 0 ? { end } : {}), actionOf(n % 4 === 0 ? 'refresh' : 'sync')], {
      hours: a,
    }),
    stepOf([actionOf(some % 3 === 0 ? 'purge' : 'sync', { users: [n % 6, 6 + (more % 6)] })], { hours: b % 3 }),
    stepOf([actionOf('other'), actionOf('sync')], { hours: c }),
  ],
  /** Two deletions at the same time. */
  lists: ({ users: all, end, hours: [a, b], n: [kind, more] }) => [
    stepOf([actionOf('sync')], { hours: a }),
    stepOf(
      [
        actionOf(LISTS[kind % LISTS.length], { users: all.slice(0, CAP), ...(more % 2 === 0 && { end }) }),
        actionOf(LISTS[more % LISTS.length], { users: [kind, (kind + 1 + (more % 3)) % 12] }),
      ],
      { hours: b },
    ),
  ],
  /** A limit of the service that lasts longer than all retries. */
  longLimit: ({ users: all, hours: [a, b], n: [kind] }) => [
    stepOf([actionOf('sync')], { hours: a }),
    stepOf([actionOf(LISTS[kind % LISTS.length], { users: all.slice(0, CAP) })], { hours: b + 1, faults: [LIMITED] }),
  ],
};

/** Times (ms) from right before noon up to the length of a load at a slow service. */
const BEFORE_NOON = [200, 400, 1_000, 3_000, 6_000, 9_000, 12_000, 15_000, 18_000, 21_000, 24_000, 30_000];
/** Effects that occur only a few times in a load. */
const RARE: ReadonlySet<End['effect']> = new Set(['commit', 'rename', 'store']);
const LISTS = ['forget', 'purge', 'write'] as const;

/** A service, a configuration and a target in which a sequence finds most. */
interface Preferred {
  readonly settings?: Partial<ServiceSettings>;
  readonly userSettings?: Partial<UserSettings>;
  readonly target?: StoredTarget;
  readonly tables?: string;
  readonly latencyMs?: number;
}

/** Each day ends at noon in UTC, with a row in its last moment. */
const endsAtNoon = (days: ServiceSettings['days']): Partial<ServiceSettings> => ({
  days: { ...days, zone_hours: -12 },
  hasLastMoment: true,
});

/** No day can be exported whole: each is split by event names. */
const everyDay = (): Json => ({ days: Array.from({ length: 12 }, (_, n) => addDays(START, n)), status: 500 });

const PREFERRED: Readonly<Record<string, (settings: ServiceSettings, n: readonly number[]) => Preferred>> = {
  /** Events with rows on the days of both loads. */
  hole: (_, [n]) => ({
    settings: { carried: 0.5, quiet: [] },
    target: TARGET_NAMES[1 + (n % (TARGET_NAMES.length - 1))],
    tables: 'events,event_items,event_logs',
  }),
  /** The day that ends is exported in parts, before and after its last row; or that row is its only one. */
  noon: (settings, [, n]) => ({
    latencyMs: 2_500,
    ...(n % 4 < 2
      ? { settings: { ...endsAtNoon(settings.days), tooBig: everyDay(), quiet: [] }, userSettings: { window_days: 1 } }
      : {
          settings: {
            ...endsAtNoon({ ...settings.days, to_date_inclusive: true }),
            oneRow: true,
            tooBig: {},
            quiet: [],
          },
          userSettings: { knowsEnd: false, events: 'all' },
        }),
  }),
};

const NAMES = [
  ...(['broken', 'broken', 'broken', 'spool', 'spool', 'again', 'again', 'again'] as const),
  ...([
    'powerCut',
    'powerCut',
    'noon',
    'noon',
    'noon',
    'otherPlace',
    'otherPlace',
    'lists',
    'hole',
    'hole',
    'twice',
    'longLimit',
  ] as const),
];

/** Steps, and what they prefer, if that is used. */
export interface Sequence {
  readonly steps: readonly Step[];
  readonly preferred?: (settings: ServiceSettings) => Preferred;
}

export const sequence: fc.Arbitrary<Sequence> = fc
  .record({
    name: pick(...NAMES),
    users,
    how,
    side,
    effect: pick('commit', 'commit', 'commit', 'rename', 'store', 'write', 'sync', 'send', 'remove'),
    nth: fc.integer({ min: 1, max: 12 }),
    hours: fc.array(fc.integer({ min: 0, max: 30 }), { minLength: 4, maxLength: 4 }),
    n: fc.array(fc.nat(11), { minLength: 3, maxLength: 3 }),
    isPreferred: pick(true, true, false),
  })
  .map(({ name, how: by, side: at, effect, nth, isPreferred, ...rest }) => ({
    steps: SEQUENCES[name]({ ...rest, end: { how: by, side: at, effect, nth } }),
    ...(isPreferred && { preferred: (settings: ServiceSettings) => PREFERRED[name]?.(settings, rest.n) ?? {} }),
  }));
