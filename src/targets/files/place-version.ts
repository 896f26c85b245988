import { type Day, formatDays } from '../../base/days.ts';
import type { PlaceState } from '../../table/place-state.ts';
import { syncAdvice } from '../../table/place-warnings.ts';
import { EVENTS, type TableName } from '../../table/tables.ts';
import type { FileColumns } from './file-layout.ts';

// What a place holds: its state and the files of its tables. A change of it has new files, and the state after them.

/** A file of a table: all rows of a day, or of the profiles. */
export interface TableFile {
  readonly tableName: TableName;
  /** Of the profiles: the day of their receipt. */
  readonly day: Day;
  /** Path from the root of the storage, with `/`. */
  readonly path: string;
  readonly bytes: number;
  /** SHA-256 of the whole file (hex). */
  readonly sha256: string;
  /** The columns in the file; other columns are NULL in all of its rows. */
  readonly columns: FileColumns;
}

/** A file that is completely written on this machine, and not part of the table yet. */
export interface NewFile extends TableFile {
  readonly localPath: string;
  readonly rows: number;
}

/** A file that is damaged, or not as the state of the place has it. */
export type DamagedFile = Pick<TableFile, 'tableName' | 'day' | 'path'>;

export interface PlaceVersion {
  /** False before the first commit. */
  readonly isLoaded: boolean;
  readonly state: PlaceState;
  /** The live files. Profiles have one, or none if they have no row. */
  readonly files: readonly TableFile[];
  /** They stay until their day or table is loaded again. Delta has none: there a damaged file fails what needs it. */
  readonly damagedFiles: readonly DamagedFile[];
  /** Days whose file somebody removed; the state has them as pruned. */
  readonly removedDays: readonly Day[];
}

/** A sentence about each table with damaged files. */
export function damageWarnings({ damagedFiles }: PlaceVersion): string[] {
  const days = damagedFiles.filter(({ tableName }) => tableName === EVENTS.name).map(({ day }) => day);
  const warnings: string[] = [];
  if (days.length > 0)
    warnings.push(
      `the files of ${formatDays(days)} are damaged, or do not match _dfinery.json, and stay as they are. ` +
        `Put the right copy back, or replace them: ${syncAdvice(days)}, or load each day from a file.`,
    );
  if (damagedFiles.length > days.length)
    warnings.push(
      'the file of user_profiles is damaged, or older than its receipt, and stays as it is. Replace it: sync with ' +
        'user_profiles set to true.',
    );
  return warnings;
}

export const bytesIn = ({ files }: PlaceVersion): number => files.reduce((sum, { bytes }) => sum + bytes, 0);

/** A change of the file of a day, or of the profiles. */
export interface FileChange {
  readonly tableName: TableName;
  readonly day: Day;
  /** It replaces the file that is there; undefined if no row is left. */
  readonly newFile: NewFile | undefined;
}

export const newFilesIn = (fileChanges: readonly FileChange[]): NewFile[] =>
  fileChanges.flatMap(({ newFile }) => newFile ?? []);

/** A change of a place, and the state after it. */
export interface PlaceChange {
  readonly kind: 'load' | 'purge' | 'prune';
  readonly state: PlaceState;
  /** In the order in which a reader that globs may see them: first files that only lose rows. */
  readonly fileChanges: readonly FileChange[];
}

/** A change of a place whose files are written, undefined if nothing is to change, and the result of its commit. */
export interface PreparedChange<T> {
  readonly change: PlaceChange | undefined;
  readonly result: T;
}
