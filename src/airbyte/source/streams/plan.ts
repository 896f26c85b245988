import { addDays, type Day, laterOf } from '../../../base/days.ts';
import { configError, type UserError } from '../../../base/errors.ts';
import type { JsonObject } from '../../../base/json.ts';
import type { SourceConfig } from '../../../config/source.ts';
import { hashesOf } from '../../../extract/export-request.ts';
import { missesLateRows, oldestDays } from '../../../extract/plan/days.ts';
import {
  deliveryOf,
  type Plan,
  type PlanInput,
  type PlannedDelivery,
  type PlannedRule,
  planRun,
} from '../../../extract/plan/plan.ts';
import { parseState, StateError } from '../../../extract/state.ts';
import { type ExportState, NO_PRIOR_LOADS } from '../../../extract/window.ts';
import { isTableName } from '../../../table/columns.ts';
import { STREAM_NAMES, type StreamName } from '../../../targets/records/property-names.ts';
import { type ConfiguredStream, textIn } from '../../protocol/input.ts';

/**
 * Key of the states that are written during an incremental read, but not of its last one: when the read began (ISO,
 * UTC). A run that starts from such a state resumes that read and skips the lookback.
 */
const READING_SINCE = 'reading_since';

/**
 * When the interrupted read began; undefined without one, or if late rows of the lookback days would be missed since.
 */
function readingSince(saved: JsonObject, state: ExportState, { settings, now }: Input): string | undefined {
  const text = textIn(saved[READING_SINCE]);
  const since = text === undefined ? Number.NaN : Date.parse(text);
  if (text === undefined || !(since <= now)) return undefined;
  const { lookbackDays } = settings;
  const days = { first: addDays(state.from_date, -lookbackDays), last: addDays(state.from_date, -1) };
  return missesLateRows(days, { readAt: since, now, lookbackDays }) ? undefined : text;
}

/** The state with the start of the read, or without it at the end of the read. */
export function withReading(state: ExportState, since: string | undefined): ExportState {
  const { [READING_SINCE]: _gone, ...rest } = state;
  return since === undefined ? rest : { ...rest, [READING_SINCE]: since };
}

/** When the interrupted read of a state began. */
export const sinceOf = (state: ExportState): string | undefined => textIn(state[READING_SINCE]);

/** Key of the state of a full refresh: the job that it belongs to. */
const SYNC_ID = 'sync_id';
/** Key of a state that is repeated while waiting for the quota; ignored when the state is read. */
export const WAITING_UNTIL = 'waiting_until';

/** The plan of one configured stream. A stream without a plan needs nothing, and its state is returned unchanged. */
export type StreamPlan =
  | { readonly name: StreamName; readonly plan: Plan; readonly warning?: string }
  | { readonly name: StreamName; readonly state: JsonObject; readonly warning: string };

/** The part of a plan's input that does not depend on the saved state. */
type Input = Pick<PlanInput, 'delivery' | 'appends' | 'now'> & { readonly settings: SourceConfig };

/**
 * Plans one configured stream from its saved state, under a cursor and a delivery of its own. A state of
 * other filters, or of another full refresh, is not continued; an interrupted read is, without its lookback.
 * Throws a UserError.
 */
export function planStream(
  stream: ConfiguredStream,
  saved: JsonObject | undefined,
  config: SourceConfig,
  now: number,
): StreamPlan {
  const name = streamName(stream);
  const input: Input = {
    settings: config,
    delivery: deliveryOf(config.delivery, { isPlainAppend: isPlainAppend(stream) }),
    // The destination keeps every record that it is given: it does not merge by key.
    appends: !/dedup/.test(stream.destinationSyncMode),
    now,
  };
  if (stream.syncMode === 'full_refresh') return { name, plan: refreshPlan(stream, saved, input) };
  try {
    return { name, plan: incrementalPlan(saved, input) };
  } catch (error) {
    if (!(error instanceof StateError)) throw error;
    const { problem } = error;
    if (problem === 'filters' || problem === 'columns') {
      const warning = `${name}: the saved state belongs to ${OTHERS[problem]}`;
      return { name, plan: planRun({ ...input, prior: NO_PRIOR_LOADS }), warning };
    }
    if (problem !== 'future' || saved === undefined) throw withPlatformAdvice(error);
    const warning = `${name}: the saved cursor lies in the future; nothing is read, and the state stays as it is.`;
    return { name, state: saved, warning };
  }
}

function streamName(stream: ConfiguredStream): StreamName {
  if (stream.namespace !== undefined || !isTableName(stream.name)) {
    throw configError(
      `The configured stream ${JSON.stringify(stream.name)} does not exist here; ` +
        `there are ${STREAM_NAMES.join(', ')}: refresh the source's schema.`,
    );
  }
  if (stream.syncMode !== 'full_refresh' && stream.syncMode !== 'incremental') {
    throw configError(
      `The stream ${stream.name} is configured with the sync mode ${JSON.stringify(stream.syncMode)}; wanted full_refresh or incremental.`,
    );
  }
  return stream.name;
}

const OTHERS = {
  filters: 'other filters (events or properties); reading starts anew.',
  columns:
    'other columns dropped or hashed, or to another hash key; reading starts anew, and records of days that the ' +
    'service no longer exports keep the old form: clear the data in the platform where they must not.',
} as const;

/** If an earlier attempt began the read, the days before the cursor have been read already. */
function incrementalPlan(saved: JsonObject | undefined, input: Input): Plan {
  const state = parseState(usable(saved));
  const since = saved && state && readingSince(saved, state, input);
  const plan = planRun({ ...input, prior: { ...NO_PRIOR_LOADS, state }, resume: since !== undefined });
  return { ...plan, state: withReading(plan.state, since) };
}

/** A full refresh resumes where an earlier attempt of the same job stopped. */
function refreshPlan(stream: ConfiguredStream, saved: JsonObject | undefined, refresh: Input): Plan {
  const input = { ...refresh, fullRefresh: true };
  const resumed = resumable(stream, saved, input.settings);
  if (resumed === undefined) return tagged(planRun({ ...input, prior: NO_PRIOR_LOADS }), stream);
  const next = resumed.refreshed_through === undefined ? resumed.from_date : addDays(resumed.refreshed_through, 1);
  const oldest = oldestDays(input.now, input.settings.historyDays).probably;
  const from = laterOf(laterOf(resumed.from_date, next), oldest);
  const plan = planRun({ ...input, from, prior: { ...NO_PRIOR_LOADS, state: resumed } });
  return tagged({ ...plan, isGap: () => false }, stream);
}

const tagged = (plan: Plan, { syncId }: ConfiguredStream): Plan =>
  syncId === undefined ? plan : { ...plan, state: { ...plan.state, [SYNC_ID]: syncId } };

function resumable(
  stream: ConfiguredStream,
  saved: JsonObject | undefined,
  config: SourceConfig,
): ExportState | undefined {
  if (stream.syncId === undefined || saved?.[SYNC_ID] !== stream.syncId) return undefined;
  try {
    const state = parseState(usable(saved));
    return state?.question === hashesOf(config).request ? state : undefined;
  } catch (error) {
    if (error instanceof StateError) return undefined;
    throw error;
  }
}

/** Keys that concern a single read and are removed before the next one. */
const OURS = new Set([WAITING_UNTIL, READING_SINCE]);

/**
 * A saved state without our markers of a read and without the keys that other connectors' kits leave behind; undefined
 * if nothing else is in it.
 */
function usable(saved: JsonObject | undefined): JsonObject | undefined {
  if (saved === undefined) return undefined;
  const kept = Object.entries(saved).filter(([key]) => !key.startsWith('__ab_') && !OURS.has(key));
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}

/** True if rows are only ever added: the destination neither merges by key nor empties its table first. */
function isPlainAppend({ destinationSyncMode, generationId = 0, minimumGenerationId }: ConfiguredStream): boolean {
  const truncates = generationId > 0 && minimumGenerationId === generationId;
  return destinationSyncMode === 'append' && !truncates;
}

/** The advice of the command line names options that a platform does not have. */
const withPlatformAdvice = (error: StateError): UserError =>
  configError(`${error.statement}. Clear the stream's data, or its state, in the platform to start anew.`, {
    internal: error.internal,
    cause: error,
  });

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
export function segmentPlan({ days, streams }: Segment<{ readonly plan: Plan }>, known: Partial<ExportState>): Plan {
  const plans = streams.map((stream) => stream.plan);
  // What follows from the configuration is the same in all of them.
  const [primary] = plans;
  return {
    ...primary,
    ...deliveryToAll(plans),
    ...ruleForAll(plans, known),
    // Other segments may need files that this one does not need.
    isPartial: true,
    windowDays: Math.min(known.max_window_days ?? primary.windowDays, ...plans.map((plan) => plan.windowDays)),
    days,
    likelyGaps: new Set(days.filter((day) => plans.some((plan) => plan.likelyGaps.has(day)))),
    // It is enough that one stream lacks the day; the others have it, or never wanted it.
    isGap: (day) => plans.some((plan) => plan.isGap(day)),
    state: { ...primary.state, ...known },
    warnings: [],
  };
}

function deliveryToAll(plans: readonly Plan[]): PlannedDelivery {
  const settleHours = plans.flatMap((plan) => plan.settleHours ?? []);
  return {
    delivery: plans.every((plan) => plan.delivery === 'settled') ? 'settled' : 'fresh',
    fullRefresh: plans.every((plan) => plan.fullRefresh),
    // It is enough that one stream must not get a row twice.
    appends: plans.some((plan) => plan.appends),
    settleHours: settleHours.length === 0 ? undefined : Math.max(...settleHours),
    lookbackDays: Math.min(...plans.map((plan) => plan.lookbackDays)),
  };
}

function ruleForAll(plans: readonly Plan[], known: Partial<ExportState>): PlannedRule {
  const [{ ruleConfigured, singleDaysInclusive, rangesInclusive }] = plans;
  const proveFirst = plans.some((plan) => plan.proveFirst);
  if (ruleConfigured) return { ruleConfigured, singleDaysInclusive, rangesInclusive, proveFirst };
  return {
    ruleConfigured,
    singleDaysInclusive: known.to_date_inclusive ?? firstOf(plans.map((plan) => plan.singleDaysInclusive)),
    rangesInclusive: known.ranges_inclusive ?? firstOf(plans.map((plan) => plan.rangesInclusive)),
    proveFirst,
  };
}

const firstOf = <T>(values: readonly T[]): T | undefined => values.find((value) => value !== undefined);
