import type { ConfiguredStream } from '../../airbyte/configured-catalog.ts';
import type { JsonObject } from '../../airbyte/json.ts';
import { addDays, laterOf } from '../../base/days.ts';
import { configFailure, Failure } from '../../base/errors.ts';
import type { SourceConfig } from '../../config/source.ts';
import { hashesOf } from '../../extract/export-request.ts';
import { oldestDays } from '../../extract/plan/calendar.ts';
import { type Delivery, deliveryOf } from '../../extract/plan/delivery.ts';
import { type Plan, planRun } from '../../extract/plan/plan.ts';
import { NO_PRIOR_LOADS } from '../../extract/prior-loads.ts';
import { type KnownState, parseState, StateFailure } from '../../extract/state.ts';
import { isStreamName, STREAM_NAMES, type StreamName } from '../../sinks/records/property-names.ts';
import { READING_SINCE, readingSince, withReading } from '../reading.ts';

/** Key of the state of a full refresh: the job that it belongs to (S26). */
const SYNC_ID = 'sync_id';
/** Key of a state that is repeated while waiting for the quota; ignored when the state is read. */
export const WAITING_UNTIL = 'waiting_until';

/** What one configured stream needs, before anything is sent. */
export type StreamPlan =
  | { readonly kind: 'read'; readonly name: StreamName; readonly plan: Plan; readonly warning?: string }
  /** Nothing to read: the state is returned unchanged. */
  | { readonly kind: 'rest'; readonly name: StreamName; readonly state: JsonObject; readonly warning: string }
  | { readonly kind: 'refused'; readonly failure: Failure };

/** Plans one configured stream from its saved state (S6, S7, S25, S26). Never throws a Failure. */
export function planStream(
  stream: ConfiguredStream,
  saved: JsonObject | undefined,
  config: SourceConfig,
  now: number,
): StreamPlan {
  try {
    const name = nameOf(stream);
    if (stream.syncMode === 'full_refresh')
      return { kind: 'read', name, plan: refreshPlan(stream, saved, config, now) };
    return incremental(stream, name, saved, config, now);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return { kind: 'refused', failure: inStream(error, stream.name) };
  }
}

function nameOf(stream: ConfiguredStream): StreamName {
  if (stream.namespace !== undefined || !isStreamName(stream.name)) {
    throw configFailure(
      `The configured stream ${JSON.stringify(stream.name)} does not exist here; there are ${STREAM_NAMES.join(', ')}: refresh the source's schema.`,
    );
  }
  if (stream.syncMode !== 'full_refresh' && stream.syncMode !== 'incremental') {
    throw configFailure(
      `The stream ${stream.name} is configured with the sync mode ${JSON.stringify(stream.syncMode)}; wanted full_refresh or incremental.`,
    );
  }
  return stream.name;
}

function incremental(
  stream: ConfiguredStream,
  name: StreamName,
  saved: JsonObject | undefined,
  config: SourceConfig,
  now: number,
): StreamPlan {
  const delivery = deliveryOf(config.delivery, isPlainAppend(stream));
  try {
    return { kind: 'read', name, plan: incrementalPlan(stream, delivery, saved, config, now) };
  } catch (error) {
    if (!(error instanceof StateFailure)) throw error;
    if (error.problem === 'filters' || error.problem === 'columns') {
      const warning = `${name}: the saved state belongs to ${OTHERS[error.problem]}`;
      return {
        kind: 'read',
        name,
        plan: planRun({ settings: config, delivery, appends: appends(stream), prior: NO_PRIOR_LOADS, now }),
        warning,
      };
    }
    if (error.problem !== 'future' || saved === undefined) throw advised(error);
    const warning = `${name}: the saved cursor lies in the future; nothing is read, and the state stays as it is.`;
    return { kind: 'rest', name, state: saved, warning };
  }
}

const OTHERS = {
  filters: 'other filters (events or properties); reading starts anew.',
  columns:
    'other columns dropped or hashed, or to another hash key; reading starts anew, and records of days that the service no longer exports keep the old form: clear the data in the platform where they must not.',
} as const;

/** Within a read that an earlier attempt began, the days before the cursor have been read already. */
function incrementalPlan(
  stream: ConfiguredStream,
  delivery: Delivery,
  saved: JsonObject | undefined,
  config: SourceConfig,
  now: number,
): Plan {
  const state = parseState(usable(saved));
  const since = saved && state && readingSince(saved, state, config, now);
  const prior = { ...NO_PRIOR_LOADS, state };
  const plan = planRun({
    settings: config,
    delivery,
    appends: appends(stream),
    prior,
    now,
    resume: since !== undefined,
  });
  return { ...plan, state: withReading(plan.state, since) };
}

/** A full refresh goes on where an earlier attempt of the same job stopped, and else starts from the beginning. */
function refreshPlan(stream: ConfiguredStream, saved: JsonObject | undefined, config: SourceConfig, now: number): Plan {
  const delivery = deliveryOf(config.delivery, isPlainAppend(stream));
  const resumed = resumable(stream, saved, config);
  const input = { settings: config, delivery, appends: appends(stream), fullRefresh: true, now } as const;
  if (resumed === undefined) return tagged(planRun({ ...input, prior: NO_PRIOR_LOADS }), stream);
  const next = resumed.refreshed_through === undefined ? resumed.from_date : addDays(resumed.refreshed_through, 1);
  const from = laterOf(laterOf(resumed.from_date, next), oldestDays(now, config.historyDays).probably);
  const plan = planRun({ ...input, from, prior: { ...NO_PRIOR_LOADS, state: resumed } });
  return tagged({ ...plan, gapFrom: undefined, isGap: () => false }, stream);
}

const tagged = (plan: Plan, { syncId }: ConfiguredStream): Plan =>
  syncId === undefined ? plan : { ...plan, state: { ...plan.state, [SYNC_ID]: syncId } };

function resumable(
  stream: ConfiguredStream,
  saved: JsonObject | undefined,
  config: SourceConfig,
): KnownState | undefined {
  if (stream.syncId === undefined || saved?.[SYNC_ID] !== stream.syncId) return undefined;
  try {
    const state = parseState(usable(saved));
    return state?.question === hashesOf(config).question ? state : undefined;
  } catch (error) {
    if (error instanceof StateFailure) return undefined;
    throw error;
  }
}

/** Keys that concern a single read and are removed before the next one. */
const OURS = new Set([WAITING_UNTIL, READING_SINCE]);

/** Of a saved state what is one: the markers that other connectors' kits leave behind are none. */
function usable(saved: JsonObject | undefined): JsonObject | undefined {
  if (saved === undefined) return undefined;
  const kept = Object.entries(saved).filter(([key]) => !key.startsWith('__ab_') && !OURS.has(key));
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}

/** The destination keeps every record that it is given: it does not merge by key. */
const appends = ({ destinationSyncMode }: ConfiguredStream): boolean => !/dedup/.test(destinationSyncMode);

/** Rows are only ever added: the destination neither merges by key nor empties its table first. */
function isPlainAppend({ destinationSyncMode, generationId = 0, minimumGenerationId }: ConfiguredStream): boolean {
  const truncates = generationId > 0 && minimumGenerationId === generationId;
  return destinationSyncMode === 'append' && !truncates;
}

const advised = (error: StateFailure): Failure =>
  configFailure(`${withoutAdvice(error)} Clear the stream's data, or its state, in the platform to start anew.`, {
    internal: error.internal,
    cause: error,
  });

/** The command line's advice names options that a platform does not have. */
const ADVICE = /: use another target[^.]*\.$|; wanted \{.*$/;
const withoutAdvice = (error: StateFailure): string => `${error.message.replace(ADVICE, '.')}`;

/** The same failure, with the stream in its message. */
export function inStream(failure: Failure, stream: string): Failure {
  const { kind, message, internal, exitCode, where } = failure;
  return new Failure(kind, message, { internal, exitCode, cause: failure, where: { ...where, stream } });
}
