import valid from '../../schemas/state.validator';
import { addDays, type Day, laterOf } from '../base/days.ts';
import { configError, type UserError } from '../base/errors.ts';
import { isObject } from '../base/json.ts';
import { problemTexts } from '../base/validator.ts';
import { lastDayBegunAnywhere } from './calendar.ts';
import { hasOtherFilters, type ReceiptSummary, type ReceiptsByDay } from './checked-day.ts';
import { canonicalNames, type HashedColumns, type SettingsFingerprints } from './export-settings.ts';

/** The cursor and its companions (schemas/state.json). Unknown keys of a stored state are kept. */
export interface ExportState {
  readonly version: 1;
  /** The cursor: first day from the start on that is not both loaded and over. */
  readonly from_date: Day;
  /** The start, which the first commit fixes. */
  readonly start_date?: Day;
  /** Hash of `service_id`. */
  readonly service?: string;
  /** Hash of the filters and of the columns that are dropped or hashed, of the last run. */
  readonly filters?: string;
  /** All columns that were ever hashed; their key is that of the place for good. */
  readonly hashed?: HashedColumns;
  /** Whether an export includes its `to_date`, once that is proved. */
  readonly to_date_inclusive?: boolean;
  /** False if the files of the service end without a line end. */
  readonly final_newline?: boolean;
  /** Days that were wanted and are no longer exported. */
  readonly gaps?: readonly Day[];
  /** What the state of a stream keeps of the days that were read: the last ones, and all from the cursor on. */
  readonly days?: Readonly<Record<Day, ReceiptSummary>>;
  readonly [key: string]: unknown;
}

/** What a commit stores beside the days, or needs to know of the run. */
export interface CommitInfo {
  /** The start, if the place has none yet. */
  readonly start: Day;
  readonly fingerprints: SettingsFingerprints;
  /** True if every day is written, also one whose rows are there already (`--full-refresh`, `--from`). */
  readonly alwaysWrites: boolean;
  /** Whether an export includes its `to_date`, once that is proved; undefined also if the configuration says it. */
  readonly includesToDate?: boolean | undefined;
  /** Whether files end with a line end, as far as this run knows. */
  readonly hasFinalNewline?: boolean | undefined;
  /** Gaps that this run has found, under `on_gap: warn`. */
  readonly gaps?: readonly Day[];
}

/**
 * The state of a place or a stream after a commit. `receipts` are those after the commit, by day: all of a place, the
 * last of a stream. Pure. The cursor never moves back. It passes no day that is not loaded and over, but for a gap.
 */
export function stateAfter(
  stateBefore: ExportState | undefined,
  receipts: ReceiptsByDay,
  commitInfo: CommitInfo,
): ExportState {
  const { to_date_inclusive, final_newline, gaps: recordedGaps = [], ...otherKeys } = stateBefore ?? {};
  const { fingerprints } = commitInfo;
  const start = stateBefore?.start_date ?? commitInfo.start;
  const isLoaded = (day: Day) => receipts.get(day)?.is_over === true;
  const gaps = new Set([...recordedGaps, ...(commitInfo.gaps ?? [])].filter((day) => !isLoaded(day)));
  let cursor = laterOf(stateBefore?.from_date ?? start, start);
  while (isComplete(cursor, receipts, gaps)) cursor = addDays(cursor, 1);
  const hashed = joinHashedColumns(stateBefore?.hashed, fingerprints.hashedColumns);
  const includesToDate = commitInfo.includesToDate ?? to_date_inclusive;
  const lacksFinalNewline = (commitInfo.hasFinalNewline ?? final_newline) === false;
  return {
    ...otherKeys,
    version: 1,
    from_date: cursor,
    start_date: start,
    service: fingerprints.serviceHash,
    filters: fingerprints.filtersHash,
    ...(hashed !== undefined && { hashed }),
    // Those that are not in `otherKeys` come last: an equal state has an equal text.
    ...(includesToDate !== undefined && { to_date_inclusive: includesToDate }),
    ...(lacksFinalNewline && { final_newline: false }),
    ...(gaps.size > 0 && { gaps: [...gaps].sort() }),
  };
}

/** The columns that are hashed in earlier or in new rows, under the same key. */
const joinHashedColumns = (earlier: HashedColumns | undefined, latest: HashedColumns | undefined) =>
  latest && { ...latest, columns: canonicalNames([...(earlier?.columns ?? []), ...latest.columns]) };

/** True for a day that needs no further read: loaded and over, or a gap. */
export const isComplete = (day: Day, receipts: ReceiptsByDay, gaps: ReadonlySet<Day>): boolean =>
  receipts.get(day)?.is_over === true || gaps.has(day);

/** A stored state that this run must not use: exit 2. `advice` is for the command line. */
const stateError = (statement: string, advice: string): UserError =>
  configError(`${statement}: ${advice}.`, {
    platformMessage: `${statement}. Clear the stream's data, or its state, in the platform to start anew.`,
  });

/**
 * Parses a stored state; every key is kept. `undefined`, `null` and an object without keys are no state. Throws a
 * failure for anything else that is not a state.
 */
export function parseState(value: unknown): ExportState | undefined {
  if (value === undefined || value === null) return undefined;
  if (!isObject(value)) throw malformedError('it is not a JSON object');
  if (Object.keys(value).length === 0) return undefined;
  const { version } = value;
  if (typeof version === 'number' && version > 1) {
    throw stateError(
      `The stored state has version ${version} and was written by a newer program, this one knows version 1`,
      'use that one',
    );
  }
  if (!valid<ExportState>(value)) throw malformedError(problemTexts(valid).join('; '));
  return Object.freeze({ ...value });
}

const malformedError = (why: string) =>
  stateError(
    `The stored state cannot be used (${why})`,
    'wanted {"version":1,"from_date":"YYYY-MM-DD"}; restore it from a copy, or start anew with another place',
  );

/** Throws a configuration failure if the state is of another service than this run. */
export function refuseOtherService(state: ExportState | undefined, { serviceHash }: SettingsFingerprints): void {
  if (state?.service === undefined || state.service === serviceHash) return;
  throw stateError('The stored data belong to another service', 'use another place for this one');
}

/** Throws a configuration failure if rows were hashed under another key: nobody could be found in all rows any more. */
export function refuseOtherHashKey(state: ExportState | undefined, { hashedColumns }: SettingsFingerprints): void {
  if (!state?.hashed || !hashedColumns || state.hashed.key_check === hashedColumns.key_check) return;
  throw stateError(
    'The place holds columns that were hashed under another hash_key',
    'give that key, or load into a new place',
  );
}

/**
 * Throws a configuration failure if the state must not be used. Its service, hash key and filters must be those of this
 * run, and its cursor not in the future. A full refresh may have other filters.
 */
export function checkState(
  state: ExportState | undefined,
  fingerprints: SettingsFingerprints,
  { now, fullRefresh }: { readonly now: number; readonly fullRefresh: boolean },
): void {
  refuseOtherService(state, fingerprints);
  refuseOtherHashKey(state, fingerprints);
  if (hasOtherFilters(state, fingerprints.filtersHash) && !fullRefresh) {
    throw stateError(
      'The place was filled with other filters or columns (events, properties, columns_drop or columns_hash)',
      'put them back, use another place, or read everything again with --full-refresh',
    );
  }
  // A wrong clock leaves such a cursor.
  const today = lastDayBegunAnywhere(now);
  if (state !== undefined && state.from_date > today) {
    throw stateError(
      `The stored cursor ${state.from_date} lies in the future (today is ${today} at most)`,
      'check the clock of this machine, or load another place',
    );
  }
}
