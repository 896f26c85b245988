// This folder: where windows are loaded into. Each target is a folder with a descriptor, listed in targets.ts; `sql/`
// (DuckDB), `rows/` (rows as bytes) and `workers/` (threads) are shared, and `records/` writes Airbyte records.

import type { Writable } from 'node:stream';
import type { Clock } from '../base/clock.ts';
import type { Env } from '../base/env.ts';
import type { Logger } from '../base/log.ts';
import type { SchemaMode } from '../config/source.ts';
import type { HashedColumns } from '../extract/hashed-columns.ts';
import type { PriorLoads } from '../extract/prior-loads.ts';
import type { TableName } from '../table/columns.ts';
import type { Difference } from '../table/differences.ts';
import type { ColumnType } from '../types/type.ts';
import type { Loader } from './load.ts';
import type { TargetReport } from './report.ts';

// A target is a kind of place that windows are loaded into. Each has one descriptor, listed in targets.ts: `sync`,
// `verify`, `compact`, `plan` and `forget --purge` loop over that list and do not depend on single targets.

/** The descriptor of a target. All methods throw Failure. */
export interface Target {
  /** The word after `sync`, `verify` and the others. */
  readonly name: string;
  /** How a place of this target is given. */
  readonly place: {
    /** As usage and messages write it: `file` gives `<file>` and FILE. */
    readonly name: 'file' | 'dir' | 'url';
    readonly describe: string;
  };
  /** What each command does with this target, for help; a command without a summary does not support the target. */
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
  /** Opens a place for loading; creates it if there is none. */
  open(place: string, options: OpenOptions): Promise<Loader>;
  /** What a place has stored about earlier runs, `NO_PRIOR_LOADS` if nothing was loaded yet; read-only. */
  readPriorLoads?(place: string, options: PlaceOptions): Promise<PriorLoads>;
  /** Compares the data with its receipts; read-only. */
  verify?(place: string, options: PlaceOptions): Promise<Difference[]>;
  /** Rewrites the data: fewer, larger files, and no space for removed rows. */
  compact?(place: string, options: PlaceOptions): Promise<Rewritten>;
  /** What the page of `report` shows of a place; read-only. */
  report?(place: string, options: PlaceOptions): Promise<TargetReport>;
  /** The `df_unified_id`s of the rows whose column, by its name in the export, holds one of these texts. */
  people?(place: string, column: string, textsIn: TextsIn, options: PlaceOptions): Promise<Match>;
  /**
   * Does everything that purges of these rows do except putting the result in place, so that a purge that cannot succeed is
   * noticed before anything is deleted. Returns the names of tables that a purge does not touch.
   */
  checkPurge?(place: string, removals: readonly Removal[], options: PlaceOptions): Promise<readonly string[]>;
  /** Removes rows so that no byte of them remains in the place. */
  purge?(place: string, removal: Removal, options: PlaceOptions): Promise<Rewritten>;
}

/** A target that supports `forget --purge`. */
export type PurgeTarget = Target & Required<Pick<Target, 'people' | 'purge'>>;

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

/** Options that all targets need for loading. */
export interface TargetOptions {
  /** Zone of datetimes without one; fixed by the first load of a target. */
  readonly timezone: string | undefined;
  /** By source name; takes precedence over inferred types. */
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

/** Options of `open`; each target uses those that apply to it. */
export interface OpenOptions extends TargetOptions {
  readonly lockWaitMs: number;
  /** Tables to write in addition to `events`. */
  readonly tables: readonly TableName[];
  readonly spoolDir: string;
  /** How long files removed from a table are kept for its readers. */
  readonly retentionMs: number;
  readonly env: Env;
  /** Where a copy for readers will be published, for a target that `publishes`. */
  readonly publish?: string | undefined;
  /** For the place that `isStdout`. */
  readonly stdout: Writable;
  readonly signal: AbortSignal;
}

/** People found by texts of a column. */
export interface Match {
  /** Their `df_unified_id`s, as the rows hold them. */
  readonly people: readonly string[];
  /** Of the texts, those that the column holds. */
  readonly found: readonly string[];
  /** Of these, those in rows without a `df_unified_id`. */
  readonly foundWithoutId: readonly string[];
}

/** The texts to look for in a place that holds these hashes (S47). May throw a Failure. */
export type TextsIn = (hashed: readonly HashedColumns[]) => readonly string[];

/** Rows to remove: those whose column, by its name in the export, holds one of these texts. */
export interface Removal {
  readonly column: string;
  readonly values: readonly string[];
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
