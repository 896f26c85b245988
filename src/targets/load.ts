import type { Day } from '../base/days.ts';
import { UserError } from '../base/errors.ts';
import { plainCount } from '../base/quantities.ts';
import type { CheckedDay } from '../extract/checked-day.ts';
import type { DaysOutcome } from '../extract/days-outcome.ts';
import type { RunProgress } from '../extract/export-state.ts';
import type { Extraction } from '../extract/extract.ts';
import type { ExtractDeps } from '../extract/extract-deps.ts';
import type { ObservedService } from '../extract/observed-service.ts';
import type { ProfileSettings } from '../extract/profile-snapshot.ts';
import type { Plan } from '../extract/which-days.ts';
import { logRescued } from '../table/column-changes.ts';
import { type Commit, NOTHING_STORED } from '../table/commit.ts';
import { countStoredRows } from '../table/receipts.ts';
import { USER_PROFILES } from '../table/tables.ts';
import type { Sink, StreamSink } from './contract.ts';

/** What a load has brought into a place. */
interface LoadResult {
  /** The sum of all commits; a column widened twice counts once, with its first type before and its last after. */
  readonly stored: Commit;
  /** Number of rows more than the place had; as long as it loads, perhaps negative. */
  readonly rowsNew: number;
  /** Number of rows of the stored days that were left out, since the person asked to be forgotten. */
  readonly suppressed: number;
  /** Number of profiles that were stored; undefined if none were. */
  readonly profiles: number | undefined;
  /** The stored cursor; undefined if this load has stored none. */
  readonly nextFromDate: Day | undefined;
}

export const NOTHING_LOADED: LoadResult = {
  stored: NOTHING_STORED,
  rowsNew: 0,
  suppressed: 0,
  profiles: undefined,
  nextFromDate: undefined,
};

type DayLists = Pick<DaysOutcome, 'gaps' | 'openDays' | 'implausibleDays'>;

export type LoadCounts = LoadResult & DayLists & Pick<ObservedService, 'exports' | 'bytes' | 'includesEnd'>;

/** Loads days and profiles into a place, and counts what is stored. */
export class Load {
  readonly #deps: ExtractDeps;
  #days: DayLists = { gaps: [], openDays: [], implausibleDays: [] };
  #loaded = NOTHING_LOADED;

  constructor(deps: ExtractDeps) {
    this.#deps = deps;
  }

  /** The counts so far, also of a load that failed. */
  get counts(): LoadCounts {
    const { exports, bytes, includesEnd } = this.#deps.service;
    const { gaps, openDays, implausibleDays } = this.#days;
    const rowsNew = Math.max(0, this.#loaded.rowsNew);
    return { ...this.#loaded, rowsNew, exports, bytes, includesEnd, gaps, openDays, implausibleDays };
  }

  /**
   * Loads the user profiles into a place, if its snapshot is old or was loaded with other columns. Returns the
   * UserError for which they were not loaded: the days are loaded all the same. Throws the signal's reason.
   */
  async loadProfiles(sink: Sink, settings: ProfileSettings): Promise<UserError | undefined> {
    const { service, clock, logger, signal } = this.#deps;
    const { isSnapshotDue, loadSnapshot, profileFingerprint, snapshotProgress } = await import(
      '../extract/profile-snapshot.ts'
    );
    const [storedReceipt] = sink.state?.user_profiles?.receipts.values() ?? [];
    const fingerprint = profileFingerprint(settings);
    if (!isSnapshotDue(storedReceipt, fingerprint, clock.now())) {
      // The profiles, which are not asked for, may have these columns.
      service.unseenColumns.clear();
      return undefined;
    }
    const store = async (snapshot: CheckedDay) => {
      const progress = snapshotProgress(snapshot, settings, clock.now());
      const { daysWritten, rows } = await sink.commit([snapshot], progress, USER_PROFILES);
      if (daysWritten.length === 0) return;
      this.#loaded = { ...this.#loaded, profiles: rows };
      logger.info('profiles.committed', `Stored: ${plainCount(rows, 'profile')}.`, { rows });
    };
    try {
      await loadSnapshot({ stored: storedReceipt, fingerprint }, this.#deps, store);
      return undefined;
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof UserError) return error;
      throw error;
    }
  }

  /** Executes a plan: reads its days and stores them in an open place. Throws UserError. */
  loadDays(plan: Plan, sink: Sink | StreamSink): Promise<void> {
    return 'commit' in sink ? this.#loadBatches(plan, sink) : this.#loadStream(plan, sink);
  }

  async #loadBatches(plan: Plan, sink: Sink): Promise<void> {
    const extraction = await this.#begin(plan);
    for await (const { days, progress } of extraction.batches()) {
      try {
        await this.#commit(days, progress, sink);
      } catch (error) {
        const isTransient = error instanceof UserError && error.kind === 'transient';
        if (days.length === 1 || isTransient || this.#deps.signal.aborted) throw error;
        // Days before the one that fails are still stored.
        for (const day of days) await this.#commit([day], progress, sink);
      }
    }
  }

  async #begin(plan: Plan): Promise<Extraction> {
    // This module is loaded late: the library and a dry run import this file, and may load nothing.
    const { Extraction } = await import('../extract/extract.ts');
    const extraction = new Extraction(plan, this.#deps);
    this.#days = extraction.outcome;
    return extraction;
  }

  async #commit(batch: readonly CheckedDay[], progress: RunProgress, sink: Sink): Promise<void> {
    const { logger } = this.#deps;
    const rowsBefore = rowsInPlace(sink);
    const commit = await sink.commit(batch, progress);
    const rowsNew = this.#loaded.rowsNew + rowsInPlace(sink) - rowsBefore;
    const nextFromDate = sink.state?.events.exportState?.from_date;
    this.#loaded = { ...addCommit(this.#loaded, batch, commit), rowsNew, nextFromDate };
    for (const { receipt } of inPlace(batch, commit)) {
      const { day, rows, bytes } = receipt;
      const what = commit.daysUnchanged.includes(day) ? 'is as it was' : 'is committed';
      logger.debug('day.committed', `${day} ${what}: ${plainCount(rows, 'row')}.`, { day, rows, bytes });
    }
  }

  async #loadStream(plan: Plan, sink: StreamSink): Promise<void> {
    const extraction = await this.#begin(plan);
    try {
      await sink.write(extraction.days(), (download, sent) => {
        this.#loaded = { ...addCommit(this.#loaded, [download], sent), rowsNew: this.#loaded.rowsNew + sent.rows };
      });
      logRescued(this.#deps.logger, this.#loaded.stored.rescuedCells);
    } catch (error) {
      if (sink.isAllOrNothing) this.#loaded = NOTHING_LOADED;
      throw error;
    }
  }
}

const rowsInPlace = ({ state }: Sink): number => countStoredRows(state?.events.receipts.values() ?? []);

/** The days of a batch whose rows the place holds after its commit; others had a later download there. */
const inPlace = (batch: readonly CheckedDay[], { daysWritten, daysUnchanged }: Commit): CheckedDay[] =>
  batch.filter(({ receipt: { day } }) => daysWritten.includes(day) || daysUnchanged.includes(day));

/** Adds a commit; `batch` are the days that it was given. */
function addCommit(loaded: LoadResult, batch: readonly CheckedDay[], commit: Commit): LoadResult {
  const { stored, suppressed } = loaded;
  const widened = new Map(stored.columnsWidened.map((column) => [column.name, column]));
  for (const column of commit.columnsWidened) {
    widened.set(column.name, { ...column, from: widened.get(column.name)?.from ?? column.from });
  }
  const rescuedCells = new Map(stored.rescuedCells);
  for (const [column, cells] of commit.rescuedCells) rescuedCells.set(column, (rescuedCells.get(column) ?? 0) + cells);
  return {
    ...loaded,
    stored: {
      daysWritten: [...stored.daysWritten, ...commit.daysWritten],
      rows: stored.rows + commit.rows,
      daysUnchanged: [...stored.daysUnchanged, ...commit.daysUnchanged],
      daysChanged: [...new Set([...stored.daysChanged, ...commit.daysChanged])].sort(),
      columnsAdded: [...stored.columnsAdded, ...commit.columnsAdded],
      columnsWidened: [...widened.values()],
      rescuedCells,
    },
    suppressed: inPlace(batch, commit).reduce((sum, { receipt }) => sum + receipt.suppressed, suppressed),
  };
}
