// This folder: the targets into which days are loaded: `duckdb/`, `files/` (Parquet and Delta) and `arrow/`, which
// `targets.ts` lists. This file states what a target must do to be loaded, `maintenance-contract.ts` and
// `people-contract.ts` what else. `load.ts` gives the days of a run to any of them. All methods throw UserError.

import type { Writable } from 'node:stream';
import type { CheckedDay } from '../extract/checked-day.ts';
import type { RunProgress } from '../extract/export-state.ts';
import type { ColumnRules } from '../table/column-plan.ts';
import type { Commit } from '../table/commit.ts';
import type { PlaceState, RunRecord } from '../table/place-state.ts';
import type { Table } from '../table/tables.ts';
import type { Maintenance } from './maintenance-contract.ts';
import type { People } from './people-contract.ts';
import type { PlaceOptions } from './place-options.ts';

/** A target: what every command line needs to know of it, and the way to open a place for loading. */
export interface Target {
  /** The word that names the target after `sync`, `verify` and the others. */
  readonly name: string;
  /** How help and messages name its places: `DIR`, `s3://BUCKET/PREFIX`. */
  readonly placeForms: readonly string[];
  /** True if a place on this disk has the form of those of this target, loaded or not. */
  isAt?(path: string): boolean;
  /** True for a place that is the program's own stdout, so that nothing else may be written there. */
  isStdout?(place: string): boolean;
  /**
   * Opens a place for loading, before the first request of a run; creates it if there is none. Throws a configuration
   * failure for a place of another program, and for another time zone than the stored one.
   */
  open(place: string, options: OpenOptions): Promise<Sink | StreamSink>;
}

/** A target that stores its loads: its places can be continued, maintained, and searched for people. */
export interface StatefulTarget extends Target {
  open(place: string, options: OpenOptions): Promise<Sink>;
  /** Loads its module on the first call, so that other commands start without it. */
  maintenance(): Promise<Maintenance>;
  /** As `maintenance`. */
  people(): Promise<People>;
}

/** A place, as a user names it. */
export interface Place<T extends Target = Target> {
  readonly target: T;
  readonly path: string;
}

/** Options of a place that is loaded. */
export interface OpenOptions extends PlaceOptions, ColumnRules {
  /** Time that files removed from a table are kept for its readers (ms); of Delta. */
  readonly retentionMs: number;
  /** True for a run that loads user profiles, too: a table of them by another program is refused. */
  readonly userProfiles: boolean;
  /** The stream for a place that `isStdout`. */
  readonly stdout: Writable;
  readonly signal: AbortSignal;
}

/** A place that is open for loading. It is locked only while something is committed. */
export interface Sink {
  /**
   * What the place holds beside its rows, as read when it was opened or last committed. Undefined before the first
   * load. Days whose rows a user removed are marked as pruned there.
   */
  readonly state: PlaceState | undefined;
  /**
   * Stores a batch of days in one step; a Parquet folder stores each day with its receipt in one. It takes the lock
   * of the place, and reads its state anew. It leaves out days whose stored receipt was requested later. For the
   * others it removes the stored rows, and adds those of the downloads with receipts, columns and cursor. A day that
   * may share rows with its neighbours comes alone. A batch of a snapshot is one download, which replaces all rows.
   *
   * A day whose rows are there already is not written, unless the run writes every day. Once `commit` returns, no crash
   * undoes it. A kill or a failure before leaves rows and state as they were. In a Parquet folder that holds for
   * each day. There a row that two days share may be missing until the next sync. `table`: absent for events.
   */
  commit(batch: readonly CheckedDay[], progress: RunProgress, table?: Table): Promise<Commit>;
  /** Records a run that ends, also one that failed. */
  recordRun(run: RunRecord): Promise<void>;
  /** Releases what is held; may be called after any failure. */
  close(): Promise<void>;
}

/** A place that takes all days of a run as one stream and stores nothing about them. */
export interface StreamSink {
  /** True if a stream that failed is of no use to its reader. */
  readonly isAllOrNothing: boolean;
  /** Sends all days; it may move their files away. A reader that closes the stream before the end is no failure. */
  write(days: AsyncIterable<CheckedDay>, onSent: OnSent): Promise<void>;
}

/** Called for each day, in order, once its reader has taken all of its rows. The first brings the columns. */
export type OnSent = (day: CheckedDay, sent: Commit) => void;
