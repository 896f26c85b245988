// This folder: the targets `parquet` and `delta`: a table `events` of one Parquet file a day, over a storage. A format
// adds how a place is opened, and a log. The log says which files are live, and makes a change visible. `files-place.ts`
// is an open place; `files-sink.ts`, `people-in-files.ts` and `maintenance.ts` work with it, for both formats.

import type { Day } from '../../base/days.ts';
import { configError, UserError } from '../../base/errors.ts';
import type { DescribedColumn } from '../../engine/conversions.ts';
import type { Engine } from '../../engine/session/engine.ts';
import type { Storage } from '../../storage/storage.ts';
import type { Difference } from '../../table/differences.ts';
import type { PlaceState, RunRecord, StoredProfiles, TableState } from '../../table/place-state.ts';
import { damagedWarning } from '../../table/place-warnings.ts';
import type { Table } from '../../table/tables.ts';
import type { OpenOptions } from '../contract.ts';
import type { PlaceOptions } from '../place-options.ts';
import type { WrittenFile } from './parquet-file.ts';

/** What a Parquet folder holds, beside its files; from the root of the storage. A Delta table has a log. */
export const STATE_FILE = '_dfinery.json';

/** The file with all rows of a day, or of the profiles. */
export interface DayFile {
  /** Of the profiles: the day of their receipt. */
  readonly day: Day;
  /** Path from the root of the storage, with `/`. */
  readonly path: string;
  readonly rows: number;
  readonly bytes: number;
  /** SHA-256 of the whole file (hex). */
  readonly sha256: string;
  /** Names of the columns in the file; other columns are NULL in all of its rows. */
  readonly columns: ReadonlySet<string>;
}

/** A file that is completely written, and not part of the table yet. */
export type NewFile = DayFile & Pick<WrittenFile, 'local' | 'writtenAt' | 'statistics'>;

export const newFileOf = (written: WrittenFile, day: Day, path: string): NewFile => ({
  ...written,
  day,
  path,
  columns: new Set(written.statistics.keys()),
});

/** The size of all live files. */
export const bytesIn = ({ files, profiles }: PlaceVersion): number =>
  [...files.values()].reduce((sum, { bytes }) => sum + bytes, profiles?.bytes ?? 0);

/** A place at one moment. */
export interface PlaceVersion {
  readonly state: PlaceState;
  /** The live files of `events`. */
  readonly files: ReadonlyMap<Day, DayFile>;
  /** The file of `state.profiles`; undefined if that has no row. */
  readonly profiles?: DayFile | undefined;
  /** Days whose file is damaged, or older than their receipt, with what is known of the right one. The file stays. */
  readonly damagedDays: ReadonlyMap<Day, DayFile | undefined>;
  /** What the table of profiles held, if its file is damaged or older than that. The state then has no profiles. */
  readonly damagedProfiles?: { readonly stored: StoredProfiles; readonly file: DayFile | undefined } | undefined;
  /** Days whose file a killed run left with other columns than the newest: the next run writes it anew. */
  readonly unfinishedDays: ReadonlySet<Day>;
  /** True if the log names files that somebody removed: readers fail until a commit takes them out. */
  readonly hasMissingFiles?: boolean;
}

/** A sentence about each table with damaged files; none if all are whole. */
export function damageIn({ damagedDays, damagedProfiles }: PlaceVersion): string[] {
  const ofProfiles =
    'the file of user_profiles is damaged, or older than its receipt, and stays as it is. Replace it: sync with ' +
    'user_profiles set to true.';
  return [
    ...(damagedDays.size === 0 ? [] : [damagedWarning([...damagedDays.keys()])]),
    ...(damagedProfiles === undefined ? [] : [ofProfiles]),
  ];
}

/** The days whose stored files leave a table, and the new files. A day without a new file has no rows any more. */
export interface ReplacedFiles {
  readonly removed: readonly Day[];
  /** In the order in which a reader that globs may see them: first files that only lose rows. */
  readonly added: readonly NewFile[];
}

/** A change of a place, and the state after it; a table that is absent stays. */
export interface Change {
  readonly kind: 'load' | 'purge' | 'prune';
  readonly state: PlaceState;
  readonly events?: ReplacedFiles;
  /** `state.profiles` is what the table then holds. */
  readonly profiles?: ReplacedFiles | undefined;
}

/** What is to become of a place, nothing if there is no change; and what its commit then reports. */
export interface PlannedChange<T> {
  readonly change: Change | undefined;
  readonly report: T;
}

/** Which files are live, and how a change becomes visible. All methods throw UserError. */
export interface FilesLog {
  /** The version that was read or committed last; undefined before the first commit. */
  readonly version: PlaceVersion | undefined;
  /**
   * Reads the latest version; false if it is the one that was known. Unless the place is only read, it first finishes
   * what a killed run left half-way. For a load of profiles it throws a configuration failure if others' files lie
   * where their table would.
   */
  read(): Promise<boolean>;
  /** True if a file of `version` was replaced under its name. Then what was read may be of two versions. */
  hasReplacedFiles(): boolean;
  /**
   * Reads the latest version, has a change of it planned, and makes that visible, together with the state. Once it
   * returns, no crash undoes it. If another writer commits to a table first, it throws LostRace. Then it removes the
   * files of that table; a change of the table before it stays.
   */
  commit<T>(plan: () => Promise<PlannedChange<T>>): Promise<T>;
  /** Called after the commit of a purge: removes every byte that is no longer part of the tables. */
  erase(): Promise<void>;
  /** Called at the end of a load: removes what no reader needs any more, and names what is damaged. */
  tidy(): Promise<void>;
  /** Stores how a run ended, if something was loaded before. */
  recordRun(run: RunRecord): Promise<void>;
  /** Files among those of the tables that this program did not write: they stay. */
  foreign(): Promise<string[]>;
  /** Differences in the log itself. */
  check(): Promise<Difference[]>;
}

/** One kind of place with Parquet files. */
export interface FilesFormat {
  /** True if all files have all columns, in the same order; else a file lacks columns without a value. */
  readonly isUniform: boolean;
  storageOf(options: FilesOptions): Promise<Storage>;
  /** True if the place may have been loaded. */
  isLoaded(storage: Storage): Promise<boolean>;
  /** Throws a configuration failure if others' files lie where those of the table would. */
  refuseForeign(storage: Storage): Promise<void>;
  logOf(parts: LogParts, options: FilesOptions, mode: OpenMode): FilesLog;
  /** All columns that a file can have, in their order, with their types. */
  columnsOf(state: Pick<TableState, 'columns' | 'timezone'>): DescribedColumn[];
  /** The path of a new file, from the root of the storage. */
  newPath(day: Day, table: Table['name']): string;
  /** Derives the name of a column from that in the export. */
  columnName(source: string): string;
}

export interface LogParts {
  readonly storage: Storage;
  readonly engine: Engine;
  /** A local folder of this run. */
  readonly runFolder: string;
}

export interface FilesOptions
  extends PlaceOptions,
    Partial<Pick<OpenOptions, 'timezone' | 'userProfiles' | 'retentionMs'>> {
  /** A folder or an address, as it was given. */
  readonly address: string;
}

/** `read` changes nothing; `rewrite` needs a place that was loaded; `load` makes one that is missing. */
export type OpenMode = 'read' | 'rewrite' | 'load';

/** Thrown by `commit` if another writer committed first. */
export class LostRace extends UserError {
  override readonly name = 'LostRace';

  /** `outcome`: what was kept of the commit. */
  constructor(address: string, outcome = 'nothing of this commit was kept') {
    super('transient', `Another run has committed to ${address} first: ${outcome}. Run again.`);
  }
}

export const foreignError = (address: string, table: Table['name'] = 'events'): UserError =>
  configError(
    `${address}/${table} holds files that this program did not write: give another place, or move them away` +
      `${table === 'events' ? '' : ', or set user_profiles to false'}.`,
    { where: { file: address } },
  );
