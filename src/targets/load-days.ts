import type { Day } from '../base/days.ts';
import { UserError } from '../base/errors.ts';
import { plainCount } from '../base/quantities.ts';
import type { DayDownload } from '../extract/day-download.ts';
import { hashedColumns } from '../extract/export-request.ts';
import type { RunProgress } from '../extract/export-state.ts';
import { type ExtractDeps, newExtractCounts } from '../extract/extract-deps.ts';
import type { Plan } from '../extract/plan/which-days.ts';

import type { ProfileSettings } from '../extract/profile-snapshot.ts';
import { type Commit, NOTHING_STORED } from '../table/commit.ts';

import { storedRows } from '../table/receipts.ts';
import type { Sink, StreamSink } from './contract.ts';

/** Counts of a load, which fills them while it runs. */
export const newLoadCounts = () => ({
  ...newExtractCounts(),
  /** The sum of all commits; a column widened twice counts once, with its first type before and its last after. */
  stored: NOTHING_STORED,
  /** Number of rows more than the place had. */
  rowsNew: 0,
  /** Number of rows of the stored days that were left out, since the person asked to be forgotten. */
  suppressed: 0,
  /** Number of profiles that were stored; undefined if none were. */
  profiles: undefined as number | undefined,
  /** The stored cursor; undefined if this run has stored none. */
  nextFromDate: undefined as Day | undefined,
});

export type LoadCounts = ReturnType<typeof newLoadCounts>;

export interface LoadDeps extends ExtractDeps {
  /** Counts, up to date whenever the load ends, successfully or not. */
  readonly counts: LoadCounts;
}

/** Executes a plan: reads its days and stores them in an open place. Throws UserError. */
export function loadDays(plan: Plan, sink: Sink | StreamSink, deps: LoadDeps): Promise<void> {
  return 'commit' in sink ? loadBatches(plan, sink, deps) : loadStream(plan, sink, deps);
}

/**
 * Loads the user profiles into a place, if its snapshot is old or was loaded with other columns. Returns the
 * UserError for which they were not loaded: the days are loaded all the same. Throws the signal's reason.
 */
export async function loadProfiles(
  sink: Sink,
  settings: ProfileSettings,
  deps: LoadDeps,
): Promise<UserError | undefined> {
  const { counts, unseenColumns, clock, logger, signal } = deps;
  const { isSnapshotDue, loadSnapshot, profileFilters } = await import('../extract/profile-snapshot.ts');
  const stored = sink.state?.profiles?.receipt;
  const filters = profileFilters(settings);
  if (!isSnapshotDue(stored, filters, clock.now())) {
    // The profiles, which are not asked for, may have these columns.
    unseenColumns.clear();
    return undefined;
  }
  const store = async (snapshot: DayDownload) => {
    const rows = await sink.replaceProfiles(snapshot, hashedColumns(settings), signal);
    counts.profiles = rows;
    if (rows !== undefined) logger.info('profiles.committed', `Stored: ${plainCount(rows, 'profile')}.`, { rows });
  };
  try {
    return await loadSnapshot({ stored, filters }, deps, store);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof UserError) return error;
    throw error;
  }
}

async function loadBatches(plan: Plan, sink: Sink, deps: LoadDeps): Promise<void> {
  const { counts, logger, signal } = deps;
  const rowsBefore = rowsIn(sink);
  const store = async (batch: readonly DayDownload[], progress: RunProgress) => {
    const commit = await sink.commit(batch, progress, signal);
    add(counts, batch, commit);
    counts.rowsNew = Math.max(0, rowsIn(sink) - rowsBefore);
    counts.nextFromDate = sink.state?.exportState?.from_date;
    const unchanged = new Set(commit.daysUnchanged);
    for (const { receipt } of batch) {
      const { day, rows, bytes } = receipt;
      const what = unchanged.has(day) ? 'is as it was' : 'is committed';
      logger.debug('day.committed', `${day} ${what}: ${plainCount(rows, 'row')}.`, { day, rows, bytes });
    }
  };
  // This module is loaded late: the library and a dry run import this file, and may load nothing.
  const { extractDays } = await import('../extract/extract.ts');
  for await (const { days, progress } of extractDays(plan, deps)) {
    try {
      await store(days, progress);
    } catch (error) {
      const isPassing = error instanceof UserError && error.kind === 'transient';
      if (days.length === 1 || isPassing || signal.aborted) throw error;
      // Then those before the day that cannot be stored are kept.
      for (const day of days) await store([day], progress);
    }
  }
}

const rowsIn = ({ state }: Sink): number => storedRows(state?.receipts.values() ?? []);

async function loadStream(plan: Plan, sink: StreamSink, deps: LoadDeps): Promise<void> {
  const { counts } = deps;
  const { extractEachDay } = await import('../extract/extract.ts');
  try {
    const streamed = await sink.write(extractEachDay(plan, deps), (day, rows) => {
      add(counts, [day], { ...NOTHING_STORED, days: [day.receipt.day], daysChanged: [day.receipt.day], rows });
      counts.rowsNew += rows;
    });
    counts.stored = { ...counts.stored, ...streamed };
  } catch (error) {
    if (sink.isAllOrNothing) Object.assign(counts, { stored: NOTHING_STORED, rowsNew: 0, suppressed: 0 });
    throw error;
  }
}

/** Adds the counts of a commit; `batch` are the days that it was given. */
function add(counts: LoadCounts, batch: readonly DayDownload[], commit: Commit): void {
  const { stored } = counts;
  const widened = new Map(stored.columnsWidened.map((column) => [column.name, column]));
  for (const column of commit.columnsWidened) {
    widened.set(column.name, { ...column, from: widened.get(column.name)?.from ?? column.from });
  }
  const rescued = new Map(stored.rescued);
  for (const [column, cells] of commit.rescued) rescued.set(column, (rescued.get(column) ?? 0) + cells);
  counts.stored = {
    days: [...stored.days, ...commit.days],
    rows: stored.rows + commit.rows,
    daysUnchanged: [...stored.daysUnchanged, ...commit.daysUnchanged],
    daysChanged: [...new Set([...stored.daysChanged, ...commit.daysChanged])].sort(),
    columnsAdded: [...stored.columnsAdded, ...commit.columnsAdded],
    columnsWidened: [...widened.values()],
    rescued,
  };
  counts.suppressed += batch.reduce((sum, { receipt }) => sum + receipt.suppressed, 0);
}
