import fc from 'fast-check';
import { type Act, actOf, CAP, isDeletion, type Step, stepOf } from './acts.ts';
import { type Json, once, pick } from './drawn.ts';
import { end, users } from './ends.ts';
import { DELETE_FAULTS, EXPORT_FAULTS, LIMITED, twoCuts } from './faults.ts';
import type { Effect } from './machine/process.ts';
import { type ScenarioName, scene } from './scenarios.ts';
import { configOf, type Hidden, habits, hiddenOf, scenarioOf, settings, USERS } from './service-settings.ts';

/*
 * What happens in a simulation, as data: fast-check draws it from a seed, and makes it smaller when it fails. Each list begins
 * with its simplest member, so that what is left of a failing testCase is what matters.
 */

export type TargetName = 'duckdb' | 'parquet' | 'delta' | 'airbyte';

export interface TestCase {
  readonly scenario: Json;
  readonly config: Json;
  readonly target: TargetName;
  /** Tables that are kept. */
  readonly tables: string;
  readonly isSettled: boolean;
  readonly settleHours: number;
  readonly lookback: number;
  /** Every day is read again when no more late rows can come. */
  readonly readsAgain: boolean;
  /** Nothing that the service has exported ever leaves it. */
  readonly keepsRows: boolean;
  readonly rowsPerDay: number;
  /** Days and hours of the service before the first step. */
  readonly hoursBefore: number;
  /** Draws the order of events; 0: each in its turn. */
  readonly order: number;
  /** Whether the ledger's key is configured, or its folder's own. */
  readonly hasLedgerKey: boolean;
  /** A purge finds people by a file that says who they are, or else by a column of the target. */
  readonly hasMapping: boolean;
  /** A copy for readers is published. */
  readonly publishes: boolean;
  readonly hidden: Hidden;
  /** How long the disk takes to store something, in ms. */
  readonly diskMs: number;
  /** How long the service thinks before it answers. */
  readonly latencyMs: number;
  readonly steps: readonly Step[];
}

/** One to three days, or all from or up to one. */
const someDays = fc
  .record({ first: fc.integer({ min: 0, max: 7 }), more: fc.integer({ min: 0, max: 2 }), left: pick(0, 0, 0, 1, 2) })
  .map(({ first, more, left }) => ({
    from: left === 1 ? undefined : first,
    to: left === 2 ? undefined : first + more,
  }));

const drawnAct = (what: fc.Arbitrary<Act['what']>): fc.Arbitrary<Act> =>
  fc
    .record({ what, users, days: someDays, end: once(2, end), disk: once(12, fc.integer({ min: 0, max: 40_000 })) })
    .map(({ days, ...rest }) => actOf(rest.what, { ...rest, ...(rest.what === 'part' && days) }));

const act = drawnAct(
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
  acts: fc.oneof(
    { weight: 3, arbitrary: fc.tuple(act) },
    { weight: 1, arbitrary: fc.tuple(drawnAct(pick('sync', 'refresh')), act) },
  ),
});

/**
 * A clock that is wrong can only be found out where the service tells the date: without it, one that is ahead makes open days
 * look over, and one that is behind makes each limit last for as long as that.
 */
const honest = (one: Step, hasDate: boolean): Step =>
  hasDate ? one : { ...one, skewHours: one.skewHours === -1.5 ? -1.5 : 0, jumpHours: 0 };

/** Where bodies end without a line end, a body that was cut before one cannot be told from a whole one (S8). */
const tellable = (one: Step, endsLines: boolean): Step =>
  endsLines ? one : { ...one, faults: one.faults.filter(({ at }) => at !== 'row_end') };

const isPart = ({ what }: Act): boolean => what === 'part';

/** A platform reads one source once at a time, and hands on requests for deletion. */
function byPlatform(one: Step, target: TargetName): Step {
  if (target !== 'airbyte') return one;
  const acts = one.acts.map((act): Act => (isDeletion(act) ? { ...act, what: 'write' } : act));
  return { ...one, acts: acts.some(isDeletion) ? acts : acts.slice(0, 1) };
}

/**
 * By what a target stores a window: a commit is what DuckDB has, moves of files the others, and a platform is told. The first
 * two commits of a run stay what they are: every target has those.
 */
const STORED: Readonly<Record<TargetName, Effect>> = {
  duckdb: 'commit',
  parquet: 'store',
  delta: 'store',
  airbyte: 'send',
};

const byStore = (one: Step, target: TargetName): Step => ({
  ...one,
  acts: one.acts.map((act) =>
    act.end?.effect === 'commit' && act.end.nth > 2 ? { ...act, end: { ...act.end, effect: STORED[target] } } : act,
  ),
});

/** What dead runs left behind is still there when somebody is purged. */
const farewell = (users: readonly number[] | undefined): Step[] =>
  users === undefined ? [] : [stepOf([actOf('purge', { users })], { hours: 1 })];

export const testCase: fc.Arbitrary<TestCase> = fc
  .record({
    scene: fc.oneof(
      {
        weight: 1,
        arbitrary: fc.array(step, { minLength: 1, maxLength: 4 }).map((steps): ScenarioName => ({ steps })),
      },
      { weight: 1, arbitrary: scene },
    ),
    target: pick<TargetName>('duckdb', 'parquet', 'delta', 'airbyte'),
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
    habits,
  })
  .map(({ scene: { suited, steps }, ...drawn }) => {
    const { settings: t, habits: h, ...more } = suited?.(drawn.settings) ?? {};
    return { ...drawn, ...more, steps, settings: { ...drawn.settings, ...t }, habits: { ...drawn.habits, ...h } };
  })
  .map(({ settings: t, habits: h, steps, lastPurge, ...rest }) => ({
    ...rest,
    publishes: rest.publishes && rest.target === 'duckdb',
    hasLedgerKey: rest.order % 2 === 1,
    // Records are merged by their key alone: whether an id that starts again is another row, only a target can tell (S13).
    scenario: scenarioOf({ ...t, repeats: t.repeats && rest.target !== 'airbyte' }, h),
    config: configOf(t, h),
    hidden: hiddenOf(h),
    isSettled: t.isSettled,
    keepsRows: t.ofDeleted === 'kept' && (t.isSettled || t.share === 0) && t.format.final_newline,
    settleHours: h.settle_hours,
    lookback: h.lookback_days,
    // A part that is read early and then passed by the cursor is not.
    readsAgain: t.isSettled || (h.lookback_days > 0 && !steps.some(({ acts }) => acts.some(isPart))),
    steps: [...steps, ...farewell(lastPurge)].map((one) =>
      tellable(honest(byStore(byPlatform(one, rest.target), rest.target), t.hasDate), t.format.final_newline),
    ),
  }));
