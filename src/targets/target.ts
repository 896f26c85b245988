// This folder: where windows are loaded into. Each target is a folder with a descriptor, listed in targets.ts, over
// which the commands loop; `sql/` (DuckDB), `files/` (tables of Parquet files) and `storage/` (disk, bucket) are
// shared, and `records/` writes Airbyte records. The interfaces here are what a target is asked for, docs/targets.md is
// how they are used together. All methods throw UserError.

import type { Writable } from 'node:stream';
import type { TableName } from '../table/columns.ts';
import type { Rules } from '../table/plan.ts';
import type { Maintenance } from './maintenance.ts';
import type { People } from './people.ts';
import type { PlaceOptions } from './place-options.ts';
import type { Sink, StreamSink } from './sink.ts';

/** The descriptor of a target, which every command line loads, and the way to open a place of it for loading. */
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
  /**
   * Paths that a folder of its tables has once it was loaded, and no folder of another program: nothing else is then
   * loaded into the folders of these tables. None if no folder is only for its tables, as that of a server.
   */
  readonly markers?: readonly string[];
  /** The options of `sync` that this target has and not every other, with what help says of each. */
  readonly options?: Readonly<Partial<Record<keyof TargetOptions, string>>>;
  /**
   * Opens a place for loading, before the first request of a run; creates it if there is none. What a dead run left is
   * finished or removed first. Throws a configuration failure for a place of another program and for a configured time
   * zone that is not the stored one (`otherTimezone`), a transient one for a place that another writer keeps locked.
   */
  open(place: string, options: OpenOptions): Promise<Sink | StreamSink>;
}

/**
 * A target that stores its loads: its places can be continued, maintained, and searched for people. `maintenance` and
 * `people` load the code that does it.
 */
export interface StatefulTarget extends Target {
  /** What a place is, in help: `a DuckDB file`, `Delta tables`. */
  readonly label: string;
  readonly summaries: { readonly sync: string; readonly compact: string };
  open(place: string, options: OpenOptions): Promise<Sink>;
  maintenance(): Promise<Maintenance>;
  people(): Promise<People>;
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
