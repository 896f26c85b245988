import validFolder from '../../../../schemas/files-state.validator';
import { type Day, isDay } from '../../../base/days.ts';
import { VERSION } from '../../../base/version.ts';
import { OWN_FOLDER } from '../../../storage/storage.ts';
import {
  type PlaceState,
  type RunRecord,
  type TableJson,
  tableFromJson,
  tableToJson,
} from '../../../table/place-state.ts';
import { type ByTable, EVENTS, type Table, USER_PROFILES } from '../../../table/tables.ts';
import { dayFolder, type FileColumns, type FileLayout, fileColumns, hasCurrentColumns } from '../file-layout.ts';
import type { TableFile } from '../place-version.ts';
import { checkVersion, parseJson, requireValid } from '../stored-state.ts';

// The paths of a folder, from its root. They never change.
/** The state of the folder, and what it knows of its files. */
export const STATE_FILE = '_dfinery.json';
export const LOCK_FILE = `${OWN_FOLDER}/lock`;
export const DATA_FILE = 'data.parquet';
export const PROFILES_FILE = `user_profiles/${DATA_FILE}`;
export const filePath = (day: Day, table: Table['name']): string =>
  table === USER_PROFILES.name ? PROFILES_FILE : `${dayFolder(day)}/${DATA_FILE}`;
/** The day whose file has a path; undefined for any other path. */
export function dayOfPath(path: string): Day | undefined {
  const day = path.slice(path.indexOf('=') + 1, path.lastIndexOf('/'));
  return isDay(day) && path === filePath(day, EVENTS.name) ? day : undefined;
}

export const FOLDER_LAYOUT: FileLayout = {
  hasAllColumns: true,
  newPath: filePath,
  columnName: (source) => source,
  loadedAtType: () => 'TIMESTAMP',
};

const FORMAT_VERSION = 1;

export interface FolderFile extends TableFile {
  /** Time of its last change on the disk (ms since 1970). With the size, it tells if a file was replaced. */
  readonly modified: number;
  /** Instant (ISO, UTC) at which this program wrote it, as its own metadata have it. */
  readonly writtenAt: string;
}

/** A file as the state file lists it. */
export interface ListedFile extends Omit<FolderFile, 'columns'> {
  /** Those of its table; undefined if it has others, which must be read from the file. */
  readonly columns: FileColumns | undefined;
}

/** `_dfinery.json`, and what it says. */
export interface StateFile {
  readonly text: string;
  readonly state: PlaceState;
  readonly fileByPath: ReadonlyMap<string, ListedFile>;
}

interface FileJson extends Omit<FolderFile, 'path' | 'columns' | 'writtenAt'> {
  readonly written_at: string;
  readonly other_columns?: true | undefined;
}

interface FolderJson {
  readonly v: number;
  readonly writer: string;
  readonly suppression_length?: number | undefined;
  readonly last_run?: RunRecord | undefined;
  readonly events: TableJson;
  readonly user_profiles?: TableJson | undefined;
  readonly files: readonly FileJson[];
}

const columnsOfTables = ({ events, user_profiles: profiles }: PlaceState): ByTable<FileColumns> => ({
  events: fileColumns(FOLDER_LAYOUT, events),
  user_profiles: profiles === undefined ? new Map() : fileColumns(FOLDER_LAYOUT, profiles),
});

/** The state file of a folder with this state and these files. */
export function makeStateFile(state: PlaceState, folderFiles: readonly ListedFile[]): StateFile {
  const tableColumns = columnsOfTables(state);
  const files = folderFiles.map(({ columns, ...file }): ListedFile => {
    const isCurrent = columns !== undefined && hasCurrentColumns(FOLDER_LAYOUT, columns, tableColumns[file.table]);
    return { ...file, columns: isCurrent ? columns : undefined };
  });
  const json: FolderJson = {
    v: FORMAT_VERSION,
    writer: VERSION,
    suppression_length: state.suppressionLength,
    last_run: state.lastRun,
    events: tableToJson(state.events),
    user_profiles: state.user_profiles && tableToJson(state.user_profiles),
    files: files
      .sort((a, b) => (a.path < b.path ? -1 : 1))
      .map(({ table, day, rows, bytes, modified, sha256, writtenAt, columns }) => {
        const other_columns = columns === undefined ? true : undefined;
        return { table, day, rows, bytes, modified, sha256, written_at: writtenAt, other_columns };
      }),
  };
  return { text: `${JSON.stringify(json)}\n`, state, fileByPath: byPath(files) };
}

/** Throws a configuration failure for a text that this program cannot have written. */
export function parseStateFile(text: string, where: string): StateFile {
  const value = parseJson(text, where);
  checkVersion(value, FORMAT_VERSION, where);
  const json = requireValid<FolderJson>(validFolder, value, where);
  const state: PlaceState = {
    events: tableFromJson(json.events),
    user_profiles: json.user_profiles && tableFromJson(json.user_profiles),
    lastRun: json.last_run,
    suppressionLength: json.suppression_length,
  };
  const tableColumns = columnsOfTables(state);
  const files = json.files.map(({ written_at: writtenAt, other_columns: hasOthers, ...file }): ListedFile => {
    const columns = hasOthers ? undefined : tableColumns[file.table];
    return { ...file, path: filePath(file.day, file.table), columns, writtenAt };
  });
  return { text, state, fileByPath: byPath(files) };
}

const byPath = (files: readonly ListedFile[]) => new Map(files.map((file) => [file.path, file]));
