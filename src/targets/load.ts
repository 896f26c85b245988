import type { Day } from '../base/days.ts';
import { messageOf, UserError } from '../base/errors.ts';
import type { Logger } from '../base/log.ts';
import { unseparatedCount } from '../base/quantities.ts';
import type { CheckedDay } from '../extract/checked-day.ts';
import type { ExportSettings } from '../extract/export-settings.ts';
import type { CommitInfo } from '../extract/export-state.ts';
import type { ExtractDeps } from '../extract/extract-deps.ts';
import type { Extraction } from '../extract/extraction.ts';
import type { ObservedService } from '../extract/observed-service.ts';
import type { RunResults } from '../extract/run-results.ts';
import type { RunPlan } from '../extract/which-days.ts';
import { type CommitResult, NOTHING_STORED, sumOfCommits } from '../table/commit.ts';
import { USER_PROFILES } from '../table/tables.ts';
import type { Sink, StreamSink } from './contract.ts';

/** What the commits of a load have brought into a place so far. */
interface StoredResult {
  /** The sum of all commits. */
  total: CommitResult;
  /** Number of rows of the stored days that were left out, since the person asked to be forgotten. */
  suppressedRows: number;
  /** Number of profiles that were stored; absent if none were. */
  profileCount?: number;
  /** The stored cursor; absent before the first commit. */
  cursor?: Day | undefined;
}

/** What a load has brought into a place, and what the service has answered. */
export interface LoadResult
  extends Readonly<StoredResult>,
    Pick<RunResults, 'gaps' | 'openDays' | 'implausibleDays'>,
    Pick<ObservedService, 'answeredExports' | 'receivedBytes' | 'includesToDate'> {}

/** Loads days and profiles into a place, and counts what is stored. */
export class Load {
  readonly #deps: ExtractDeps;
  #runResults: RunResults | undefined;
  #stored: StoredResult = { total: NOTHING_STORED, suppressedRows: 0 };

  constructor(deps: ExtractDeps) {
    this.#deps = deps;
  }

  /** The result so far, also of a load that failed. */
  get result(): LoadResult {
    const { answeredExports, receivedBytes, includesToDate } = this.#deps.service;
    const { gaps = [], openDays = [], implausibleDays = [] } = this.#runResults ?? {};
    return { ...this.#stored, answeredExports, receivedBytes, includesToDate, gaps, openDays, implausibleDays };
  }

  /**
   * Loads the profiles, if the settings say so and the place keeps them, and then the days of a plan. The days are
   * loaded also where the profiles failed. Throws UserError.
   */
  async loadAll(plan: RunPlan, sink: Sink | StreamSink): Promise<void> {
    const { logger, signal } = this.#deps;
    const { userProfiles } = plan.settings;
    // This module is loaded late: the library and a dry run import this file, and may load nothing.
    const { Extraction } = await import('../extract/extraction.ts');
    const extraction = new Extraction(plan, this.#deps);
    this.#runResults = extraction.results;
    if (sink.kind === 'stream') {
      if (userProfiles) logger.warn('profiles.none', 'This target has no table of user profiles.');
      return this.#sendDays(extraction, sink);
    }
    let profilesError: UserError | undefined;
    try {
      if (userProfiles) await this.#loadProfiles(plan.settings, sink);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof UserError)) throw error;
      profilesError = error;
    }
    try {
      await this.#loadDays(extraction, sink);
    } catch (error) {
      // The failure of the days is thrown; a full disk has ended both alike.
      if (profilesError && profilesError.message !== messageOf(error))
        logger.error('profiles.failed', profilesError.message);
      throw error;
    }
    if (profilesError) throw profilesError;
  }

  /** Loads the user profiles into a place, if its snapshot is old or was loaded with other columns. */
  async #loadProfiles(settings: ExportSettings, sink: Sink): Promise<void> {
    const { service, clock, logger } = this.#deps;
    const { isSnapshotDue, loadSnapshot } = await import('../extract/profile-snapshot.ts');
    const [storedReceipt] = sink.state?.user_profiles?.receipts.values() ?? [];
    if (!isSnapshotDue(storedReceipt, settings, clock.now())) {
      // Profiles that are not asked for now may have the columns that no day had.
      service.markColumnsSeen(service.unseenColumns);
      return;
    }
    const store = async (snapshot: CheckedDay, commitInfo: CommitInfo) => {
      const { daysWritten, rowsWritten: rows, rescuedCells } = await sink.commit([snapshot], commitInfo, USER_PROFILES);
      logRescued(logger, rescuedCells);
      if (daysWritten.length === 0) return;
      this.#stored.profileCount = rows;
      logger.info('profiles.committed', `Stored: ${unseparatedCount(rows, 'profile')}.`, { rows });
    };
    await loadSnapshot(storedReceipt, settings, this.#deps, store);
  }

  async #loadDays(extraction: Extraction, sink: Sink): Promise<void> {
    for await (const { checkedDays: batch, commitInfo } of extraction.batches()) {
      try {
        await this.#storeBatch(batch, commitInfo, sink);
      } catch (error) {
        const isTransient = error instanceof UserError && error.kind === 'transient';
        if (batch.length === 1 || isTransient || this.#deps.signal.aborted) throw error;
        // Days before the one that fails are still stored.
        for (const download of batch) await this.#storeBatch([download], commitInfo, sink);
      }
    }
  }

  async #storeBatch(batch: readonly CheckedDay[], commitInfo: CommitInfo, sink: Sink): Promise<void> {
    const { logger } = this.#deps;
    const commit = await sink.commit(batch, commitInfo);
    logRescued(logger, commit.rescuedCells);
    this.#stored.cursor = sink.state?.events.exportState?.from_date;
    this.#stored.total = sumOfCommits(this.#stored.total, commit);
    for (const { receipt } of batch) {
      const { day, rows, bytes, suppressed } = receipt;
      const isUnchanged = commit.daysUnchanged.includes(day);
      // The place had a later download of this day.
      if (!isUnchanged && !commit.daysWritten.includes(day)) continue;
      this.#stored.suppressedRows += suppressed;
      const outcome = isUnchanged ? 'is as it was' : 'is committed';
      logger.debug('day.committed', `${day} ${outcome}: ${unseparatedCount(rows, 'row')}.`, { day, rows, bytes });
    }
  }

  async #sendDays(extraction: Extraction, sink: StreamSink): Promise<void> {
    try {
      await sink.write(extraction.checkedDays(), ({ receipt }, commit) => {
        this.#stored.total = sumOfCommits(this.#stored.total, commit);
        this.#stored.suppressedRows += receipt.suppressed;
      });
    } catch (error) {
      if (sink.isAllOrNothing) this.#stored = { total: NOTHING_STORED, suppressedRows: 0 };
      throw error;
    } finally {
      logRescued(this.#deps.logger, this.#stored.total.rescuedCells);
    }
  }
}

/** Logs the cells that did not fit. `rescuedCells`: their number, by their key in `_rescued`. */
function logRescued(logger: Logger, rescuedCells: ReadonlyMap<string, number>): void {
  for (const [column, cells] of rescuedCells) {
    const message = `column ${column}: ${unseparatedCount(cells, 'cell')} not of its type, kept as text in _rescued`;
    logger.warn('cells.rescued', message, { column, cells });
  }
}
