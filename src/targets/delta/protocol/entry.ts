// This folder: the log of a Delta table by the protocol: entries, checkpoints, and the table that they add up to.

import valid from '../../../../schemas/delta-log.validator';
import { configError, type UserError } from '../../../base/errors.ts';
import { isObject, jsonOf } from '../../../base/json.ts';
import { firstProblem } from '../../../base/validator.ts';

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
  /** Path from the table's folder, percent-encoded. */
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

export interface Txn {
  readonly appId: string;
  readonly version: number;
  readonly lastUpdated?: number | null;
}

/** An action: one line of a log entry, or one row of a checkpoint. */
export type Action =
  | { readonly protocol: Protocol }
  | { readonly metaData: MetaData }
  | { readonly add: Add }
  | { readonly remove: Remove }
  | { readonly txn: Txn }
  | { readonly domainMetadata: { readonly domain: string; readonly configuration: string; readonly removed: boolean } }
  | { readonly commitInfo: Readonly<Record<string, unknown>> };

const VERSION_DIGITS = 20;
const LOG_FILE = /^_delta_log\/(\d{20})\.(json|checkpoint\.parquet)$/;
/** An absolute path or an address, which may lead outside the table's folder. */
const ELSEWHERE = /^([A-Za-z][A-Za-z0-9+.-]*:|\/|\\)/;

export const LOG_FOLDER = '_delta_log';
export const LAST_CHECKPOINT = `${LOG_FOLDER}/_last_checkpoint`;

/** A path that comes before every file of the log of this version or a later one. */
export const beforeVersion = (version: number): string =>
  `${LOG_FOLDER}/${String(version).padStart(VERSION_DIGITS, '0')}`;
export const entryPath = (version: number): string => `${beforeVersion(version)}.json`;
export const checkpointPath = (version: number): string => `${beforeVersion(version)}.checkpoint.parquet`;

/** The kind and version of a file of the log; undefined for any other file. */
export function logFileOf(path: string): { readonly isEntry: boolean; readonly version: number } | undefined {
  const match = LOG_FILE.exec(path);
  return match === null ? undefined : { isEntry: match[2] === 'json', version: Number(match[1]) };
}

/** The path from the table's folder that an action's path means; undefined for one outside of the folder. */
export function filePathOf(path: string): string | undefined {
  try {
    const decoded = decodeURIComponent(path);
    if (ELSEWHERE.test(decoded) || decoded.includes('\0')) return undefined;
    return decoded.split('/').some((part) => part === '' || part === '.' || part === '..') ? undefined : decoded;
  } catch {
    return undefined;
  }
}

const KNOWN_ACTIONS = ['protocol', 'metaData', 'add', 'remove', 'txn', 'domainMetadata', 'commitInfo'] as const;

/** Parses the actions of a log entry. Throws a configuration failure that names the entry for anything else. */
export function parseEntry(text: string, where: string): Action[] {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  return lines.flatMap((line) => parseAction(parseJson(line, where), where));
}

/** Parses an action; gives none for an action of a later protocol, which that protocol lets readers ignore. */
export function parseAction(value: unknown, where: string): Action[] {
  if (!isObject(value)) throw damagedError(where, 'a line is no object');
  const known = KNOWN_ACTIONS.find((name) => Object.hasOwn(value, name) && value[name] !== null);
  if (known === undefined) return [];
  const action: unknown = { [known]: value[known] };
  if (!valid<Action>(action)) throw damagedError(where, firstProblem(valid));
  const path = 'add' in action ? action.add.path : 'remove' in action ? action.remove.path : undefined;
  if (path !== undefined && filePathOf(path) === undefined)
    throw damagedError(where, 'it names a file outside the table');
  return [action];
}

export function parseJson(text: string, where: string): unknown {
  const value = jsonOf(text);
  if (value === undefined) throw damagedError(where, 'it is not JSON');
  return value;
}

export const damagedError = (where: string, why: string): UserError =>
  configError(
    `${where} cannot be used: ${why}. Nothing was changed: restore it from a copy, or load into another place.`,
    { where: { file: where } },
  );
