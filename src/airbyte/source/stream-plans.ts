import { addDays, type Day } from '../../base/days.ts';
import { configError } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import type { SourceConfig } from '../../config/source.ts';
import {
  type ExportState,
  FutureCursorError,
  OtherFiltersError,
  parseState,
  StateError,
} from '../../extract/export-state.ts';
import { NO_PRIOR_LOADS, type PriorReceipt, type PriorReceipts } from '../../extract/receipt.ts';
import { type DownloadPlan, type Plan, type PlanInput, planRun } from '../../extract/which-days.ts';
import type { ConfiguredStream } from '../protocol/catalog-and-states.ts';
import { EVENT_STREAMS, isEventStream, type StreamName } from '../records/streams.ts';
import { WAITING_UNTIL } from './stream-output.ts';

/** Key of the state of a full refresh: the job that it belongs to. */
export const SYNC_ID = 'sync_id';
/** Key of the state of a full refresh: the last day that was handed on. */
export const REFRESHED_THROUGH = 'refreshed_through';

export interface StreamPlan {
  readonly name: StreamName;
  readonly plan: Plan;
}

/** The part of a plan's input that does not depend on the saved state. */
type StatelessInput = Pick<PlanInput, 'appends' | 'now'> & { readonly settings: SourceConfig };

/** Plans one configured stream from its saved state. Throws a UserError. */
export function planStream(
  stream: ConfiguredStream,
  saved: JsonObject | undefined,
  settings: SourceConfig,
  now: number,
): StreamPlan {
  const name = streamName(stream);
  const input: StatelessInput = { settings, appends: isPlainAppend(stream), now };
  const state = withoutPassingKeys(saved);
  const isRefresh = stream.syncMode === 'full_refresh';
  return { name, plan: isRefresh ? refreshPlan(stream, state, input) : incrementalPlan(name, state, input) };
}

function streamName({ descriptor: { name, namespace }, syncMode }: ConfiguredStream): StreamName {
  if (namespace !== undefined || !isEventStream(name)) {
    throw configError(
      `The configured stream ${JSON.stringify(name)} does not exist here; ` +
        `there are ${EVENT_STREAMS.join(', ')}: refresh the source's schema.`,
    );
  }
  if (syncMode === 'full_refresh' || syncMode === 'incremental') return name;
  throw configError(
    `The stream ${name} is configured with the sync mode ${JSON.stringify(syncMode)}; wanted full_refresh or incremental.`,
  );
}

/**
 * True if rows are only ever added: the destination neither merges by key nor empties its table before each sync. A
 * refresh of an incremental stream empties the table once, and later syncs add to it.
 */
function isPlainAppend(stream: ConfiguredStream): boolean {
  const { syncMode, destinationSyncMode, generationId = 0, minimumGenerationId } = stream;
  const empties = syncMode === 'full_refresh' && generationId > 0 && minimumGenerationId === generationId;
  return destinationSyncMode === 'append' && !empties;
}

/**
 * True if a record that is sent twice in one read stays twice. An incremental stream that overwrites is merged by key:
 * PyAirbyte asks for it so.
 */
export const keepsEveryRecord = ({ syncMode, destinationSyncMode }: ConfiguredStream): boolean =>
  destinationSyncMode === 'append' || (syncMode === 'full_refresh' && destinationSyncMode === 'overwrite');

/** A saved state without the keys of a single read, and those that the kits of other connectors leave. */
function withoutPassingKeys(saved: JsonObject | undefined): JsonObject | undefined {
  const kept = Object.entries(saved ?? {}).filter(([key]) => !key.startsWith('__ab_') && key !== WAITING_UNTIL);
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}

function incrementalPlan(name: StreamName, state: JsonObject | undefined, input: StatelessInput): Plan {
  try {
    return planRun({ ...input, prior: { state, receipts: receiptsIn(state) } });
  } catch (error) {
    if (error instanceof OtherFiltersError) return startAgain(name, error, input);
    if (error instanceof FutureCursorError) return readNothing(name, state, input);
    throw error;
  }
}

/** Other filters: reads from the start again; under plain append every row would come twice. */
function startAgain(name: StreamName, error: OtherFiltersError, input: StatelessInput): Plan {
  if (input.appends === true) {
    throw configError(
      `${name}: the saved state belongs to other filters or columns, and the destination appends every record: all rows ` +
        "would come twice. Put the filters back, or clear the stream's data in the platform.",
      { cause: error },
    );
  }
  const message = `${name}: the saved state belongs to other filters or columns (events, properties, columns_drop, columns_hash); reading starts again.`;
  const plan = planRun({ ...input, prior: NO_PRIOR_LOADS });
  return { ...plan, warnings: [{ event: 'state.fresh_start', message }, ...plan.warnings] };
}

/** A cursor in the future, as a wrong clock leaves it: the state stays as it is. */
function readNothing(name: StreamName, state: JsonObject | undefined, input: StatelessInput): Plan {
  const message = `${name}: the saved cursor lies in the future; nothing is read, and the state stays as it is.`;
  const plan = planRun({ ...input, prior: NO_PRIOR_LOADS });
  const warnings = [{ event: 'state.future', message }];
  return { ...plan, state: parseState(state), days: [], findEndDayOn: undefined, warnings };
}

/** A full refresh goes on where an earlier attempt of the same job stopped. */
function refreshPlan(stream: ConfiguredStream, saved: JsonObject | undefined, input: StatelessInput): Plan {
  const fresh = planRun({ ...input, fullRefresh: true, prior: NO_PRIOR_LOADS });
  const state = stateOfJob(stream.syncId, saved, fresh);
  if (state === undefined) return fresh;
  const through = state[REFRESHED_THROUGH];
  const next = typeof through === 'string' ? addDays(through, 1) : fresh.start;
  const days = fresh.days.filter((day) => day >= next);
  return { ...fresh, state, receipts: receiptsIn(state), days, start: state.start_date ?? fresh.start };
}

/** The saved state, if an earlier attempt of the same job left it, with the same service and filters. */
function stateOfJob(
  syncId: number | undefined,
  saved: JsonObject | undefined,
  { fingerprints }: Plan,
): ExportState | undefined {
  if (syncId === undefined || saved?.[SYNC_ID] !== syncId) return undefined;
  try {
    const state = parseState(saved);
    return state?.filters === fingerprints.filters && state.service === fingerprints.service ? state : undefined;
  } catch (error) {
    if (error instanceof StateError) return undefined;
    throw error;
  }
}

/** What a state keeps of the days that were read. `parseState` checks it against the schema where it is used. */
const receiptsIn = (state: JsonObject | undefined): PriorReceipts =>
  new Map(Object.entries((state?.days ?? {}) as Readonly<Record<Day, PriorReceipt>>));

/**
 * What is downloaded for several streams: each day that one of them wants, once. Any plan may tell how the service
 * ends its bodies, and whether an export includes its `to_date`: that holds for all streams.
 */
export function downloadPlan(plans: readonly Plan[]): DownloadPlan {
  const [{ filters, fingerprints, oldest }] = plans;
  const includesEnd = plans.find((plan) => plan.includesEnd !== undefined)?.includesEnd;
  const endDays = plans.flatMap(({ findEndDayOn }) => findEndDayOn ?? []).sort();
  const receipts = new Map<Day, PriorReceipt>();
  for (const [day, receipt] of plans.flatMap((plan) => [...plan.receipts])) {
    const other = receipts.get(day);
    if (other === undefined || other.requested_at < receipt.requested_at) receipts.set(day, receipt);
  }
  return {
    filters,
    fingerprints,
    oldest,
    state: plans.find(({ state }) => state !== undefined)?.state,
    receipts,
    days: [...new Set(plans.flatMap(({ days }) => days))].sort(),
    includesEnd,
    findEndDayOn: includesEnd === undefined ? endDays.at(-1) : undefined,
  };
}
