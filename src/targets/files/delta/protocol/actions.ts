// This folder: the log of a Delta table by the protocol. It has entries, checkpoints, and the snapshot they add up to.
// All paths are from the root of the storage, but for those in actions: they are from the folder of the table.

import validAction from '../../../../../schemas/delta-log.validator';
import { type Day, isDay } from '../../../../base/days.ts';
import { isObject } from '../../../../base/json.ts';
import { firstProblem } from '../../../../base/validator.ts';
import { isTemporaryPath } from '../../../../fs/atomic-file.ts';
import { EVENTS, type Table, USER_PROFILES } from '../../../../table/tables.ts';
import { PARTITION_COLUMN } from '../../file-layout.ts';
import { damagedError, parseJson } from '../../stored-state.ts';

/** The protocol versions and features that readers and writers of a table must support. */
export interface Protocol {
  readonly minReaderVersion: number;
  readonly minWriterVersion: number;
  readonly readerFeatures?: readonly string[] | null;
  readonly writerFeatures?: readonly string[] | null;
}

export interface MetaData {
  readonly id: string;
  readonly name?: string | null;
  readonly description?: string | null;
  readonly format: { readonly provider: 'parquet'; readonly options: Readonly<Record<string, string>> };
  readonly schemaString: string;
  readonly partitionColumns: readonly string[];
  readonly createdTime?: number | null;
  readonly configuration: Readonly<Record<string, string>>;
}

export interface Add {
  /** Path from the table's folder. */
  readonly path: string;
  readonly partitionValues: Readonly<Record<string, string | null>>;
  readonly size: number;
  readonly modificationTime?: number | null;
  /** False if the rows were in the table before, in other files. */
  readonly dataChange: boolean;
  readonly stats?: string | null;
  readonly tags?: Readonly<Record<string, string | null>> | null;
}

/** A data file that is no longer part of the table; its bytes stay for readers of older versions. */
export interface Remove {
  readonly path: string;
  readonly deletionTimestamp?: number | null;
  readonly dataChange?: boolean | null;
  readonly extendedFileMetadata?: boolean | null;
  readonly partitionValues?: Readonly<Record<string, string | null>> | null;
  readonly size?: number | null;
  readonly tags?: Readonly<Record<string, string | null>> | null;
}

/** An action: one line of a log entry, or one row of a checkpoint. */
export type Action =
  | { readonly protocol: Protocol }
  | { readonly metaData: MetaData }
  | { readonly add: Add }
  | { readonly remove: Remove }
  | { readonly domainMetadata: { readonly domain: string; readonly configuration: string; readonly removed: boolean } }
  // Only written: what the history of the table shows.
  | { readonly commitInfo: Readonly<Record<string, unknown>> };

const VERSION_DIGITS = 20;
const LOG_FILE = /\/_delta_log\/(\d{20})\.(json|checkpoint\.parquet)$/;
// The data files of this program, which need no encoding. Profiles have no partition.
const DAY_FILE = new RegExp(`^${EVENTS.name}/${PARTITION_COLUMN}=(\\d{4}-\\d{2}-\\d{2})/part-[0-9a-f-]{36}\\.parquet$`);
const PROFILES_FILE = new RegExp(`^${USER_PROFILES.name}/part-[0-9a-f-]{36}\\.parquet$`);

export const logFolder = (table: Table['name']): string => `${table}/_delta_log`;
export const lastCheckpointPath = (table: Table['name']): string => `${logFolder(table)}/_last_checkpoint`;

/** A path that comes before every file of the log of this version or a later one. */
export const versionStem = (table: Table['name'], version: number): string =>
  `${logFolder(table)}/${String(version).padStart(VERSION_DIGITS, '0')}`;
export const entryPath = (table: Table['name'], version: number): string => `${versionStem(table, version)}.json`;
export const checkpointPath = (table: Table['name'], version: number): string =>
  `${versionStem(table, version)}.checkpoint.parquet`;

/** The kind and version of a file of the log; undefined for any other file. */
export function logFileOf(path: string): { readonly isEntry: boolean; readonly version: number } | undefined {
  const match = LOG_FILE.exec(path);
  return match === null ? undefined : { isEntry: match[2] === 'json', version: Number(match[1]) };
}

/** True for the path of a data file of this program. */
export const isDataFile = (path: string): boolean => dayOfFile(path) !== undefined || PROFILES_FILE.test(path);

/** True for the path of a data file of this program, or of one that was not written to its end. */
export const isOwnFile = (path: string): boolean => isDataFile(path) || isTemporaryPath(path);

/** The day of a data file of events, by its path; undefined for any other path. */
export function dayOfFile(path: string): Day | undefined {
  const day = DAY_FILE.exec(path)?.[1];
  return day !== undefined && isDay(day) ? day : undefined;
}

/** The actions that this program reads. */
const ACTIONS = ['protocol', 'metaData', 'add', 'remove', 'domainMetadata'] as const;

/** Parses the actions of a log entry. Throws a configuration failure that names the entry for anything else. */
export function parseEntry(text: string, table: Table['name'], where: string): Action[] {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  return lines.flatMap((line) => parseAction(parseJson(line, where), table, where));
}

/** Parses an action; gives none for one of another kind, which the protocol lets readers ignore. */
export function parseAction(value: unknown, table: Table['name'], where: string): Action[] {
  if (!isObject(value)) throw damagedError(where, 'a line is no object');
  const name = ACTIONS.find((action) => Object.hasOwn(value, action) && value[action] !== null);
  if (name === undefined) return [];
  const action: unknown = { [name]: value[name] };
  if (!validAction<Action>(action)) throw damagedError(where, firstProblem(validAction));
  const path = 'add' in action ? action.add.path : 'remove' in action ? action.remove.path : undefined;
  if (path !== undefined && !isDataFile(`${table}/${path}`))
    throw damagedError(where, 'it names a file that this program did not write');
  return [action];
}
