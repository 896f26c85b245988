import type { Writable } from 'node:stream';
import type { Clock } from '../base/clock.ts';
import type { Env } from '../base/env.ts';
import type { Logger } from '../base/log.ts';
import type { SchemaMode } from '../config/source.ts';
import type { HashedColumns } from '../extract/hashed-columns.ts';
import type { ColumnType } from '../types/type.ts';
import type { Difference } from './differences.ts';
import type { Loader } from './load.ts';
import type { Memory } from './memory.ts';
import type { TargetReport } from './report.ts';

// Where windows end up, as the command line sees it. Every target has one descriptor, listed in targets.ts: `sync`,
// `verify`, `compact`, `plan` and `forget --purge` loop over that list and know no target by its name.

/** A kind of place that the export can be loaded into. Whatever it does throws Failure when it cannot. */
export interface Target {
  /** The word after `sync`, `verify` and the others. */
  readonly name: string;
  /** What its places are. */
  readonly place: {
    /** As usage and messages write it: `file` gives `<file>` and FILE. */
    readonly name: 'file' | 'dir' | 'url';
    readonly describe: string;
  };
  /** What a command does here, for help; a command that has no summary does not know the target. */
  readonly summaries: {
    readonly sync: string;
    readonly verify?: string;
    readonly compact?: string;
    readonly report?: string;
  };
  /** True for a place that is the program's own stdout, so that nothing else may be written there. */
  isStdout?(place: string): boolean;
  /** True for a target that can publish a copy for readers. */
  readonly publishes?: boolean;
  /** Opens a place for windows, making it where there is none. */
  open(place: string, options: OpenOptions): Promise<Loader>;
  /** What a place remembers of earlier runs; reads only, and gives `NO_MEMORY` where nothing was loaded yet. */
  recall?(place: string, options: PlaceOptions): Promise<Memory>;
  /** Compares the data with its receipts; reads only. */
  verify?(place: string, options: PlaceOptions): Promise<Difference[]>;
  /** Writes the data anew: fewer, larger files, and no space of rows that are gone. */
  compact?(place: string, options: PlaceOptions): Promise<Rewritten>;
  /** What the page of `report` shows of a place; reads only. */
  report?(place: string, options: PlaceOptions): Promise<TargetReport>;
  /** The `df_unified_id`s of the rows whose column, by its name in the export, holds one of these texts. */
  people?(place: string, column: string, textsIn: TextsIn, options: PlaceOptions): Promise<Match>;
  /**
   * Does all that purges of these rows do but for putting the result in place, so that what they need is tried before
   * anything is deleted anywhere. Gives the names of tables that a purge leaves as they are. Throws Failure.
   */
  tryPurge?(place: string, leaveOuts: readonly LeaveOut[], options: PlaceOptions): Promise<readonly string[]>;
  /** Removes rows so that no byte of them remains. */
  purge?(place: string, leaveOut: LeaveOut, options: PlaceOptions): Promise<Rewritten>;
}

/** A target that can forget people. */
export type PurgeTarget = Target & Required<Pick<Target, 'people' | 'purge'>>;

/** What work on a place needs that is not a load. */
export interface PlaceOptions {
  /** How long to wait for a place in use. */
  readonly lockWaitMs: number;
  /** As DuckDB writes it (`2GB`); undefined: half of what the machine or container allows. */
  readonly memoryLimit?: string | undefined;
  readonly spoolDir: string;
  readonly env: Env;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly signal?: AbortSignal | undefined;
}

/** How cells become values, and what a target may use while it loads. */
export interface TargetOptions {
  /** Zone of datetimes without one; a target that stays is bound to the one of its first load. */
  readonly timezone: string | undefined;
  /** By source name; beats what the data says. */
  readonly columnTypes: ReadonlyMap<string, ColumnType>;
  readonly schemaMode: SchemaMode;
  /** Types of a pinned schema, by source name. */
  readonly pinned?: ReadonlyMap<string, ColumnType> | undefined;
  /** As DuckDB writes it (`2GB`); undefined: half of what the machine or container allows. */
  readonly memoryLimit: string | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly signal?: AbortSignal | undefined;
}

/** What `open` is told; a target takes what concerns it. */
export interface OpenOptions extends TargetOptions {
  readonly lockWaitMs: number;
  /** Tables wanted beside `events`. */
  readonly tables: readonly TableName[];
  readonly spoolDir: string;
  /** How long files that left a table stay for its readers. */
  readonly retentionMs: number;
  readonly env: Env;
  /** Where a copy for readers will be published, for a target that `publishes`. */
  readonly publish?: string | undefined;
  /** For the place that `isStdout`. */
  readonly stdout: Writable;
  readonly signal: AbortSignal;
}

/** The tables of the contract. */
export const TABLES = ['events', 'event_items', 'event_logs'] as const;
export type TableName = (typeof TABLES)[number];

export function isTableName(text: unknown): text is TableName {
  return typeof text === 'string' && (TABLES as readonly string[]).includes(text);
}

/** People found by texts of a column. */
export interface Match {
  /** Their `df_unified_id`s, as the rows hold them. */
  readonly people: readonly string[];
  /** Of the texts, those that the column holds. */
  readonly found: readonly string[];
}

/** The texts to look for in a place that holds these hashes (S47). May throw a Failure. */
export type TextsIn = (hashed: readonly HashedColumns[]) => readonly string[];

/** Rows to leave behind: those whose column, by its name in the export, holds one of these texts. */
export interface LeaveOut {
  readonly column: string;
  readonly values: readonly string[];
}

/** What writing a place anew did. */
export interface Rewritten {
  /** Rows of `events` that are there now. */
  readonly rows: number;
  readonly rowsLeftOut: number;
  readonly bytesBefore: number;
  readonly bytesAfter: number;
}
