import { lstatSync } from 'node:fs';
import validFolder from '../../../../schemas/files-state.validator';
import { type Day, isDay } from '../../../base/days.ts';
import { VERSION } from '../../../base/version.ts';
import type { DiskStorage } from '../../../storage/disk.ts';
import { OWN_FOLDER } from '../../../storage/storage.ts';
import {
  type PlaceState,
  type RunRecord,
  type TableJson,
  type TableState,
  tableFromJson,
  tableToJson,
} from '../../../table/place-state.ts';
import { type ByTable, EVENTS, type TableName, USER_PROFILES } from '../../../table/tables.ts';
import { dayFolder, type FileColumns, type FileLayout, hasCurrentColumns, tableColumnsOf } from '../file-layout.ts';
import type { OpenPlace } from '../format.ts';
import type { PlaceVersion, TableFile } from '../place-version.ts';
import { checkVersion, parseJson, requireValid } from '../stored-state.ts';

// The paths of a folder, what is known of it, and the text of `_dfinery.json`. A file there is one of these:
//
//   FolderFile     on the disk, and part of its table
//   DamagedFile    on the disk, and no part of it
//   ListedFile     as `_dfinery.json` has it, whether or not it is on the disk

/** The state of the folder, and what it knows of its files. */
export const STATE_FILE = '_dfinery.json';
export const LOCK_FILE = `${OWN_FOLDER}/lock`;
export const DATA_FILE = 'data.parquet';
export const PROFILES_FILE = `user_profiles/${DATA_FILE}`;
export const filePath = (day: Day, tableName: TableName): string =>
  tableName === USER_PROFILES.name ? PROFILES_FILE : `${dayFolder(day)}/${DATA_FILE}`;

/** The day whose file has a path; undefined for any other path. */
export function dayOfPath(path: string): Day | undefined {
  const day = /=(.+)\//.exec(path)?.[1] ?? '';
  return isDay(day) && path === filePath(day, EVENTS.name) ? day : undefined;
}

export type FolderPlace = OpenPlace<DiskStorage>;

export const FOLDER_LAYOUT: FileLayout = {
  hasAllColumns: true,
  newStoragePath: filePath,
  loadedAtType: () => 'TIMESTAMP',
};

export interface FolderFile extends TableFile {
  /** Time of its last change on the disk (ms since 1970). With the size, it tells if a file was replaced. */
  readonly modified: number;
}

export interface ListedFile extends FolderFile {
  /** True if the file has other columns than its table had then, which stand in `columns`: only the file tells them. */
  readonly hasOtherColumns: boolean;
}

/** What `_dfinery.json` says, of files by their paths. */
export interface StateFile {
  readonly text: string;
  readonly state: PlaceState;
  readonly listedFiles: ReadonlyMap<string, ListedFile>;
}

/** A folder as it is on the disk: its state, corrected by what its files say. */
export interface FolderVersion extends PlaceVersion {
  readonly files: readonly FolderFile[];
  /** As it was read; undefined before the first commit. What it says of a damaged file is kept for the right copy. */
  readonly stateFile: StateFile | undefined;
}

/**
 * The table of profiles, also if its file is damaged or was removed; undefined if there is none, or one of another
 * program. By its receipt a copy that is put back is the right one, or is older.
 */
export const storedProfilesOf = ({ state, stateFile }: FolderVersion): TableState | undefined =>
  state.user_profiles ?? stateFile?.state.user_profiles;

/** The size and the time of a file on the disk; undefined if there is none. */
export function sizeAndTime(localPath: string): Pick<FolderFile, 'bytes' | 'modified'> | undefined {
  // An awaited call for each file would take 20 times as long.
  const stat = lstatSync(localPath, { throwIfNoEntry: false });
  return stat && { bytes: stat.size, modified: stat.mtimeMs };
}

const FORMAT_VERSION = 1;

interface FolderJson {
  readonly v: number;
  readonly writer: string;
  readonly suppression_length?: number | undefined;
  readonly last_run?: RunRecord | undefined;
  readonly events: TableJson;
  readonly user_profiles?: TableJson | undefined;
  readonly files: readonly FileJson[];
}

interface FileJson extends Pick<FolderFile, 'day' | 'bytes' | 'modified' | 'sha256'> {
  readonly table: TableName;
  readonly other_columns?: true | undefined;
}

const columnsOfTables = ({ events, user_profiles: profiles }: PlaceState): ByTable<FileColumns> => ({
  events: tableColumnsOf(FOLDER_LAYOUT, events),
  user_profiles: profiles === undefined ? new Map() : tableColumnsOf(FOLDER_LAYOUT, profiles),
});

/** Reads `_dfinery.json`; undefined before the first commit. Throws a configuration failure for a damaged one. */
export async function readStateFile(storage: DiskStorage): Promise<StateFile | undefined> {
  const text = (await storage.read(STATE_FILE))?.toString('utf8');
  if (text === undefined) return undefined;
  const subject = storage.fullPath(STATE_FILE);
  const value = parseJson(text, subject);
  checkVersion(value, FORMAT_VERSION, subject);
  const json = requireValid<FolderJson>(validFolder, value, subject);
  const state: PlaceState = {
    events: tableFromJson(json.events),
    user_profiles: json.user_profiles && tableFromJson(json.user_profiles),
    lastRun: json.last_run,
    suppressionLength: json.suppression_length,
  };
  const tableColumns = columnsOfTables(state);
  const listedFiles = json.files.map(
    ({ table: tableName, other_columns: hasOtherColumns = false, ...file }): ListedFile => {
      const path = filePath(file.day, tableName);
      return { ...file, tableName, path, columns: tableColumns[tableName], hasOtherColumns };
    },
  );
  return { text, state, listedFiles: new Map(listedFiles.map((file) => [file.path, file])) };
}

/** The text of `_dfinery.json` for a version. */
export function stateTextOf(version: FolderVersion): string {
  const { files, damagedFiles, stateFile } = version;
  const state: PlaceState = { ...version.state, user_profiles: storedProfilesOf(version) };
  const tableColumns = columnsOfTables(state);
  const hasOtherColumns = (file: FolderFile & Partial<ListedFile>) =>
    file.hasOtherColumns || !hasCurrentColumns(FOLDER_LAYOUT, file.columns, tableColumns[file.tableName]);
  const filesToList = [...files, ...damagedFiles.flatMap(({ path }) => stateFile?.listedFiles.get(path) ?? [])];
  const json: FolderJson = {
    v: FORMAT_VERSION,
    writer: VERSION,
    suppression_length: state.suppressionLength,
    last_run: state.lastRun,
    events: tableToJson(state.events),
    user_profiles: state.user_profiles && tableToJson(state.user_profiles),
    files: filesToList
      .sort((a, b) => (a.path < b.path ? -1 : 1))
      .map((file) => {
        const { tableName: table, day, bytes, modified, sha256 } = file;
        return { table, day, bytes, modified, sha256, other_columns: hasOtherColumns(file) || undefined };
      }),
  };
  return `${JSON.stringify(json)}\n`;
}
