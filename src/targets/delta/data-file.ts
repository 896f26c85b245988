import validStats from '../../../schemas/delta-log.stats.validator';
import { firstProblem } from '../../base/validator.ts';
import type { TableName } from '../../table/columns.ts';
import type { DataFile, NewFile } from '../files/data-file.ts';
import { type LoggedColumns, notedOf, noteFrom, noteOf } from '../files/log-entries.ts';
import { PARTITION_COLUMN } from '../files/parquet-file.ts';
import { pathInTable } from '../files/stored-files.ts';
import { type Action, type Add, damagedError, parseJson } from './protocol/entry.ts';
import type { DeltaField } from './schema.ts';

/** The tag of this program on the files of the log. */
const NOTE = 'dfinery';

interface Stats {
  readonly numRecords: number;
  readonly nullCount: Readonly<Record<string, number>>;
}

/**
 * The data file of a log entry. `path`: from the folder of the table, which messages call `place`. Throws UserError for
 * a file that another program wrote: the windows of its rows cannot be known.
 */
export function dataFileOf(table: TableName, path: string, add: Add, place: string): DataFile {
  const where = `${place}/${path}`;
  const { [PARTITION_COLUMN]: date } = add.partitionValues;
  const note = add.tags?.[NOTE];
  if (note == null || add.stats == null || date === undefined) {
    throw damagedError(
      where,
      'another program wrote it into the table, and this one cannot tell which windows its rows are of',
    );
  }
  const noted = notedOf(noteFrom(note, (why) => damagedError(`${where} (tags/${NOTE})`, why)));
  const stats = parseJson(add.stats, `${where} (stats)`);
  if (!validStats<Stats>(stats)) throw damagedError(`${where} (stats)`, firstProblem(validStats));
  const nulls = new Map(Object.entries(stats.nullCount));
  return {
    table,
    path: `${table}/${path}`,
    date: date === '' ? null : date,
    rows: stats.numRecords,
    bytes: add.size,
    columns: new Set(nulls.keys()),
    nulls,
    ...noted,
  };
}

/** Values for the entries of a change: the time (ms), and whether rows change or only move to other files. */
export interface Noted {
  readonly now: number;
  readonly isDataChange: boolean;
}

/** The action that adds a file to a table. `stats` is JSON. */
export function addOf(file: NewFile, stats: string, { now, isDataChange }: Noted): Action {
  return {
    add: {
      path: pathInTable(file.table, file.path),
      partitionValues: { [PARTITION_COLUMN]: file.date },
      size: file.bytes,
      modificationTime: Math.floor(now),
      dataChange: isDataChange,
      stats,
      tags: { [NOTE]: JSON.stringify(noteOf(file)) },
    },
  };
}

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

/** Writes minimum and maximum values as JSON, by type: a long keeps every digit. */
const WRITTEN: Readonly<Record<string, (text: string) => string | undefined>> = {
  long: (text) => text,
  timestamp: (text) => instant(text, 'Z'),
  timestamp_ntz: (text) => instant(text, ''),
};

const INSTANT = /^(\d{4}-\d{2}-\d{2}) (\d{2}:\d{2}:\d{2})(?:\.(\d{1,6}))?(?:\+00)?$/;

/** An instant with milliseconds, as readers expect it; undefined for one with microseconds, which would be cut. */
function instant(text: string, zone: string): string | undefined {
  const match = INSTANT.exec(text);
  if (match === null) return undefined;
  const [, date, time, fraction = ''] = match;
  const digits = fraction.padEnd(6, '0');
  return digits.endsWith('000') ? `"${date}T${time}.${digits.slice(0, 3)}${zone}"` : undefined;
}

/** The `stats` of a file for its entry in the log. */
export function statsText({ rows }: NewFile, columns: LoggedColumns, fields: readonly DeltaField[]): string {
  const [lows, highs, nulls]: [string[], string[], string[]] = [[], [], []];
  for (const { name, type } of fields) {
    const own = columns.get(name);
    if (own === undefined) continue;
    const key = JSON.stringify(name);
    nulls.push(`${key}:${own.absent}`);
    const write = typeof type === 'string' ? WRITTEN[type] : undefined;
    const [low, high] = [own.least, own.greatest].map((text) => (text === null ? undefined : write?.(text)));
    if (low !== undefined) lows.push(`${key}:${low}`);
    if (high !== undefined) highs.push(`${key}:${high}`);
  }
  const of = (members: string[]) => `{${members.join(',')}}`;
  return `{"numRecords":${rows},"minValues":${of(lows)},"maxValues":${of(highs)},"nullCount":${of(nulls)}}`;
}
