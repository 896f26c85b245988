import { type Day, isDay } from '../../../../base/days.ts';
import { looksTemporary } from '../../../../fs/atomic-file.ts';
import { EVENTS, type TableName, USER_PROFILES } from '../../../../table/tables.ts';
import { PARTITION_COLUMN } from '../../file-layout.ts';

const VERSION_DIGITS = 20;
const LOG_FILE = /\/_delta_log\/(\d{20})\.(json|checkpoint\.parquet)$/;
// The paths of this program's data files: the log needs no encoding of them. Profiles have no partition.
const DAY_FILE = new RegExp(`^${EVENTS.name}/${PARTITION_COLUMN}=(\\d{4}-\\d{2}-\\d{2})/part-[0-9a-f-]{36}\\.parquet$`);
const PROFILES_FILE = new RegExp(`^${USER_PROFILES.name}/part-[0-9a-f-]{36}\\.parquet$`);

export const logFolder = (tableName: TableName): string => `${tableName}/_delta_log`;
export const lastCheckpointPath = (tableName: TableName): string => `${logFolder(tableName)}/_last_checkpoint`;

/** How the paths of a version begin. A listing after it has every file of the log of this version or a later one. */
export const versionStem = (tableName: TableName, logVersion: number): string =>
  `${logFolder(tableName)}/${String(logVersion).padStart(VERSION_DIGITS, '0')}`;
export const entryPath = (tableName: TableName, logVersion: number): string =>
  `${versionStem(tableName, logVersion)}.json`;
export const checkpointPath = (tableName: TableName, logVersion: number): string =>
  `${versionStem(tableName, logVersion)}.checkpoint.parquet`;

/** The kind of a file of the log, and the version that it makes; undefined for any other file. */
export function logFileOf(path: string): { readonly isEntry: boolean; readonly logVersion: number } | undefined {
  const match = LOG_FILE.exec(path);
  return match === null ? undefined : { isEntry: match[2] === 'json', logVersion: Number(match[1]) };
}

/** True for the path of a data file of this program. */
export const isDataFile = (path: string): boolean => dayOfPath(path) !== undefined || PROFILES_FILE.test(path);

/** True for a data file of this program, and for any temporary file: its name does not tell who wrote it. */
export const mayBeOwnFile = (path: string): boolean => isDataFile(path) || looksTemporary(path);

/** The day of a data file of events, by its path; undefined for any other path. */
export function dayOfPath(path: string): Day | undefined {
  const day = DAY_FILE.exec(path)?.[1];
  return day !== undefined && isDay(day) ? day : undefined;
}
