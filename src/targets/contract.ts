// This folder: the targets into which days are loaded: `duckdb/`, `files/` (Parquet and Delta) and `arrow/`, which
// `targets.ts` lists. This file states what a target must do. `load.ts` gives the days of a run to any of them, and
// `refusals.ts` says why a place is refused. All methods throw UserError. A download is the checked export of a day, or
// of the profiles (`CheckedDay`). A batch is what one commit stores: the downloads of some days, or that of the profiles.

import type { Writable } from 'node:stream';
import type { Day } from '../base/days.ts';
import type { Runtime } from '../base/runtime.ts';
import type { PeopleFindings, PeopleQuery } from '../engine/people/people.ts';
import type { VerifyResult } from '../engine/rows/check-rows.ts';
import type { ReportCounts } from '../engine/rows/report-counts.ts';
import type { EngineOptions } from '../engine/session/engine.ts';
import type { CheckedDay } from '../extract/checked-day.ts';
import type { CommitInfo } from '../extract/export-state.ts';
import type { ColumnSettings } from '../table/column-type.ts';
import type { CommitResult } from '../table/commit.ts';
import type { PlaceState, RunRecord } from '../table/place-state.ts';
import type { Table } from '../table/tables.ts';

/** A target: what every command line needs to know of it, and the way to open a place for loading. */
export interface Target {
  /** The word that names the target after `sync`, `verify` and the others. */
  readonly name: string;
  /** How help and messages name its places: `DIR`, `s3://BUCKET/PREFIX`. */
  readonly placeForms: readonly string[];
  /** True if what is at a path of this disk looks like a place of this target, loaded or not. */
  hasPlaceAt(path: string): boolean;
  /**
   * Opens a place for loading, before the first request of a run. A missing one is made then, or by the first commit.
   * Throws a configuration failure for a place of another program, and for another time zone than the stored one.
   */
  open(options: LoadOptions): Promise<Sink | StreamSink>;
}

/** A target that stores its loads: its places can be continued, maintained, and searched for people. */
export interface StatefulTarget extends Target {
  open(options: LoadOptions): Promise<Sink>;
  /** Loads its module on the first call, as `peopleOperations` does, so that other commands start without it. */
  maintenance(options: PlaceOptions): Promise<Maintenance>;
  peopleOperations(options: PlaceOptions): Promise<PeopleOperations>;
}

/** Where a place is, and what all that is done with it needs. */
export interface PlaceOptions
  extends Pick<Runtime, 'env' | 'clock' | 'logger' | 'signal'>,
    Pick<EngineOptions, 'lockWaitMs' | 'memoryLimit'> {
  /** A path or an address, as a user gives it. */
  readonly address: string;
  /** Folder for temporary files. Each run has a folder in it, and removes that at its end. */
  readonly spoolDir: string;
}

/** A place of a target. */
export interface Place<T extends Target = Target> extends PlaceOptions {
  readonly target: T;
}

/** Options of a place that is loaded. */
export interface LoadOptions extends PlaceOptions {
  readonly columnSettings: ColumnSettings;
  /** True for a run that loads user profiles, too: a table of them by another program is refused. */
  readonly loadsProfiles: boolean;
  /** Time that files removed from a Delta table are kept for its readers (ms). */
  readonly retentionMs: number;
  /** The stream for an Arrow stream whose address is `-`. */
  readonly stdout: Writable;
}

/** A place that is open for loading. Other writers are kept out only while something is written. */
export interface Sink {
  readonly kind: 'stateful';
  /**
   * What the place holds beside its rows, as read when it was opened or last committed. Undefined before the first
   * load. Days whose rows a user removed are marked as pruned there.
   */
  readonly state: PlaceState | undefined;
  /**
   * Reads the state anew, and stores a batch. It keeps other writers out, or fails if one commits first. A day that may
   * share rows with its neighbours comes alone. `table`: absent for events.
   *
   *   replaces        rows and receipts of the days, columns and cursor; of profiles all rows
   *   leaves out      days whose stored receipt was requested later
   *   does not write  days whose rows are there already, unless the run writes every day
   *   at a crash      A commit that has returned stays. Any other leaves all as it was, as at a failure. A Parquet
   *                   folder does so for each day, and may lack a row of two days until the same command is run again.
   */
  commit(batch: readonly CheckedDay[], commitInfo: CommitInfo, table?: Table): Promise<CommitResult>;
  /** Records a run that ends, also one that failed. */
  recordRun(run: RunRecord): Promise<void>;
  /** Releases what is held; may be called after any failure. */
  close(): Promise<void>;
}

/** A place that takes all days of a run as one stream and stores nothing about them: `recordRun` does nothing. */
export interface StreamSink extends Pick<Sink, 'recordRun' | 'close'> {
  readonly kind: 'stream';
  readonly state: undefined;
  /** True if a stream that failed is of no use to its reader. */
  readonly isAllOrNothing: boolean;
  /** Sends all days in their order; it may move their files away. A reader that leaves before the end is no failure. */
  write(downloads: AsyncIterable<CheckedDay>, onSent: OnSent): Promise<void>;
}

/** Called for each day, in order, once its reader has taken all of its rows. `commit`: of the first day with all columns. */
export type OnSent = (download: CheckedDay, commit: CommitResult) => void;

/**
 * What is done with one place that was loaded. Each call opens the place, and closes it. All but `readState` throw a
 * configuration failure (exit 2) where nothing was loaded yet. All but `prune` change nothing, and need no right to
 * write there.
 */
export interface Maintenance {
  /**
   * Gives the state that is stored beside the rows. Days whose rows a user removed are marked as pruned there.
   * Undefined if nothing was loaded yet, also where no place is.
   */
  readState(): Promise<PlaceState | undefined>;
  /** Reads all that is stored, and compares it with what was loaded. */
  verify(): Promise<VerifyResult>;
  /** Counts the rows for the page of `report`. */
  report(): Promise<PlaceReport>;
  /**
   * Removes the days before `firstKeptDay`, if `execute` says so; gives what is, or would be, removed. Their receipts
   * stay, so that cursor and gaps are not touched.
   */
  prune(firstKeptDay: Day, execute: boolean): Promise<PruneResult>;
}

/** The contents of the report page of a place: names, counts and dates, but no values of people. */
export interface PlaceReport extends ReportCounts {
  readonly state: PlaceState;
  readonly sizeBytes: number;
  /** The runs that the place remembers, oldest first: all, or the last one. */
  readonly runs: readonly RunRecord[];
}

export interface PruneResult {
  readonly days: readonly Day[];
  readonly rows: number;
}

/**
 * Finds people in one place that was loaded, and removes them. Each call opens the place and closes it. Where nothing
 * was loaded yet it throws a configuration failure (exit 2). An erasure calls `previewPurge` of every place, then
 * `purge` of one place after the other. `person` calls `find` and `rows`.
 */
export interface PeopleOperations {
  /** The people as they are now: a forecast, since their removal looks them up again. Read-only. */
  find(query: PeopleQuery): Promise<PeopleFindings>;
  /**
   * The rows that a purge would remove, as JSON objects with the members `table` and `row`. A row is an object without
   * the columns that are null. All are of one version of the place. Files that are replaced meanwhile are a transient
   * failure before the first row. Read-only.
   */
  rows(query: PeopleQuery): AsyncIterable<string>;
  /**
   * Runs the steps of a purge up to the first that changes the place, and throws what they would throw. So most purges
   * that cannot succeed are noticed before anything is deleted.
   */
  previewPurge(query: PeopleQuery): Promise<PurgePreview>;
  /**
   * Takes the lock of the place, looks the people up anew, and calls `onFound`. Then it removes all their rows in one
   * commit. After it no file of the place has the bytes of values that only these rows had. That holds for data, log,
   * checkpoint, statistics, write-ahead log, temporary folder and earlier versions of objects. What cannot be reached
   * is named in `unreached`. A kill leaves of each table either all rows or none, of a Parquet folder those of some
   * days. The same command, run again, finishes it. If `onFound` throws, nothing is removed.
   */
  purge(query: PeopleQuery, onFound: OnFound): Promise<Removal>;
}

export interface PurgePreview {
  readonly findings: PeopleFindings;
  /** Tables in the file, or files in the folders of the tables, of others: they stay, and may name the people. */
  readonly foreignNames: readonly string[];
}

/**
 * Called with those who are found, under the lock, before anything is changed. The ledger and the suppression list get
 * their lines here. It returns the length of the list, which the place remembers.
 */
export type OnFound = (findings: PeopleFindings) => Promise<number>;

/** What a purge has removed from a place, and what it could not reach. */
export interface Removal {
  readonly rowsRemoved: number;
  readonly bytesBefore: number;
  readonly bytesAfter: number;
  /** Sentences about what may still hold the people and could not be reached: the erasure ends with 3. */
  readonly unreached: readonly string[];
  /** Folders of the place with rows of other runs that may be alive; absent if there can be none. */
  readonly liveFolders?: readonly string[];
}
