import fc from 'fast-check';
import { type Action, actionOf, CAP, isDeletion, type Step, stepOf } from './actions.ts';
import { type Json, once, pick } from './common.ts';
import { end, users } from './ends.ts';
import { DELETE_FAULTS, EXPORT_FAULTS, LIMITED, twoCuts } from './faults.ts';
import { type StoredTarget, TARGET_NAMES, TARGETS } from './places.ts';
import { type Sequence, sequence } from './sequences.ts';
import { configOf, type Hidden, hiddenOf, scenarioOf, settings, USERS, userSettings } from './service-settings.ts';

/*
 * A test case says, as data, what happens in a simulation: fast-check generates it from a seed, and shrinks it when it fails.
 * Each list begins with its simplest member, so that a shrunken test case has only what the failure needs.
 */

export type TargetName = StoredTarget | 'airbyte';

export interface TestCase {
  readonly scenario: Json;
  readonly config: Json;
  readonly target: TargetName;
  /** Tables that are loaded, as `--tables` takes them. */
  readonly tables: string;
  readonly isSettled: boolean;
  readonly settleHours: number;
  readonly lookback: number;
  /** True if every day is read again once no more late rows can come. */
  readonly readsAgain: boolean;
  /** True if the service keeps all that it has exported. */
  readonly keepsRows: boolean;
  readonly rowsPerDay: number;
  /** Days and hours of the service before the first step. */
  readonly hoursBefore: number;
  /** Seed for the order of events; 0: in the order in which they were scheduled. */
  readonly order: number;
  /** True if the ledger's key is configured; else its folder has one. */
  readonly hasLedgerKey: boolean;
  /** True if a purge finds people by a mapping; else by a column. */
  readonly hasMapping: boolean;
  /** True if a copy for readers is published. */
  readonly publishes: boolean;
  readonly hidden: Hidden;
  /** How long the disk takes to store something, ms. */
  readonly diskMs: number;
  /** How long the service takes before it answers, ms. */
  readonly latencyMs: number;
  readonly steps: readonly Step[];
}

/** One to three days, or all days from or up to one. */
const someDays = fc
  .record({ first: fc.integer({ min: 0, max: 7 }), more: fc.integer({ min: 0, max: 2 }), left: pick(0, 0, 0, 1, 2) })
  .map(({ first, more, left }) => ({
    from: left === 1 ? undefined : first,
    to: left === 2 ? undefined : first + more,
  }));

const actionOfKind = (what: fc.Arbitrary<Action['what']>): fc.Arbitrary<Action> =>
  fc
    .record({ what, users, days: someDays, end: once(2, end), disk: once(12, fc.integer({ min: 0, max: 40_000 })) })
    .map(({ days, ...rest }) => actionOf(rest.what, { ...rest, ...(rest.what === 'part' && days) }));

const action = actionOfKind(
  pick('sync', 'sync', 'sync', 'part', 'part', 'other', 'refresh', 'compact', 'forget', 'purge', 'purge', 'write'),
);

const fault = (faults: readonly Json[], operation: string) =>
  fc
    .record({
      fault: fc.constantFrom(...faults),
      probability: pick(0.3, 0.7, 1),
      times: fc.integer({ min: 1, max: 4 }),
    })
    .map(({ fault: one, ...when }): Json => ({ ...one, when: { operation, ...when } }));

const cuts = fc.tuple(fc.nat(5), fc.integer({ min: 1, max: 3 }), fc.nat(2));

const faults = fc
  .array(
    fc.oneof(
      { weight: 4, arbitrary: fault(EXPORT_FAULTS, 'export').map((one) => [one]) },
      { weight: 2, arbitrary: fault(DELETE_FAULTS, 'delete').map((one) => [one]) },
      { weight: 2, arbitrary: cuts.map(twoCuts) },
      { weight: 1, arbitrary: fc.constant([LIMITED]) },
    ),
    { maxLength: 3 },
  )
  .map((all) => all.flat());

const step: fc.Arbitrary<Step> = fc.record({
  hours: fc.integer({ min: 0, max: 40 }),
  beforeNoonMs: once(4, pick(500, 3_000, 20_000, 200)),
  skewHours: pick(0, 0, 0, 0, 0, 0, -1.5, 1.5, -30, 30),
  jumpHours: pick(0, 0, 0, 0, 0, 0, 0, -5, 5),
  faults,
  isReissued: pick(false, false, false, false, false, false, false, true),
  actions: fc.oneof(
    { weight: 3, arbitrary: fc.tuple(action) },
    { weight: 1, arbitrary: fc.tuple(actionOfKind(pick('sync', 'refresh')), action) },
  ),
});

/**
 * A wrong clock is noticed by the `Date` header of the service alone: without it, a clock that is ahead makes unfinished days
 * look over, and one that is behind makes each limit last that much longer.
 */
const withKnownClock = (one: Step, hasDate: boolean): Step =>
  hasDate ? one : { ...one, skewHours: one.skewHours === -1.5 ? -1.5 : 0, jumpHours: 0 };

/** If bodies end without a line end, a body that is cut before one cannot be told from a whole one. */
const withCertainEnds = (one: Step, endsLines: boolean): Step =>
  endsLines ? one : { ...one, faults: one.faults.filter(({ at }) => at !== 'row_end') };

const isPart = ({ what }: Action): boolean => what === 'part';

/** A platform runs one read at a time, and passes deletion requests on. */
function forPlatform(one: Step, target: TargetName): Step {
  if (target !== 'airbyte') return one;
  const actions = one.actions.map((action): Action => (isDeletion(action) ? { ...action, what: 'write' } : action));
  return { ...one, actions: actions.some(isDeletion) ? actions : actions.slice(0, 1) };
}

/** The first two commits of a run stay: every target has those. Instead of later ones, what stores a window: a platform gets messages. */
const withStoreEffects = (one: Step, target: TargetName): Step => ({
  ...one,
  actions: one.actions.map((action) =>
    action.end?.effect === 'commit' && action.end.nth > 2
      ? { ...action, end: { ...action.end, effect: target === 'airbyte' ? 'send' : 'store' } }
      : action,
  ),
});

/** A purge at the end has to find what dead runs have left. */
const finalPurge = (users: readonly number[] | undefined): Step[] =>
  users === undefined ? [] : [stepOf([actionOf('purge', { users })], { hours: 1 })];

/** The target of all test cases; undefined: each has one of its own. */
const ONLY_TARGET = [...TARGET_NAMES, 'airbyte' as const].find((name) => name === process.env.SOAK_TARGET);

export const testCase: fc.Arbitrary<TestCase> = fc
  .record({
    sequence: fc.oneof(
      {
        weight: 1,
        arbitrary: fc.array(step, { minLength: 1, maxLength: 4 }).map((steps): Sequence => ({ steps })),
      },
      { weight: 1, arbitrary: sequence },
    ),
    target: pick<TargetName>(...TARGET_NAMES, 'airbyte'),
    tables: pick('events', 'events,event_items,event_logs'),
    order: fc.nat(1_000_000),
    rowsPerDay: fc.integer({ min: 4, max: 9 }),
    hoursBefore: fc.integer({ min: 60, max: 120 }),
    publishes: pick(false, false, true),
    diskMs: pick(0, 0, 30, 400),
    latencyMs: pick(0, 0, 100, 2_500),
    lastPurge: once(2, fc.uniqueArray(fc.integer({ min: 0, max: USERS - 1 }), { minLength: 1, maxLength: CAP })),
    hasMapping: pick(false, false, true),
    settings,
    userSettings,
  })
  .map(({ sequence: { preferred, steps }, ...drawn }) => {
    const { settings: t, userSettings: h, ...more } = preferred?.(drawn.settings) ?? {};
    return {
      ...drawn,
      ...more,
      ...(ONLY_TARGET !== undefined && { target: ONLY_TARGET }),
      steps,
      settings: { ...drawn.settings, ...t },
      userSettings: { ...drawn.userSettings, ...h },
    };
  })
  .map(({ settings: t, userSettings: h, steps, lastPurge, ...rest }) => ({
    ...rest,
    publishes:
      rest.publishes && rest.target !== 'airbyte' && TARGETS[rest.target].descriptor.options?.publish !== undefined,
    hasLedgerKey: rest.order % 2 === 1,
    // A platform merges records by their key alone, so that an id may not start again for another row.
    scenario: scenarioOf({ ...t, repeats: t.repeats && rest.target !== 'airbyte' }, h),
    config: configOf(t, h),
    hidden: hiddenOf(h),
    isSettled: t.isSettled,
    keepsRows: t.ofDeleted === 'kept' && (t.isSettled || t.share === 0) && t.format.final_newline,
    settleHours: h.settle_hours,
    lookback: h.lookback_days,
    // A day that was loaded by name and then passed by the cursor is not read again.
    readsAgain: t.isSettled || (h.lookback_days > 0 && !steps.some(({ actions }) => actions.some(isPart))),
    steps: [...steps, ...finalPurge(lastPurge)].map((one) =>
      withCertainEnds(
        withKnownClock(withStoreEffects(forPlatform(one, rest.target), rest.target), t.hasDate),
        t.format.final_newline,
      ),
    ),
  }));
