// This folder: where windows are loaded into. Each target is a folder with a descriptor, listed in targets.ts, over which
// the commands loop; `sql/` (DuckDB), `files/` (tables of Parquet files) and `storage/` (disk, bucket) are shared, and
// `records/` writes Airbyte records. docs/targets.md is the contract. All methods throw UserError.

import type { Writable } from 'node:stream';
import type { Day } from '../base/days.ts';
import type { Runtime } from '../base/runtime.ts';
import type { HashKey } from '../schema/hash-key.ts';
import type { StoredColumn, TableName } from '../table/columns.ts';
import type { Difference } from '../table/differences.ts';
import type { Rules } from '../table/plan.ts';
import type { RunRecord } from '../table/runs.ts';
import type { TableState } from '../table/state.ts';
import type { Sink, StreamSink } from './sink.ts';

/** The name of a target, and the way to open a place of it for loading. */
export interface Target {
  /** The word that names the target after `sync`, `verify` and the others. */
  readonly name: string;
  /** The form in which a place of this target is given. */
  readonly place: {
    /** Its name in usage and messages: `file` gives `<file>` and FILE. */
    readonly name: 'file' | 'dir' | 'url';
    readonly describe: string;
  };
  /** Texts for help, of the commands that do something else with each target. */
  readonly summaries: { readonly sync: string };
  /** True for a place that is the program's own stdout, so that nothing else may be written there. */
  isStdout?(place: string): boolean;
  /** Paths in a folder of its tables, of which one is there once it was loaded; none if no folder is only for its tables. */
  readonly markers?: readonly string[];
  /** The options of `sync` that this target has and not every other, with what help says of each. */
  readonly options?: Readonly<Partial<Record<keyof TargetOptions, string>>>;
  /** Opens a place for loading; creates it if there is none. */
  open(place: string, options: OpenOptions): Promise<Sink | StreamSink>;
}

/** A target that stores its loads: its places can be continued, maintained, and searched for people. */
export interface StatefulTarget extends Target {
  /** What a place is, in help: `a DuckDB file`, `Delta tables`. */
  readonly label: string;
  readonly summaries: { readonly sync: string; readonly compact: string };
  open(place: string, options: OpenOptions): Promise<Sink>;
  maintenance(): Promise<Maintenance>;
  people(): Promise<People>;
}

export interface Maintenance {
  /**
   * The state that is stored beside the rows; it reads no row. Undefined if nothing was loaded yet, also where no place
   * is: all other methods then throw a configuration failure (exit 2). Read-only.
   */
  readState(place: string, options: PlaceOptions): Promise<TableState | undefined>;
  /** Compares the data with its receipts; read-only. */
  verify(place: string, options: PlaceOptions): Promise<Difference[]>;
  /** Rewrites the data: fewer, larger files, and no space for removed rows. */
  compact(place: string, options: PlaceOptions): Promise<RewriteResult>;
  /** The contents of the page of `report`; read-only. */
  report(place: string, options: PlaceOptions): Promise<TargetReport>;
}

/** The look-up of people in a place, and their removal in one commit under its lock (S37). */
export interface People {
  /**
   * The people as they are now: a forecast, since their removal looks them up again. Read-only, except that a change
   * which a dead writer left half-way may be finished first.
   */
  find(place: string, query: PeopleQuery, options: PlaceOptions): Promise<PeopleFound>;
  /** Throws a configuration failure for a place that is never purged itself: a copy for readers. Read-only. */
  checkOriginal?(place: string, options: PlaceOptions): Promise<void>;
  /**
   * The rows of `events` that a purge would remove, as JSON objects without the columns that are null: other tables
   * hold nothing that these lack. Read-only.
   */
  rows(place: string, query: PeopleQuery, options: PlaceOptions): AsyncIterable<string>;
  /**
   * Runs all steps of a purge of these people except the one that puts the result in place, so that a purge that cannot
   * succeed is noticed before anything is deleted.
   */
  tryPurge(place: string, query: PeopleQuery, options: PlaceOptions): Promise<PurgeTrial>;
  /**
   * Takes the place's lock, looks the people up again, calls `onFound`, and removes all their rows in one commit, so
   * that no byte of them remains in the place. A kill leaves all of them or none, and the same purge again finishes the
   * rest. If `onFound` throws, nothing is removed.
   */
  purge(place: string, query: PeopleQuery, options: PurgeOptions): Promise<PurgeResult>;
}

/**
 * Options of operations on a place other than loading. A place is shown in messages and stored, so that a secret is
 * never part of it: a target that needs one reads it from `env`, and keeps it out of its messages, where nothing masks
 * it.
 */
export interface PlaceOptions extends Pick<Runtime, 'env' | 'clock' | 'logger'> {
  /** Maximum wait for the lock of a place (ms). */
  readonly lockWaitMs: number;
  /** Memory limit as DuckDB writes it (`2GB`); undefined for half of what the machine or container allows. */
  readonly memoryLimit?: string | undefined;
  readonly spoolDir: string;
  readonly signal?: AbortSignal | undefined;
}

/** Options of `sync` that only some targets have, which name them in `options`; each is a text. */
export interface TargetOptions {
  /** Location of the data of a new place; undefined if they lie beside it. */
  readonly data?: string | undefined;
  /** Path at which a copy for readers will be published. */
  readonly publish?: string | undefined;
}

/** Options of `open`; each target uses those that apply to it. */
interface OpenOptions extends PlaceOptions, Rules, TargetOptions {
  /** Tables to write in addition to `events`. */
  readonly tables: readonly TableName[];
  /** Time that files removed from a table are kept for its readers (ms). */
  readonly retentionMs: number;
  /** The stream for a place that `isStdout`. */
  readonly stdout: Writable;
  readonly signal: AbortSignal;
}

/** The people to look for (S37), by a column or by a mapping, never by both. */
export interface PeopleQuery {
  /** External ids, each once, without placeholders. */
  readonly ids: readonly string[];
  /** Name in the export of the column that holds such ids. */
  readonly column?: string | undefined;
  /** Unified ids by external id. */
  readonly mapping?: ReadonlyMap<string, readonly string[]> | undefined;
  /** Key of the columns that are hashed in the place (S47); it also tells that a hash and a value are one person. */
  readonly hashKey?: HashKey | undefined;
}

/** A `df_unified_id` in the form that rows of a place hold. */
export interface UnifiedId {
  readonly text: string;
  /** Check value of the key under which it is a hash; undefined for a plain one. */
  readonly hashKey: string | undefined;
}

export interface PeopleFound {
  /** Every form of the people's unified ids in the rows, without placeholders. */
  readonly unifiedIds: readonly UnifiedId[];
  /** Number of people; each counts once, whatever the number of forms. */
  readonly people: number;
  /** The requested ids that have a row. */
  readonly ids: readonly string[];
  /** The ids among `ids` whose rows name no unified id. */
  readonly idsWithoutUnifiedId: readonly string[];
  /** Number of rows of `events` that a purge removes. */
  readonly rows: number;
  /** Number of people whose rows also carry other ids in the column (S55). */
  readonly shared: number;
  /** Hash of the service whose data the place holds, as in the state; undefined if the state does not name it. */
  readonly service: string | undefined;
  /** Sentences about rows that could not be searched. */
  readonly warnings: readonly string[];
}

export const NOBODY: PeopleFound = {
  unifiedIds: [],
  people: 0,
  ids: [],
  idsWithoutUnifiedId: [],
  rows: 0,
  shared: 0,
  service: undefined,
  warnings: [],
};

export interface PurgeTrial {
  readonly found: PeopleFound;
  /** Tables in the place, types and the like that are not this program's: they stay, and may name the people. */
  readonly foreignTables: readonly string[];
  /** Copies for readers of the original, if the place is or was a plain copy: it cannot replace them (S52). */
  readonly copiesOfOriginal?: readonly string[];
}

export interface PurgeOptions extends PlaceOptions {
  /** Called under the lock, before anything is changed. */
  readonly onFound: (found: PeopleFound) => Promise<void>;
  /** Copies for readers that the place is to remove from its list (S52). */
  readonly forgetCopies?: readonly string[] | undefined;
}

export interface PurgeResult extends RewriteResult {
  readonly found: PeopleFound;
  /** Sentences about what still holds the people, such as copies: with any of them the purge is not done. */
  readonly unreached: readonly string[];
  /** Folders of the place in which other runs have rows that are alive, or may be. */
  readonly inUse?: readonly string[];
}

/** The result of rewriting a place. */
export interface RewriteResult {
  /** Rows of `events` after the rewrite. */
  readonly rows: number;
  readonly rowsRemoved: number;
  /** The files with rows of `events` that new files replaced. */
  readonly files: readonly string[];
  readonly bytesBefore: number;
  readonly bytesAfter: number;
}

/** Maximum number of event names that a report counts individually; the others are counted together. */
export const REPORTED_NAMES = 8;

/** Events of one day; `name` is null for the events that are not among the most frequent. */
export interface ReportedEvents {
  readonly day: Day;
  readonly name: string | null;
  readonly events: number;
}

export interface ReportedColumn extends Pick<StoredColumn, 'name' | 'source' | 'group' | 'type'> {
  /** Number of rows with a value. */
  readonly filled: number;
  /** Number of cells in `_rescued`. */
  readonly rescued: number;
}

/** The contents of the report page of a target: names, counts and dates, but no values of people. */
export interface TargetReport {
  readonly state: TableState;
  readonly rows: number;
  readonly sizeBytes: number;
  /** Newest `df_server_datetime`. */
  readonly lastEventAt: string | null;
  readonly events: readonly ReportedEvents[];
  /** Events by hour of the day at which they occurred, 24 numbers. */
  readonly hours: readonly number[];
  readonly columns: readonly ReportedColumn[];
  /** The latest runs, oldest first. */
  readonly runs: readonly RunRecord[];
}
