import type { TableName } from '../../table/columns.ts';
import { type FileNote, notedOf, noteOf } from '../files/file-note.ts';
import type { DataFile, NewFile } from '../files/log.ts';
import { PARTITION } from '../files/parquet-file.ts';

import type { Action, Add } from './protocol/actions.ts';
import { damaged, parseJson } from './protocol/parse.ts';

/** The tag of our own on the files of the log. */
const NOTE = 'dfinery';

/**
 * A file of a table's log. `path`: from the table's folder; `place`: for messages. Throws a configuration failure for one
 * without what this program notes of each: somebody else wrote it, and which windows its rows belong to cannot be known.
 */
export function dataFileOf(table: TableName, path: string, add: Add, place: string): DataFile {
  const where = `${place}/${path}`;
  const read = (text: string | null | undefined) => parseJson(text ?? '{}', where) ?? {};
  const { numRecords: rows, nullCount } = read(add.stats) as Readonly<Record<string, unknown>>;
  const { id, ...note } = read(add.tags?.[NOTE]) as Partial<FileNote>;
  const date = add.partitionValues[PARTITION];
  const isOurs =
    typeof rows === 'number' && typeof nullCount === 'object' && nullCount !== null && typeof id === 'string';
  if (!isOurs || date === undefined) {
    throw damaged(
      where,
      'another program wrote it into the table, and this one cannot tell which windows its rows are of',
    );
  }
  const nulls = new Map(Object.entries(nullCount).map(([name, n]) => [name, Number(n)]));
  return {
    table,
    path: `${table}/${path}`,
    date: date === '' ? null : date,
    rows,
    bytes: add.size,
    columns: new Set(nulls.keys()),
    nulls,
    ...notedOf({ id, ...note }),
  };
}

const pathInTable = ({ table, path }: DataFile): string => path.slice(table.length + 1);

/** What a change of files is noted with: the time (ms), and whether rows change or only lie in other files. */
export interface Noted {
  readonly now: number;
  readonly isDataChange: boolean;
}

/** The entry that makes a file part of a table. `stats`: JSON. */
export function addOf(file: NewFile, stats: string, { now, isDataChange }: Noted): Action {
  return {
    add: {
      path: pathInTable(file),
      partitionValues: { [PARTITION]: file.date },
      size: file.bytes,
      modificationTime: Math.floor(now),
      dataChange: isDataChange,
      stats,
      tags: { [NOTE]: JSON.stringify(noteOf(file)) },
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
