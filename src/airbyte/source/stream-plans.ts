import { configError } from '../../base/errors.ts';
import { isObject, type JsonObject } from '../../base/json.ts';
import type { SourceConfig } from '../../config/source.ts';
import { hasOtherFilters, type ReceiptsByDay } from '../../extract/checked-day.ts';
import { fingerprintsOf } from '../../extract/export-settings.ts';
import { parseState, refuseOtherService } from '../../extract/export-state.ts';
import { type PlanInput, planRun, type RunPlan } from '../../extract/which-days.ts';
import type { ConfiguredStream } from '../protocol/catalog-and-states.ts';
import { isInstant } from '../records/record-columns.ts';
import { EVENT_STREAMS, STREAMS, type StreamName } from '../records/streams.ts';

export interface StreamPlan extends RunPlan {
  readonly name: StreamName;
  /** True if the destination keeps a record that one sync sends twice. */
  readonly keepsDuplicates: boolean;
}

/** What a stream is planned from, beside its saved state. */
type StreamInput = PlanInput & Pick<StreamPlan, 'name' | 'keepsDuplicates'>;

/** Plans one configured stream from its saved state. Throws a UserError. */
export function planStream(
  stream: ConfiguredStream,
  savedState: JsonObject | undefined,
  settings: SourceConfig,
  now: number,
): StreamPlan {
  const name = requireEventStream(stream);
  requireUsableSchema(name, stream, settings);
  const keepsDuplicates = destinationKeepsDuplicates(stream);
  const fullRefresh = stream.syncMode === 'full_refresh';
  // Each full refresh is a copy by itself: to the destination no day comes again.
  const appends = keepsDuplicates && !fullRefresh;
  const plan = planDays(savedState, stream.syncId, { name, keepsDuplicates, settings, now, fullRefresh, appends });
  return { ...plan, name, keepsDuplicates };
}

function requireEventStream({ descriptor }: ConfiguredStream): StreamName {
  const name = EVENT_STREAMS.find((stream) => stream === descriptor.name && descriptor.namespace === undefined);
  if (name !== undefined) return name;
  throw configError(
    `The configured stream ${JSON.stringify(descriptor)} does not exist; ` +
      `there are ${EVENT_STREAMS.join(', ')}, without a namespace: refresh the source's schema.`,
  );
}

/**
 * Throws a UserError if records may be empty: a platform drops them, and keeps the state that counts them. Also if
 * datetimes are configured with a time zone, and nothing says which.
 */
export function requireUsableSchema(
  name: StreamName,
  { properties, primaryKey }: ConfiguredStream,
  { timezone }: SourceConfig,
): void {
  const { filledProperties } = STREAMS[name];
  if (!filledProperties.some((property) => properties.has(property) || primaryKey.includes(property))) {
    throw configError(
      `The configured stream ${name} has no column that every row fills: its records may be empty. Refresh the ` +
        `source's schema, and select ${filledProperties[0]}.`,
    );
  }
  const instant = [...properties].find(([, schema]) => isInstant(schema));
  if (instant === undefined || timezone !== undefined) return;
  throw configError(
    `The configured stream ${name} has times with a time zone (${instant[0]}), and timezone is not set: set it, or ` +
      "refresh the source's schema.",
  );
}

/**
 * Whether the destination keeps a record that comes again. PyAirbyte asks for `overwrite` of incremental streams, too,
 * and merges them by key.
 *
 *   incremental, append                  kept
 *   full refresh, append or overwrite    kept
 *   any other                            merged by key
 */
const destinationKeepsDuplicates = ({ syncMode, destinationSyncMode }: ConfiguredStream): boolean =>
  destinationSyncMode === 'append' || (syncMode === 'full_refresh' && destinationSyncMode === 'overwrite');

/**
 * Decides which days are read. The first saved state counts that applies; `syncId` is the id of this sync.
 *
 *   none; for a full refresh, that of another one      all days
 *   of another service; with a cursor in the future    refused
 *   of other filters                                   all days, with a warning; refused if duplicates are kept
 *   for a full refresh, that of an earlier attempt     the days that it lacks
 *   of a full refresh that was not completed           all days, with a warning; refused if duplicates are kept
 *   any other                                          the days from the cursor on, and those that are read again
 */
function planDays(savedState: JsonObject | undefined, syncId: number | undefined, input: StreamInput): RunPlan {
  const { settings, fullRefresh } = input;
  const { sync_id: refreshId, unfinished_refresh: isUnfinished, ...stateKeys } = usableState(savedState);
  const isOtherRefresh = fullRefresh && (syncId === undefined || refreshId !== syncId);
  const state = isOtherRefresh ? undefined : parseState(stateKeys);
  if (state === undefined) return planRun(input);
  const fingerprints = fingerprintsOf(settings);
  refuseOtherService(state, fingerprints);
  if (hasOtherFilters(state, fingerprints.filtersHash))
    return planFromStart(input, 'belongs to other filters or columns (events, properties, columns_drop, columns_hash)');
  const receipts: ReceiptsByDay = new Map(Object.entries(state.days ?? {}));
  if (fullRefresh) {
    const plan = planRun({ ...input, state, receipts });
    return { ...plan, days: plan.days.filter((day) => day >= state.from_date && !receipts.has(day)) };
  }
  // What such a refresh sent may be gone.
  if (isUnfinished === true) return planFromStart(input, 'is of a full refresh that was not completed');
  return planRun({ ...input, state, receipts });
}

/** A plan that passes over the saved state, with a warning that says so. Throws a UserError if duplicates are kept. */
function planFromStart(input: StreamInput, why: string): RunPlan {
  const { name, keepsDuplicates } = input;
  if (keepsDuplicates) {
    throw configError(
      `${name}: the saved state ${why}, and the destination keeps every record: ` +
        "rows would come twice. Put the settings back, or clear the stream's data in the platform.",
    );
  }
  const plan = planRun(input);
  const message =
    `${name}: the saved state ${why}; reading starts again. ` +
    `The destination keeps its rows of days before ${plan.start}, and its rows without an id: clear the stream's data if it should not.`;
  return { ...plan, notes: [{ level: 'warn', event: 'state.fresh_start', message }, ...plan.notes] };
}

/**
 * A saved state without what Airbyte's own libraries add (`__ab_`). Without any key for a stream of which no day was
 * read: its state fixes no start.
 */
function usableState(state: JsonObject = {}): JsonObject {
  const entries = Object.entries(state).filter(([key]) => !key.startsWith('__ab_'));
  const isInitial = isObject(state.days) && Object.keys(state.days).length === 0 && state.start_date === undefined;
  return isInitial ? {} : Object.fromEntries(entries);
}
