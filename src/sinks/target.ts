// This folder: where windows are loaded into. Each target is a folder with a descriptor, listed in targets.ts; `sql/`
// (DuckDB), `files/` (tables of Parquet files) and `storage/` (disk, bucket) are shared, and `records/` writes Airbyte records.

import type { Writable } from 'node:stream';
import type { Clock } from '../base/clock.ts';
import type { Day } from '../base/days.ts';
import type { Env } from '../base/env.ts';
import type { Logger } from '../base/log.ts';
import type { HashKey } from '../schema/hash-key.ts';
import type { StoredColumn, TableName } from '../table/columns.ts';
import type { Difference } from '../table/differences.ts';
import type { Rules } from '../table/plan.ts';
import type { RunRecord } from '../table/runs.ts';
import type { TableState } from '../table/state.ts';
import type { Sink, StreamSink } from './sink.ts';

// A target is a kind of place that windows are loaded into. Each has one descriptor, listed in targets.ts; the commands loop over
// that list and do not depend on single targets. docs/targets.md is the contract. All methods throw UserError.

/** What a target is called, and how a place of it is opened for loading. */
export interface Target {
  /** The word after `sync`, `verify` and the others. */
  readonly name: string;
  /** How a place of this target is given. */
  readonly place: {
    /** As usage and messages write it: `file` gives `<file>` and FILE. */
    readonly name: 'file' | 'dir' | 'url';
    readonly describe: string;
  };
  /** What the commands do that do something else with each target, for help. */
  readonly summaries: { readonly sync: string };
  /** True for a place that is the program's own stdout, so that nothing else may be written there. */
  isStdout?(place: string): boolean;
  /** True for a target whose data may lie elsewhere than its place. */
  readonly hasData?: boolean;
  /** True for a target that can publish a copy for readers. */
  readonly publishes?: boolean;
  /** Opens a place for loading; creates it if there is none. */
  open(place: string, options: OpenOptions): Promise<Sink | StreamSink>;
}

/** A target that stores what it loaded: its places can be gone on with, looked after, and searched for people. */
export interface StatefulTarget extends Target {
  /** What one place is, for help: `a DuckDB file`. */
  readonly noun: string;
  readonly summaries: { readonly sync: string; readonly compact: string };
  open(place: string, options: OpenOptions): Promise<Sink>;
  upkeep(): Promise<Upkeep>;
  people(): Promise<People>;
}

/** What is done with a place that was loaded. */
export interface Upkeep {
  /** What is stored beside the rows, of which none is read; undefined if nothing was loaded yet. Read-only. */
  readState(place: string, options: PlaceOptions): Promise<TableState | undefined>;
  /** Compares the data with its receipts; read-only. */
  verify(place: string, options: PlaceOptions): Promise<Difference[]>;
  /** Rewrites the data: fewer, larger files, and no space for removed rows. */
  compact(place: string, options: PlaceOptions): Promise<Rewritten>;
  /** What the page of `report` shows of a place; read-only. */
  report(place: string, options: PlaceOptions): Promise<TargetReport>;
}

/** The people of a place, and their removal (S37). */
export interface People {
  /**
   * The people as they are now: a forecast, since they are looked up anew when they are removed. Read-only, but that a change
   * which a dead writer left half-way may be finished first.
   */
  find(place: string, query: PeopleQuery, options: PlaceOptions): Promise<PeopleFound>;
  /** The rows that a purge would remove, as JSON objects without the columns that are null, with their table; read-only. */
  rows(place: string, query: PeopleQuery, options: PlaceOptions): AsyncIterable<PersonRow>;
  /**
   * Does everything that a purge of these people does except putting the result in place, so that a purge that cannot
   * succeed is noticed before anything is deleted.
   */
  tryPurge(place: string, query: PeopleQuery, options: PlaceOptions): Promise<PurgeTrial>;
  /**
   * Takes the place's lock, looks the people up anew, calls `onFound`, and removes all their rows in one commit, so that no
   * byte of them remains in the place: a kill leaves all of them or none, and the same purge again finishes the rest. If
   * `onFound` throws, nothing is removed.
   */
  purge(place: string, query: PeopleQuery, options: PurgeOptions): Promise<Purged>;
}

/** Options of operations on a place other than loading. */
export interface PlaceOptions {
  /** How long to wait for the lock of a place. */
  readonly lockWaitMs: number;
  /** As DuckDB writes it (`2GB`); undefined: half of what the machine or container allows. */
  readonly memoryLimit?: string | undefined;
  readonly spoolDir: string;
  readonly env: Env;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly signal?: AbortSignal | undefined;
}

/** Options of `open`; each target uses those that apply to it. */
interface OpenOptions extends PlaceOptions, Rules {
  /** Tables to write in addition to `events`. */
  readonly tables: readonly TableName[];
  /** How long files removed from a table are kept for its readers. */
  readonly retentionMs: number;
  /** Where the data go, for a target that `hasData`. */
  readonly data?: string | undefined;
  /** Where a copy for readers will be published, for a target that `publishes`. */
  readonly publish?: string | undefined;
  /** For the place that `isStdout`. */
  readonly stdout: Writable;
  readonly signal: AbortSignal;
}

/** Who is looked for (S37): by a column or by a mapping, never by both. */
export interface PeopleQuery {
  /** External ids, each once, none of them a placeholder. */
  readonly ids: readonly string[];
  /** The column, by its name in the export, that holds such ids. */
  readonly column?: string | undefined;
  /** The unified ids of each id. */
  readonly mapping?: ReadonlyMap<string, readonly string[]> | undefined;
  /** Key of the columns that are hashed in the place (S47); also tells that a hash and a plain value are one person. */
  readonly hashKey?: HashKey | undefined;
}

/** A `df_unified_id` as rows of a place hold it. */
export interface UnifiedId {
  readonly text: string;
  /** Check value of the key that it is a hash under; undefined for a plain one. */
  readonly hashKey: string | undefined;
}

export interface PeopleFound {
  /** Every form that the rows hold; no placeholder is among them. */
  readonly unifiedIds: readonly UnifiedId[];
  /** Their number, each person once whatever the forms. */
  readonly people: number;
  /** Of the ids asked for, those that have a row. */
  readonly ids: readonly string[];
  /** Of these, those in rows that name no unified id. */
  readonly idsWithoutUnifiedId: readonly string[];
  /** Rows of `events` that a purge removes. */
  readonly rows: number;
  /** People whose rows also carry other ids in the column (S55). */
  readonly shared: number;
  /** Of the service whose data the place holds: its hash, as the state has it; undefined where that does not say. */
  readonly service: string | undefined;
  /** Sentences about rows that were out of reach. */
  readonly warnings: readonly string[];
}

export interface PurgeTrial {
  readonly found: PeopleFound;
  /** Tables in the place that are not ours: they stay, and may name the people. */
  readonly foreignTables: readonly string[];
  /** Of a place that is a plain copy: the copies for readers of what it was copied from, which it cannot replace (S52). */
  readonly copiesOfOriginal?: readonly string[];
}

interface PurgeOptions extends PlaceOptions {
  /** Under the lock, before anything is changed. */
  readonly onFound: (found: PeopleFound) => Promise<void>;
  /** Copies for readers that the place is to forget (S52). */
  readonly forgetCopies?: readonly string[] | undefined;
}

export interface Purged extends Rewritten {
  readonly found: PeopleFound;
  /** Sentences about what still holds the people, such as copies for readers; with any, the purge is not done. */
  readonly unreached: readonly string[];
}

export interface PersonRow {
  readonly table: string;
  /** A JSON object. */
  readonly row: string;
}

/** The result of rewriting a place. */
export interface Rewritten {
  /** Rows of `events` after the rewrite. */
  readonly rows: number;
  readonly rowsRemoved: number;
  /** The files with rows of `events` that others took the place of. */
  readonly files: readonly string[];
  readonly bytesBefore: number;
  readonly bytesAfter: number;
}

/** Number of event names that a report counts individually; the rest are counted together. */
export const REPORTED_NAMES = 8;

/** Events of one day; `name`: none for those that are not among the most frequent. */
export interface ReportedEvents {
  readonly day: Day;
  readonly name: string | null;
  readonly events: number;
}

export interface ReportedColumn extends Pick<StoredColumn, 'name' | 'source' | 'group' | 'type'> {
  /** Rows with a value. */
  readonly filled: number;
  /** Cells in `_rescued`. */
  readonly rescued: number;
}

/** What the report page of a target shows: names, counts and dates, but no values of people. */
export interface TargetReport {
  readonly state: TableState;
  readonly rows: number;
  readonly sizeBytes: number;
  /** Newest `df_server_datetime`. */
  readonly lastEventAt: string | null;
  readonly events: readonly ReportedEvents[];
  /** Events by hour of the day, 24 numbers; of the time at which they occurred. */
  readonly hours: readonly number[];
  readonly columns: readonly ReportedColumn[];
  /** The latest ones, oldest first. */
  readonly runs: readonly RunRecord[];
}
