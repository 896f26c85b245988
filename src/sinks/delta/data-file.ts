import type { TableName } from '../../table/columns.ts';
import type { DataFile, NewFile } from '../files/log.ts';
import { PARTITION } from '../files/stored-files.ts';
import type { Action, Add } from './protocol/actions.ts';
import { damaged } from './protocol/parse.ts';

/** The id of a data file: that in its name, or the path of one that somebody else named. */
const idOf = (path: string): string => /\/part-([0-9a-f-]{36})\.parquet$/.exec(path)?.[1] ?? path;

/** Tags of our own on the files of the log. */
const WINDOWS = 'dfinery.windows';
const SOURCE = 'dfinery.events';
const HASH = 'dfinery.sha256';
const SORTED = 'dfinery.sorted';

/**
 * A file of a table's log. `path`: from the table's folder; `place`: for messages. Throws a configuration failure for one
 * without what this program notes of each: somebody else wrote it, and which windows its rows belong to cannot be known.
 */
export function dataFileOf(table: TableName, path: string, add: Add, place: string): DataFile {
  const where = `${place}/${path}`;
  const statistics = jsonOf(add.stats, where);
  const tags = add.tags ?? {};
  const date = add.partitionValues[PARTITION];
  const rows = statistics?.numRecords;
  const nulls = statistics?.nullCount;
  const isOurs =
    typeof rows === 'number' && typeof nulls === 'object' && nulls !== null && (WINDOWS in tags || SOURCE in tags);
  if (!isOurs || date === undefined) {
    throw damaged(
      where,
      'another program wrote it into the table, and this one cannot tell which windows its rows are of',
    );
  }
  const windows = jsonOf(tags[WINDOWS], where) ?? {};
  const source = tags[SOURCE];
  return {
    table,
    path: `${table}/${path}`,
    id: idOf(path),
    date: date === '' ? null : date,
    rows,
    bytes: add.size,
    sha256: tags[HASH] ?? undefined,
    columns: new Set(Object.keys(nulls)),
    nulls: new Map(Object.entries(nulls).map(([name, n]) => [name, Number(n)])),
    windows: new Map(Object.entries(windows).map(([window, n]) => [Number(window), Number(n)])),
    ...(typeof source === 'string' && { source }),
    isSorted: tags[SORTED] === 'true',
  };
}

function jsonOf(text: string | null | undefined, where: string): Record<string, unknown> | undefined {
  if (text === null || text === undefined) return undefined;
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    throw damaged(where, 'what the log says of it is not JSON');
  }
}

const pathInTable = ({ table, path }: DataFile): string => path.slice(table.length + 1);

/** What a change of files is noted with: the time (ms), and whether rows change or only lie in other files. */
export interface Noted {
  readonly now: number;
  readonly isDataChange: boolean;
}

/** The entry that makes a file part of a table. `stats`: JSON. */
export function addOf(file: NewFile, stats: string | undefined, { now, isDataChange }: Noted): Action {
  const { date, bytes, sha256, source, windows, isSorted } = file;
  const tags: Record<string, string> = {};
  if (sha256 !== undefined) tags[HASH] = sha256;
  if (isSorted) tags[SORTED] = 'true';
  if (source === undefined) tags[WINDOWS] = JSON.stringify(Object.fromEntries(windows));
  else tags[SOURCE] = source;
  return {
    add: {
      path: pathInTable(file),
      partitionValues: { [PARTITION]: date },
      size: bytes,
      modificationTime: Math.floor(now),
      dataChange: isDataChange,
      stats: stats ?? null,
      tags,
    },
  };
}

/** The entry that takes a file out of a table. */
export function removeOf(add: Add, { now, isDataChange }: Noted): Action {
  return {
    remove: {
      path: add.path,
      deletionTimestamp: Math.floor(now),
      dataChange: isDataChange,
      extendedFileMetadata: true,
      partitionValues: add.partitionValues,
      size: add.size,
      tags: add.tags ?? {},
    },
  };
}
