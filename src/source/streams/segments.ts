import { addDays, type Day, earlierOf } from '../../base/days.ts';
import { planWindows } from '../../extract/plan/day-ranges.ts';
import type { Plan } from '../../extract/plan/plan.ts';
import type { KnownState } from '../../extract/state.ts';

/** Consecutive days that the same streams need: one extraction serves them all. */
export interface Segment<S> {
  readonly days: readonly Day[];
  readonly streams: readonly S[];
}

/** Cuts the days of several plans so that each stream gets exactly its own. */
export function segmentsOf<S extends { readonly plan: Plan }>(streams: readonly S[]): Segment<S>[] {
  const days = [...new Set(streams.flatMap((stream) => stream.plan.days))].sort();
  const wanted = new Map(streams.map((stream) => [stream, new Set(stream.plan.days)]));
  const out: { days: Day[]; streams: S[] }[] = [];
  for (const day of days) {
    const takers = streams.filter((stream) => wanted.get(stream)?.has(day));
    const last = out.at(-1);
    const follows = last !== undefined && last.days.at(-1) === addDays(day, -1) && isSame(last.streams, takers);
    if (follows) last.days.push(day);
    else out.push({ days: [day], streams: takers });
  }
  return out;
}

const isSame = <S>(a: readonly S[], b: readonly S[]): boolean => a.length === b.length && a.every((s, i) => s === b[i]);

/** The plan of one extraction for streams that want the same days; `known` is what earlier segments found out. */
export function segmentPlan(segment: Segment<{ readonly plan: Plan }>, known: Partial<KnownState>): Plan {
  const plans = segment.streams.map((stream) => stream.plan);
  const [lead] = plans;
  const { days } = segment;
  const inclusive = known.to_date_inclusive ?? plans.find((plan) => plan.inclusive !== undefined)?.inclusive;
  const ranges = known.ranges_inclusive ?? plans.find((plan) => plan.rangesInclusive !== undefined)?.rangesInclusive;
  const settled = plans.every((plan) => plan.delivery === 'settled');
  const settleHours = plans.flatMap((plan) => plan.settleHours ?? []);
  const most = known.max_window_days ?? lead.windowDays;
  const windowDays = Math.min(most, ...plans.map((plan) => plan.windowDays));
  const likelyGaps = days.filter((day) => plans.some((plan) => plan.likelyGaps.includes(day)));
  return {
    ...lead,
    delivery: settled ? 'settled' : 'fresh',
    fullRefresh: plans.every((plan) => plan.fullRefresh),
    // One stream that must not get a row twice is enough.
    proveFirst: plans.some((plan) => plan.proveFirst),
    // Other segments may have a use for what this one has none for.
    isPartial: true,
    appends: plans.some((plan) => plan.appends),
    settleHours: settleHours.length === 0 ? undefined : Math.max(...settleHours),
    lookbackDays: Math.min(...plans.map((plan) => plan.lookbackDays)),
    inclusive: lead.ruleConfigured ? lead.inclusive : inclusive,
    rangesInclusive: lead.ruleConfigured ? lead.rangesInclusive : ranges,
    windowDays,
    days,
    firstDay: days[0],
    lastDay: days.at(-1),
    likelyGaps,
    windows: planWindows(
      days.filter((day) => !likelyGaps.includes(day)),
      windowDays,
      inclusive,
    ),
    gapFrom: earliest(plans.map((plan) => plan.gapFrom)),
    // One stream that misses the day is enough; the others have it, or never wanted it.
    isGap: (day) => plans.some((plan) => plan.isGap(day)),
    state: { ...lead.state, ...known },
    warnings: [],
  };
}

function earliest(days: readonly (Day | undefined)[]): Day | undefined {
  return days.reduce((a, b) => (a === undefined || b === undefined ? (a ?? b) : earlierOf(a, b)), undefined);
}
