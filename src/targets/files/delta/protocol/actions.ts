// This folder: the log of a Delta table by the protocol. It has entries, checkpoints, and the snapshot they add up to.
// The paths in actions are from the folder of the table, all others from the root of the storage (`paths.ts`). A log that
// names data files of another program is refused.

import validAction from '../../../../../schemas/delta-log.validator';
import { isObject, type JsonObject } from '../../../../base/json.ts';
import { problemTexts } from '../../../../base/validator.ts';
import type { TableName } from '../../../../table/tables.ts';
import { damagedError, parseJson } from '../../stored-state.ts';
import { isDataFile } from './paths.ts';

/** The protocol versions and features that readers and writers of a table must support. */
export interface Protocol {
  readonly minReaderVersion: number;
  readonly minWriterVersion: number;
  readonly readerFeatures?: readonly string[];
  readonly writerFeatures?: readonly string[];
}

export interface MetaData {
  readonly id: string;
  readonly name?: string;
  readonly format: { readonly provider: 'parquet'; readonly options: Readonly<Record<string, string>> };
  readonly schemaString: string;
  readonly partitionColumns: readonly string[];
  readonly createdTime?: number;
  readonly configuration: Readonly<Record<string, string>>;
}

export interface Add {
  /** Path from the table's folder. */
  readonly path: string;
  readonly partitionValues: Readonly<Record<string, string>>;
  readonly size: number;
  readonly modificationTime?: number;
  /** False in an entry that only moves rows to other files. This program writes no such entry. */
  readonly dataChange: boolean;
  readonly stats?: string;
  readonly tags?: Readonly<Record<string, string>>;
}

/** A data file that is no longer part of the table; its bytes stay for readers of older versions. */
export interface Remove
  extends Pick<Add, 'path' | 'tags'>,
    Partial<Pick<Add, 'dataChange' | 'partitionValues' | 'size'>> {
  readonly deletionTimestamp?: number;
  readonly extendedFileMetadata?: boolean;
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

/** The actions that this program reads. */
const ACTIONS = ['protocol', 'metaData', 'add', 'remove', 'domainMetadata'] as const;

/** Parses the actions of a log entry. Throws a configuration failure that names the entry for anything else. */
export function parseEntry(text: string, tableName: TableName, subject: string): Action[] {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  return lines.flatMap((line) => parseAction(line, tableName, subject) ?? []);
}

/** Parses the JSON of an action; undefined for one of another kind, which the protocol lets readers ignore. */
export function parseAction(text: string, tableName: TableName, subject: string): Action | undefined {
  const value = parseJson(text, subject);
  if (!isObject(value)) throw damagedError(subject, 'a line is no object');
  const members = withoutNulls(value);
  const name = ACTIONS.find((kind) => Object.hasOwn(members, kind));
  if (name === undefined) return undefined;
  const action: unknown = { [name]: members[name] };
  if (!validAction<Action>(action)) throw damagedError(subject, problemTexts(validAction)[0]);
  const isForeign = ({ path }: Pick<Add, 'path'>) => !isDataFile(`${tableName}/${path}`);
  if (('add' in action && isForeign(action.add)) || ('remove' in action && isForeign(action.remove)))
    throw damagedError(subject, 'it names a file that this program did not write');
  return action;
}

/** A row of a checkpoint has null where a line of an entry lacks a member: no action has a member that is null. */
function withoutNulls(members: JsonObject): JsonObject {
  const filled = Object.entries(members).filter(([, value]) => value !== null);
  return Object.fromEntries(filled.map(([name, value]) => [name, isObject(value) ? withoutNulls(value) : value]));
}
