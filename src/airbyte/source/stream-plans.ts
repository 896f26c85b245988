import { configError } from '../../base/errors.ts';
import { isObject, type JsonObject } from '../../base/json.ts';
import type { SourceConfig } from '../../config/source.ts';
import { hasOtherFilters, type ReceiptsByDay } from '../../extract/checked-day.ts';
import { fingerprintsOf } from '../../extract/export-settings.ts';
import { type ExportState, hasFutureCursor, parseState, refuseOtherService } from '../../extract/export-state.ts';
import { type PlanInput, planRun, type RunPlan } from '../../extract/which-days.ts';
import type { ConfiguredStream } from '../protocol/catalog-and-states.ts';
import { EVENT_STREAMS, STREAMS, type StreamName } from '../records/streams.ts';

interface StreamTraits {
  readonly name: StreamName;
  /** True if the destination keeps a record that one sync sends twice. */
  readonly keepsDuplicates: boolean;
}

export type StreamPlan = RunPlan & StreamTraits;
/** What a stream is planned from, beside its saved state. */
type StreamInput = PlanInput & StreamTraits;

/** Plans one configured stream from its saved state. Throws a UserError. */
export function planStream(
  stream: ConfiguredStream,
  savedState: JsonObject | undefined,
  settings: SourceConfig,
  now: number,
): StreamPlan {
  const name = requireEventStream(stream);
  requireFilledColumn(name, stream);
  const input = { ...destinationTraits(stream), name, settings, now };
  const state = usableState(savedState);
  const plan =
    stream.syncMode === 'incremental' ? incrementalPlan(state, input) : refreshPlan(state, stream.syncId, input);
  return { ...plan, name, keepsDuplicates: input.keepsDuplicates };
}

function requireEventStream({ descriptor }: ConfiguredStream): StreamName {
  const name = EVENT_STREAMS.find((stream) => stream === descriptor.name && descriptor.namespace === undefined);
  if (name !== undefined) return name;
  throw configError(
    `The configured stream ${JSON.stringify(descriptor)} does not exist; ` +
      `there are ${EVENT_STREAMS.join(', ')}, without a namespace: refresh the source's schema.`,
  );
}

/** Throws a UserError if records may be empty: a platform drops them, and keeps the state that counts them. */
export function requireFilledColumn(name: StreamName, { properties, primaryKey }: ConfiguredStream): void {
  const { filledProperties } = STREAMS[name];
  if (filledProperties.some((property) => properties.has(property) || primaryKey.includes(property))) return;
  throw configError(
    `The configured stream ${name} has no column that every row fills: its records may be empty. Refresh the source's ` +
      `schema, and select ${filledProperties[0]}.`,
  );
}

/**
 * Whether the destination keeps a record that comes again. Each full refresh is a copy by itself. PyAirbyte asks for
 * `overwrite` of incremental streams, too, and merges them by key.
 *
 *                                          in a later sync   in the same sync
 *   modes                                  (`appends`)       (`keepsDuplicates`)
 *   incremental, append                    kept              kept
 *   full refresh, append or overwrite      another copy      kept
 *   any other                              merged by key     merged by key
 */
function destinationTraits({ syncMode, destinationSyncMode }: ConfiguredStream) {
  const isRefresh = syncMode === 'full_refresh';
  const keepsDuplicates = destinationSyncMode === 'append' || (isRefresh && destinationSyncMode === 'overwrite');
  return { appends: keepsDuplicates && !isRefresh, keepsDuplicates };
}

function incrementalPlan(savedState: JsonObject, input: StreamInput): RunPlan {
  const { sync_id: refreshSyncId, ...stateKeys } = savedState;
  const state = parseState(stateKeys);
  const fingerprints = fingerprintsOf(input.settings);
  refuseOtherService(state, fingerprints);
  if (hasOtherFilters(state, fingerprints.filters)) return planUnderOtherFilters(planRun(input), input);
  if (hasFutureCursor(state, input.now)) return planWithoutDays(state, input);
  // What a refresh sent is gone if it was not finished. A destination that appends keeps it all the same.
  if (refreshSyncId !== undefined && !input.keepsDuplicates)
    return planFromStart(planRun(input), input.name, 'is of a full refresh');
  return planRun({ ...input, state, receipts: receiptsIn(state) });
}

/** A wrong clock leaves a cursor in the future: the state stays as it is. `start_date` may lie in the future, too. */
function planWithoutDays(state: ExportState | undefined, input: StreamInput): RunPlan {
  const plan = planRun({ ...input, settings: { ...input.settings, startDate: undefined } });
  const message = `${input.name}: the saved cursor lies in the future; nothing is read, and the state stays as it is.`;
  return { ...plan, state, days: [], notes: [{ level: 'warn', event: 'state.future', message }] };
}

/** Starts again. Throws a UserError if the destination keeps the rows that it has: all would come twice. */
function planUnderOtherFilters(freshPlan: RunPlan, { name, keepsDuplicates }: StreamInput): RunPlan {
  const why = 'belongs to other filters or columns';
  if (!keepsDuplicates)
    return planFromStart(freshPlan, name, `${why} (events, properties, columns_drop, columns_hash)`);
  throw configError(
    `${name}: the saved state ${why}, and the destination keeps every record: ` +
      "all rows would come twice. Put the filters back, or clear the stream's data in the platform.",
  );
}

/** A plan that passes over the saved state, with a warning that says so. */
function planFromStart(plan: RunPlan, name: StreamName, why: string): RunPlan {
  const message =
    `${name}: the saved state ${why}; reading starts again. ` +
    `The destination keeps its rows of days before ${plan.start}, and its rows without an id: clear the stream's data if it should not.`;
  return { ...plan, notes: [{ level: 'warn', event: 'state.fresh_start', message }, ...plan.notes] };
}

/** A full refresh goes on where an earlier attempt of the same job stopped. Throws a UserError for another service. */
function refreshPlan(savedState: JsonObject, syncId: number | undefined, input: StreamInput): RunPlan {
  const freshPlan = planRun({ ...input, fullRefresh: true });
  const isSameRefresh = syncId !== undefined && savedState.sync_id === syncId;
  const state = isSameRefresh ? parseState(savedState) : undefined;
  if (state === undefined) return freshPlan;
  const { fingerprints } = freshPlan;
  refuseOtherService(state, fingerprints);
  if (hasOtherFilters(state, fingerprints.filters)) return planUnderOtherFilters(freshPlan, input);
  const receipts = receiptsIn(state);
  const days = freshPlan.days.filter((day) => day >= state.from_date && !receipts.has(day));
  return { ...freshPlan, state, receipts, days, start: state.start_date ?? freshPlan.start };
}

/**
 * A saved state without what a beat during a wait added, and what Airbyte's own libraries add (`__ab_`). Without any key
 * for a stream of which no day was read: its state fixes no start.
 */
function usableState(state: JsonObject = {}): JsonObject {
  const entries = Object.entries(state).filter(([key]) => !key.startsWith('__ab_') && key !== 'waiting_until');
  const isInitial = isObject(state.days) && Object.keys(state.days).length === 0 && state.start_date === undefined;
  return isInitial ? {} : Object.fromEntries(entries);
}

/** What a state keeps of the days that were read. */
const receiptsIn = (state: ExportState | undefined): ReceiptsByDay => new Map(Object.entries(state?.days ?? {}));
